package git

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// soon runs what must not wait for a server, and fails when it does.
func soon(t *testing.T, what string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("%s took %s", what, d)
	}
}

// TestSlowLFS: a server that does not answer costs its readers their time limit,
// and readers of other servers nothing. What arrives later is found.
func TestSlowLFS(t *testing.T) {
	slow, other := newOrigin(t), newOrigin(t)
	open := make(chan struct{})
	h, quick := serveLFS(t, slow, false, nil), serveLFS(t, other, false, nil)
	h.answer = func(http.ResponseWriter, map[string]any) bool { <-open; return false }
	// Another host, by its name.
	quickURL := strings.Replace(quick.URL, "127.0.0.1", "localhost", 1)
	slow.commit("main", "a", h.add("content a"), "b", h.add("content b"), "c", h.add("content c"))
	other.commit("main", "x", quick.add("content x"))
	f := newFetcher(t, Options{ReadTimeout: 150 * time.Millisecond})
	f.SetCredentials([]rutter.RepoCredential{{URL: h.URL + "/team/fleet.git", EnableLFS: true}, {URL: quickURL + "/team/fleet.git", EnableLFS: true}}, rutter.RepoTrust{})
	s, x := snap(t, f, h.URL+"/team/fleet", "main"), snap(t, f, quickURL+"/team/fleet", "main")
	soon(t, "reading from a slow server", func() {
		for _, name := range []string{"a", "b", "c"} {
			if _, err := s.ReadFile(name); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "is slow") || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	soon(t, "reading from another server", func() { wantFile(t, x, "x", "content x") })
	close(open)
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		data, err := s.ReadFile("a")
		if err == nil && string(data) == "content a" {
			break
		}
		if time.Since(start) > 5*time.Second {
			t.Fatalf("what was fetched is not found: %q, %v", data, err)
		}
	}
	if n := f.Stats().Downloads; n > 4 {
		t.Errorf("%d downloads: who reads again does not find what is on its way", n)
	}
	wantFile(t, s, "b", "content b")
	wantFile(t, s, "c", "content c")
	f.slots.mu.Lock()
	defer f.slots.mu.Unlock()
	if len(f.slots.hosts) > 0 || len(f.slots.all) > 0 {
		t.Errorf("%d places are taken, of %d hosts", len(f.slots.all), len(f.slots.hosts))
	}
}

func TestSlowSubmodule(t *testing.T) {
	sub, top := newOrigin(t), newOrigin(t)
	commit := sub.commit("main", "x", "1")
	top.submodule("sub", commit, module("sub", sub.url()))
	top.commitIndex()
	gate := filepath.Join(t.TempDir(), "open")
	// Fetching the submodule waits for the gate.
	git := wrapGit(t, `case "$*" in *fetch*`+sub.bare+`*) while [ ! -e `+gate+` ]; do sleep 0.02; done;; esac`)
	f := newFetcher(t, Options{Submodules: true, ReadTimeout: 150 * time.Millisecond, Git: git})
	s := snap(t, f, top.url(), "main")
	soon(t, "reading a slow submodule", func() {
		if _, err := s.ReadFile("sub/x"); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), `submodule "sub"`) {
			t.Errorf("got %v", err)
		}
	})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		data, err := s.ReadFile("sub/x")
		if err == nil && string(data) == "1" {
			break
		}
		if time.Since(start) > 5*time.Second {
			t.Fatalf("what was fetched is not found: %q, %v", data, err)
		}
	}
	if n := f.Stats().Fetches; n != 2 {
		t.Errorf("%d fetches, want one for each repository", n)
	}
}
