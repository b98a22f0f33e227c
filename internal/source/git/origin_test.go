package git

import (
	"context"
	"io"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

// origin is a bare repository and a work tree to push to it from.
type origin struct {
	t    testing.TB
	bare string
	work string
}

func newOrigin(t testing.TB) *origin {
	t.Helper()
	dir := t.TempDir()
	o := &origin{t: t, bare: filepath.Join(dir, "fleet.git"), work: filepath.Join(dir, "work")}
	o.git("init", "--quiet", "--bare", "--initial-branch=main", o.bare)
	o.git("init", "--quiet", "--initial-branch=main", o.work)
	o.git("-C", o.work, "remote", "add", "origin", o.bare)
	return o
}

func (o *origin) git(args ...string) string {
	o.t.Helper()
	return strings.TrimSpace(string(o.gitRaw(args...)))
}

// gitRaw returns what git prints as it is.
func (o *origin) gitRaw(args ...string) []byte {
	o.t.Helper()
	return o.gitIn(nil, args...)
}

func (o *origin) gitIn(stdin io.Reader, args ...string) []byte {
	o.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = stdin
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		o.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (o *origin) url() string { return "file://" + o.bare }

// write puts files into the work tree: name, content, name, content.
func (o *origin) write(pairs ...string) {
	o.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(o.work, pairs[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			o.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o600); err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *origin) link(target, name string) {
	o.t.Helper()
	if err := os.Symlink(target, filepath.Join(o.work, name)); err != nil {
		o.t.Fatal(err)
	}
}

// commit commits everything and pushes the branch; it returns the commit.
func (o *origin) commit(branch string, pairs ...string) string {
	o.t.Helper()
	o.write(pairs...)
	o.git("-C", o.work, "add", "--all")
	o.git("-C", o.work, "commit", "--quiet", "--allow-empty", "-m", "change")
	o.git("-C", o.work, "push", "--quiet", "--force", "origin", "HEAD:refs/heads/"+branch)
	return o.git("-C", o.work, "rev-parse", "HEAD")
}

func (o *origin) tag(name string, annotated bool) string {
	o.t.Helper()
	args := []string{"-C", o.work, "tag", name}
	if annotated {
		args = append(args, "-m", "annotated")
	}
	o.git(args...)
	o.git("-C", o.work, "push", "--quiet", "origin", "refs/tags/"+name)
	return o.git("-C", o.work, "rev-parse", name+"^{commit}")
}

func newFetcher(t testing.TB, opts Options) *Fetcher {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	f, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func snap(t testing.TB, f *Fetcher, url, revision string) rutter.Snapshot {
	t.Helper()
	s, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: revision}, rutter.ResolveOptions{})
	if err != nil {
		t.Fatalf("Snapshot(%s, %s): %v", url, revision, err)
	}
	return s
}

func wantFile(t testing.TB, s rutter.Snapshot, name, want string) {
	t.Helper()
	got, err := s.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("ReadFile(%s) = %q, %v; want %q", name, got, err, want)
	}
}

// mirrorOf returns the only mirror of f.
func mirrorOf(t testing.TB, f *Fetcher) *mirror {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.mirrors) != 1 {
		t.Fatalf("%d mirrors, want 1", len(f.mirrors))
	}
	for _, m := range f.mirrors {
		return m
	}
	return nil
}

// wrapGit makes a program that stands in for git: script runs first, with
// "$@" the arguments and "$REAL" the true git, which is called at the end.
func wrapGit(t testing.TB, script string) string {
	t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "git")
	text := "#!/bin/sh\nREAL=" + real + "\n" + script + "\nexec \"$REAL\" \"$@\"\n"
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// logged collects what is logged.
func logged() (*slog.Logger, *bounded) {
	b := &bounded{limit: 1 << 20}
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})), b
}

func resolve(ctx context.Context, f *Fetcher, url, revision string) (string, error) {
	return f.Resolve(ctx, rutter.Repo{URL: url, Revision: revision}, rutter.ResolveOptions{})
}

// quiet drops what a server of a test complains of: that is what is tested.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func repoOf(o *origin) rutter.Repo { return rutter.Repo{URL: o.url()} }
