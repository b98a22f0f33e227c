package daemon

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"os/exec"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// planRepo is the clone of the repository whose change is planned.
type planRepo struct {
	// path is where Git finds it; top is its work tree, empty when it is bare.
	path, top string
	// own are the addresses of the repository, branches those revisions that mean
	// whichever side is looked at.
	own, branches map[string]bool
}

// openPlanRepo finds the clone that a folder is in, its addresses (those of its
// remotes, unless some are given) and its default branch.
func openPlanRepo(ctx context.Context, dir string, urls, branches []string) (*planRepo, error) {
	r := &planRepo{path: dir, own: map[string]bool{}, branches: map[string]bool{"": true, "HEAD": true}}
	for _, b := range branches {
		r.branches[b] = true
	}
	top, err := r.git(ctx, "rev-parse", "--show-toplevel")
	switch {
	case err == nil && top != "":
		r.path, r.top = top, top
	default:
		if r.path, err = r.git(ctx, "rev-parse", "--absolute-git-dir"); err != nil {
			return nil, rutter.Errorf(rutter.CodeNotFound, "--repo %s: %w", dir, err)
		}
	}
	if len(urls) == 0 {
		remotes, _ := r.git(ctx, "config", "--get-regexp", `^remote\..*\.url$`) // none is no error
		for line := range strings.Lines(remotes) {
			if _, u, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
				urls = append(urls, u)
			}
		}
	}
	for _, u := range append(urls, r.url(), r.path) {
		r.own[address(u)] = true
	}
	r.defaultBranch(ctx)
	return r, nil
}

// defaultBranch notes which branch is the remote's default. A clone that does
// not know (CI systems make such) may still follow one of the usual names: to
// take that for something else would show no change where there is one.
func (r *planRepo) defaultBranch(ctx context.Context) {
	ref := "refs/remotes/origin/HEAD"
	if r.top == "" {
		ref = "HEAD"
	}
	if name, err := r.git(ctx, "symbolic-ref", "--quiet", ref); err == nil {
		r.branches[branchOf(name)] = true
		return
	}
	r.branches["main"], r.branches["master"] = true, true
}

// url is how the Git adapter reads the clone.
func (r *planRepo) url() string { return (&url.URL{Scheme: "file", Path: r.path}).String() }

// address is equal for the ways to reach one repository: without protocol, login
// and .git.
func address(u string) string {
	u = rutter.NormalizeGitURL(u)
	if _, rest, ok := strings.Cut(u, "://"); ok {
		u = rest
	}
	host, path, _ := strings.Cut(u, "/")
	if _, after, ok := strings.Cut(host, "@"); ok {
		host = after
	}
	return host + "/" + path
}

// commit resolves what the user calls a side; where that is a branch, the
// branch's name means the side that is looked at from now on.
func (r *planRepo) commit(ctx context.Context, rev string, track bool) (string, error) {
	if rev == "" || strings.HasPrefix(rev, "-") {
		return "", rutter.Errorf(rutter.CodeInvalid, "revision %q: name a branch, a tag or a commit", rev)
	}
	id, err := r.git(ctx, "rev-parse", "--verify", "--quiet", rev+"^{commit}")
	if err != nil {
		return "", rutter.Errorf(rutter.CodeNotFound, "revision %q is not in %s: fetch it first (in CI: check out with full history)", rev, r.path)
	}
	if track {
		if name, err := r.git(ctx, "rev-parse", "--symbolic-full-name", rev); err == nil && name != "" {
			r.branches[branchOf(name)] = true
		}
	}
	return id, nil
}

// missing counts the commits of one revision that another does not have; 0 where
// the clone's history is too short to tell.
func (r *planRepo) missing(ctx context.Context, of, in string) int {
	count, err := r.git(ctx, "rev-list", "--count", of, "^"+in)
	if err != nil || count == "0" {
		return 0
	}
	if shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository"); err != nil || shallow == "true" {
		return 0
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		return 0
	}
	return n
}

// branchOf is the name of a branch without where it is kept.
func branchOf(ref string) string {
	if b, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return b
	}
	if b, ok := strings.CutPrefix(ref, "refs/remotes/"); ok {
		_, b, _ = strings.Cut(b, "/")
		return b
	}
	return ref
}

// owns reports whether a URL is one of the repository's.
func (r *planRepo) owns(repo rutter.Repo) bool {
	return repo.Kind() == rutter.RepoGit && r.own[address(repo.URL)]
}

// git asks the clone; nothing in it is changed.
func (r *planRepo) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", r.path}, args...)...)
	cmd.Env = append(cmd.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if _, ok := errors.AsType[*exec.ExitError](err); ok && stderr.Len() > 0 {
		first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return "", rutter.Errorf(rutter.CodeInvalid, "git: %s", first)
	}
	return "", rutter.Errorf(rutter.CodeInvalid, "git %s: %w", args[0], err)
}
