package git

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

// forge puts an object of the given content where that of id lies, as a failed
// disk, a wrong restore or an intruder would: well-formed, but another.
func forge(t *testing.T, dir, id, kind string, content []byte) {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	fmt.Fprintf(w, "%s %d\x00%s", kind, len(content), content)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "objects", id[:2], id[2:])
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	_ = os.Chmod(path, 0o600)
	if err := os.WriteFile(path, packed.Bytes(), 0o400); err != nil {
		t.Fatal(err)
	}
}

// unpack turns the mirror's packs into loose objects, so that one can be forged.
func unpack(t *testing.T, o *origin, dir string) {
	t.Helper()
	packs, _ := filepath.Glob(filepath.Join(dir, "objects/pack/*.pack"))
	for _, pack := range packs {
		away := filepath.Join(t.TempDir(), filepath.Base(pack))
		if err := os.Rename(pack, away); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(strings.TrimSuffix(pack, ".pack") + ".idx")
		data, err := os.Open(away)
		if err != nil {
			t.Fatal(err)
		}
		o.gitIn(data, "--git-dir", dir, "unpack-objects", "-q")
		data.Close()
	}
}

// TestWrongTreeForACommit (scenario B18): the mirror holds, under the names of
// a commit, what belongs to another. It is found by its hash, nothing of it is
// served, and the next Snapshot has fetched it anew.
func TestWrongTreeForACommit(t *testing.T) {
	tests := []struct {
		name string
		// forged is what is replaced, by what lies at the same place in the
		// other commit; several are a whole forged commit.
		forged []string
	}{
		{"commit", []string{""}},
		{"tree", []string{"^{tree}"}},
		{"folder", []string{":d"}},
		{"file", []string{":d/f"}},
		{"all", []string{"", "^{tree}", ":d", ":d/f"}},
	}
	o := newOrigin(t)
	a := o.commit("main", "d/f", "A", "who", "A")
	b := o.commit("main", "d/f", "B", "who", "B")
	for _, tt := range tests {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", tt.name, restart), func(t *testing.T) {
				f := newFetcher(t, Options{})
				snap(t, f, o.url(), a)
				snap(t, f, o.url(), b)
				m := mirrorOf(t, f)
				unpack(t, o, m.dir)
				for _, what := range tt.forged {
					id := o.git("-C", o.work, "rev-parse", b+what)
					kind := o.git("-C", o.work, "cat-file", "-t", id)
					forge(t, m.dir, id, kind, o.gitRaw("-C", o.work, "cat-file", kind, o.git("-C", o.work, "rev-parse", a+what)))
				}
				if restart {
					f = newFetcher(t, Options{Dir: f.opts.Dir})
				} else {
					f.blobs, f.trees = newCache[[]byte](1<<20), newCache[*tree](1<<20)
					m.objects.restart()
				}
				read := func() error {
					s, err := f.Snapshot(t.Context(), rutter.Repo{URL: o.url(), Revision: "main"}, rutter.ResolveOptions{})
					if err != nil {
						return err
					}
					data, err := s.ReadFile("d/f")
					if err == nil && (string(data) != "B" || s.Revision() != b) {
						t.Errorf("%q was served under %s", data, s.Revision())
					}
					return err
				}
				if err := read(); err != nil && rutter.CodeOf(err) != rutter.CodeUnavailable {
					t.Errorf("the first who reads it: %v; want that it is passing", err)
				}
				if err := read(); err != nil {
					t.Errorf("the next: %v; want that it is repaired", err)
				}
				wantFile(t, snap(t, f, o.url(), b), "who", "B")
				wantFile(t, snap(t, f, o.url(), a), "d/f", "A")
				// A commit that is being read is in memory, where it was looked at.
				if f.Stats().Rebuilds == 0 && (tt.name != "commit" || restart) {
					t.Error("nothing was found: the forged object was not looked at")
				}
			})
		}
	}
}

// TestForgedObjectWhileTheRemoteIsAway: what cannot be repaired is not served either.
func TestForgedObjectWhileTheRemoteIsAway(t *testing.T) {
	o := newOrigin(t)
	commit := o.commit("main", "f", "right", "g", "fine")
	f := newFetcher(t, Options{})
	snap(t, f, o.url(), "main")
	m := mirrorOf(t, f)
	unpack(t, o, m.dir)
	forge(t, m.dir, o.git("-C", o.work, "rev-parse", "HEAD:f"), "blob", []byte("wrong"))
	m.objects.restart()
	if err := os.Rename(o.bare, o.bare+".away"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s := snap(t, f, o.url(), commit)
		wantFile(t, s, "g", "fine")
		if got, err := s.ReadFile("f"); rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("%q, %v; want that it is unavailable", got, err)
		}
	}
	if err := os.Rename(o.bare+".away", o.bare); err != nil {
		t.Fatal(err)
	}
	wantFile(t, snap(t, f, o.url(), commit), "f", "right")
}
