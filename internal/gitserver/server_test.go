package gitserver

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func runGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t"}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := runGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// fleet serves a repository with one commit.
func fleet(t *testing.T, opts Options) (*Server, string) {
	t.Helper()
	opts.Dir = t.TempDir()
	bare, src := filepath.Join(opts.Dir, "team", "fleet.git"), t.TempDir()
	for name, content := range map[string]string{"README.md": "hello\n", ".gitignore": "*.log\n", "kept.log": "not ignored\n"} {
		if err := os.WriteFile(filepath.Join(src, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := Init(t.Context(), bare); err != nil {
			t.Fatal(err)
		}
		if err := ImportDir(t.Context(), bare, src, "main", "first"); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, bare
}

func TestCloneAndPush(t *testing.T) {
	pushed := make(chan string, 10)
	s, bare := fleet(t, Options{OnPush: func(repo string) { pushed <- repo }})
	work := filepath.Join(t.TempDir(), "work")
	mustGit(t, "", "clone", "--quiet", s.URL()+"/team/fleet.git", work)
	if n := mustGit(t, work, "rev-list", "--count", "HEAD"); n != "1" {
		t.Errorf("importing the same folder twice made %s commits, want 1", n)
	}
	if got, err := os.ReadFile(filepath.Join(work, "kept.log")); err != nil || string(got) != "not ignored\n" {
		t.Errorf("a file that .gitignore names: %q, %v", got, err)
	}

	// More than git sends with a known length: it comes in chunks.
	big := make([]byte, 3<<20)
	_, _ = rand.Read(big)
	if err := os.WriteFile(filepath.Join(work, "big"), big, 0o600); err != nil {
		t.Fatal(err)
	}
	mustGit(t, work, "add", "--all")
	mustGit(t, work, "commit", "--quiet", "-m", "big")
	mustGit(t, work, "push", "--quiet")
	select {
	case repo := <-pushed:
		if repo != "team/fleet.git" {
			t.Errorf("OnPush(%q)", repo)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("OnPush was not called")
	}
	if got, want := mustGit(t, bare, "rev-parse", "main"), mustGit(t, work, "rev-parse", "HEAD"); got != want {
		t.Errorf("the branch is at %s, want %s", got, want)
	}

	// A push that changes nothing, and one that is refused, are no pushes.
	mustGit(t, work, "push", "--quiet")
	mustGit(t, work, "commit", "--quiet", "--amend", "-m", "other")
	if out, err := runGit(t, work, "push", "--quiet"); err == nil {
		t.Errorf("a push that is no fast-forward succeeds: %s", out)
	}
	select {
	case <-pushed:
		t.Error("OnPush was called without a change")
	case <-time.After(50 * time.Millisecond):
	}
}

func TestImportDirKeepsHistory(t *testing.T) {
	_, bare := fleet(t, Options{})
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "only"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ImportDir(t.Context(), bare, src, "main", "second"); err != nil {
		t.Fatal(err)
	}
	if got := mustGit(t, bare, "log", "--format=%s", "main"); got != "second\nfirst" {
		t.Errorf("history is %q", got)
	}
	if got := mustGit(t, bare, "ls-tree", "--name-only", "main"); got != "only" {
		t.Errorf("the branch holds %q", got)
	}
	for _, branch := range []string{"a..b", "-x", "x y", ""} {
		if err := ImportDir(t.Context(), bare, src, branch, "m"); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("branch %q: %v", branch, err)
		}
	}
	if err := ImportDir(t.Context(), bare, filepath.Join(src, "only"), "main", "m"); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a file as the folder: %v", err)
	}
}

func TestUsersAndReadOnly(t *testing.T) {
	s, _ := fleet(t, Options{Users: map[string]string{"ann": "s3cret"}, ReadOnly: true})
	withUser := func(user string) string {
		return strings.Replace(s.URL(), "http://", "http://"+user+"@", 1) + "/team/fleet.git"
	}
	for user, ok := range map[string]bool{"ann:s3cret": true, "ann:wrong": false, "bob:": false, "bob:s3cret": false} {
		if out, err := runGit(t, "", "ls-remote", withUser(user)); (err == nil) != ok {
			t.Errorf("%s: %v %s", user, err, out)
		}
	}
	work := filepath.Join(t.TempDir(), "work")
	mustGit(t, "", "clone", "--quiet", withUser("ann:s3cret"), work)
	mustGit(t, work, "commit", "--quiet", "--allow-empty", "-m", "x")
	if out, err := runGit(t, work, "push", "--quiet"); err == nil {
		t.Errorf("a read-only server took a push: %s", out)
	}
}

func TestOnlyOwnRepositoriesAreServed(t *testing.T) {
	s, bare := fleet(t, Options{})
	outside := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(bare))), "outside.git")
	if err := Init(t.Context(), outside); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/../outside.git/info/refs?service=git-upload-pack", "/%2e%2e/outside.git/HEAD", "/team/../../outside.git/HEAD", "/", "/gone.git/HEAD", "/team/HEAD"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("GET %s answers %s", path, resp.Status)
		}
	}
}

func TestOtherHostNamesAreRefused(t *testing.T) {
	s, _ := fleet(t, Options{})
	for host, want := range map[string]int{"evil.example.org": http.StatusForbidden, "evil.example.org:80": http.StatusForbidden, "localhost:1": http.StatusOK, "[::1]:1": http.StatusOK} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/team/fleet.git/info/refs?service=git-upload-pack", bytes.NewReader(nil))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("Host %s answers %s, want %d", host, resp.Status, want)
		}
	}
	for _, addr := range []string{"0.0.0.0:0", ":0", "example.org:80", "10.0.0.1:0", "nonsense"} {
		if _, err := Start(t.Context(), Options{Dir: t.TempDir(), Addr: addr}); rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Errorf("Start on %s: %v", addr, err)
		}
	}
}
