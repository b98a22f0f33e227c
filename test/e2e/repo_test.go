package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter/internal/gitserver"
)

// repo is a repository on the Git server and a clone that a person works in.
type repo struct {
	// url is where it is served.
	url string
	// bare is the server's folder of it.
	bare string
	// addr is the controller that is told of pushes, if there is one.
	addr  string
	clone string
}

// tree is the content of files by path; an empty one is deleted.
type tree map[string]string

// repo makes a repository with a first commit.
func (w *world) repo(t *testing.T, name string, files tree) *repo {
	t.Helper()
	name = unique(name) + ".git"
	r := &repo{url: w.git.URL() + "/" + name, bare: filepath.Join(w.gitDir, name), addr: w.addr, clone: t.TempDir()}
	if err := gitserver.Init(t.Context(), r.bare); err != nil {
		t.Fatal(err)
	}
	r.git(t, "clone", "--quiet", r.url, ".")
	r.push(t, files)
	return r
}

// commit writes files, commits and pushes them, and returns the commit. The
// controller is not told.
func (r *repo) commit(t *testing.T, files tree) string {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(r.clone, filepath.FromSlash(name))
		if content == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.git(t, "add", "--all")
	r.git(t, "-c", "user.name=Test", "-c", "user.email=test@localhost", "commit", "--quiet", "-m", "change")
	r.git(t, "push", "--quiet", "origin", "HEAD:refs/heads/main")
	return r.git(t, "rev-parse", "HEAD")
}

// push is commit, and the webhook after it.
func (r *repo) push(t *testing.T, files tree) string {
	t.Helper()
	commit := r.commit(t, files)
	if r.addr != "" {
		pushed(t, r.addr, r.url)
	}
	return commit
}

func (r *repo) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = r.clone
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, out)
	}
	return strings.TrimSpace(string(out))
}
