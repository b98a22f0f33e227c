package git

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rutterhq/rutter"
)

// history knows all commits of a repository's branches and tags, without their
// files where the server can leave them out. It is fetched only when somebody
// writes an abbreviated commit: that must name exactly one, and a mirror of
// single commits can't tell. It lives beside the mirror, so that the mirror
// itself is never one with holes that git would fill behind our back.
type history struct {
	// forget says that the folder was removed.
	forget atomic.Bool

	mu sync.Mutex
	// refs is the digest of the remote's refs when it was last fetched.
	refs  string
	found map[string]string
}

// find returns the one commit that begins with short. A later look-up may show
// a second one; then it is an error.
func (h *history) find(ctx context.Context, m *mirror, r remote, known refs, short string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.forget.Swap(false) || h.refs != known.digest {
		if err := h.fetch(ctx, m, r); err != nil {
			return "", err
		}
		h.refs, h.found = known.digest, map[string]string{}
	}
	if commit := h.found[short]; commit != "" {
		return commit, nil
	}
	out, err := m.f.git.run(ctx, command{dir: h.dir(m), env: base().env(), args: []string{"rev-list", "--all"}})
	if err != nil {
		return "", r.explain(err)
	}
	match := ""
	for commit := range strings.FieldsSeq(string(out)) {
		if !strings.HasPrefix(commit, short) || commit == match {
			continue
		}
		if match != "" {
			return "", rutter.Errorf(rutter.CodeInvalid, "repository %q: commit %q is ambiguous: write more of its digits", r.display(), short)
		}
		match = commit
	}
	if match == "" {
		return "", rutter.Errorf(rutter.CodeNotFound, "repository %q has no revision %q: no branch, tag or commit of a branch or tag is called so; check targetRevision", r.display(), short)
	}
	h.found[short] = match
	return match, nil
}

func (h *history) dir(m *mirror) string { return strings.TrimSuffix(m.dir, ".git") + ".history.git" }

func (h *history) fetch(ctx context.Context, m *mirror, r remote) error {
	m.disk.Lock()
	defer m.disk.Unlock()
	unlock, err := m.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(ctx, m.f.opts.FetchTimeout)
	defer cancel()
	dir := h.dir(m)
	for fresh := false; ; fresh = true {
		if err := h.prepare(ctx, m, dir, fresh); err != nil {
			return err
		}
		m.f.counts.fetches.Add(1)
		err := m.fetch(ctx, dir, r, []string{"--prune", "--filter=tree:0", r.remote}, []string{"+refs/*:refs/remotes/all/*"})
		if err == nil {
			return nil
		}
		if fresh || ctx.Err() != nil || rutter.CodeOf(r.explain(err)) != rutter.CodeUnavailable {
			return r.explain(err)
		}
	}
}

// prepare makes the folder, anew if what is there did not work.
func (h *history) prepare(ctx context.Context, m *mirror, dir string, fresh bool) error {
	if _, err := os.Stat(filepath.Join(dir, "HEAD")); err == nil && !fresh {
		sweep(dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return rutter.Errorf(rutter.CodeUnavailable, "removing a damaged Git mirror: %w", err)
	}
	return m.create(ctx, dir)
}
