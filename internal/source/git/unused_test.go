package git

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// mirrorsIn lists what is left of mirrors.
func mirrorsIn(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "mirrors", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestUnusedMirrorsAreRemoved(t *testing.T) {
	used, unused := newOrigin(t), newOrigin(t)
	h := serveLFS(t, unused, false, nil)
	used.commit("main", "f", "1")
	commit := unused.commit("main", "f", "2", "big", h.add("content"))
	f := newFetcher(t, Options{})
	f.SetCredentials([]rutter.RepoCredential{{URL: h.URL, Template: true, EnableLFS: true}}, rutter.RepoTrust{})
	url := h.URL + "/fleet.git"
	s := snap(t, f, url, commit[:8]) // with a history of its own
	wantFile(t, s, "big", "content")
	if n := len(mirrorsIn(t, f.opts.Dir)); n != 4 {
		t.Fatalf("%v; want mirror, history, content and lock", mirrorsIn(t, f.opts.Dir))
	}
	later := time.Now().Add(8 * 24 * time.Hour)
	snap(t, f, used.url(), "main")

	f.sweep(later.Add(-2 * 24 * time.Hour))
	wantFile(t, s, "f", "2")
	if n := len(mirrorsIn(t, f.opts.Dir)); n != 6 {
		t.Errorf("before its time something was removed: %v", mirrorsIn(t, f.opts.Dir))
	}
	// As long as somebody reads it, it stays. The other is in use.
	f.mirrorAt(t, used.url()).used.Store(later.UnixNano())
	old(t, f.mirrorAt(t, url).dir, time.Now())
	f.sweep(later)
	f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
	wantFile(t, s, "f", "2")
	runtime.KeepAlive(s)
	f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
	for range 3 {
		runtime.GC()
	}
	f.sweep(later)
	if left := mirrorsIn(t, f.opts.Dir); len(left) != 2 {
		t.Errorf("left: %v; want the mirror that is in use and its lock", left)
	}
	// Whoever comes back gets it again.
	before := f.Stats()
	wantFile(t, snap(t, f, url, commit[:8]), "big", "content")
	wantFile(t, snap(t, f, url, "main"), "f", "2")
	wantFile(t, snap(t, f, used.url(), "main"), "f", "1")
	if after := f.Stats(); after.Rebuilds != 0 || after.Downloads != before.Downloads+1 {
		t.Errorf("%+v after %+v", after, before)
	}
}

func (f *Fetcher) mirrorAt(t *testing.T, url string) *mirror {
	t.Helper()
	r, err := f.remote(rutter.Repo{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return r.mirror
}

func old(t *testing.T, dir string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(dir+"."+lockFile, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestMirrorsOfEarlierProcesses: what a process leaves behind is removed by
// the next, unless a third one uses it. It happens by itself.
func TestMirrorsOfEarlierProcesses(t *testing.T) {
	gone, shared := newOrigin(t), newOrigin(t)
	gone.commit("main", "f", "1")
	shared.commit("main", "f", "2")
	dir := t.TempDir()
	first := newFetcher(t, Options{Dir: dir})
	snap(t, first, gone.url(), "main")
	kept := snap(t, first, shared.url(), "main")
	old(t, first.mirrorAt(t, gone.url()).dir, time.Now().Add(-8*24*time.Hour))
	f := newFetcher(t, Options{Dir: dir})
	f.sweep(time.Now())
	if left := mirrorsIn(t, dir); len(left) != 2 {
		t.Errorf("left: %v; want the mirror that was used and its lock", left)
	}
	wantFile(t, kept, "f", "2")
	forever := newFetcher(t, Options{Dir: dir, KeepMirrors: -1})
	forever.sweep(time.Now().Add(1000 * 24 * time.Hour))
	if left := mirrorsIn(t, dir); len(left) != 2 {
		t.Errorf("left: %v; none was to be removed", left)
	}
	quick := newFetcher(t, Options{Dir: dir, KeepMirrors: 40 * time.Millisecond})
	for range 100 {
		if len(mirrorsIn(t, dir)) == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if left := mirrorsIn(t, quick.opts.Dir); len(left) != 0 {
		t.Errorf("left: %v; nothing happened by itself", left)
	}
}

// TestRemovedWhileLocked: a lock on a mirror that was removed is none.
func TestRemovedWhileLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x."+lockFile)
	one, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tryLock(path); err == nil {
		t.Error("locked twice")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	one.Close()
	two, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	two.Close()
}
