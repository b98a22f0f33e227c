package git

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

func TestSnapshotIsAFileSystem(t *testing.T) {
	o := newOrigin(t)
	o.write("README.md", "hello\n", "apps/web/base/deployment.yaml", "kind: Deployment\n", "apps/web/base/empty", "", "z.yaml", "z", "a-b/x", "1", "a/x", "2", "a.b/x", "3")
	if err := os.Chmod(filepath.Join(o.work, "z.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.link("README.md", "link.md")
	o.link("../../README.md", "apps/web/up.md")
	o.link("apps/web", "dirlink")
	if err := os.MkdirAll(filepath.Join(o.work, "vendor/sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	o.git("-C", o.work, "update-index", "--add", "--cacheinfo", "160000,1111111111111111111111111111111111111111,vendor/sub")
	o.commit("main")
	s := snap(t, newFetcher(t, Options{}), o.url(), "main")

	err := fstest.TestFS(s, "README.md", "apps/web/base/deployment.yaml", "apps/web/base/empty", "z.yaml", "link.md", "apps/web/up.md", "dirlink", "vendor/sub", "a/x", "a-b/x", "a.b/x")
	if err != nil {
		t.Error(err)
	}
	wantFile(t, s, "link.md", "hello\n")
	wantFile(t, s, "apps/web/up.md", "hello\n")
	wantFile(t, s, "dirlink/base/deployment.yaml", "kind: Deployment\n")
	wantFile(t, s, "dirlink/up.md", "hello\n")
	if entries, err := s.ReadDir("vendor/sub"); err != nil || len(entries) != 0 {
		t.Errorf("a submodule reads as %v, %v; want an empty folder", entries, err)
	}
	info, err := s.Stat("z.yaml")
	if err != nil || info.Mode() != 0o555 || info.Size() != 1 {
		t.Errorf("Stat(z.yaml) = %v, %v", info, err)
	}
	if info, err := s.Stat("dirlink"); err != nil || !info.IsDir() || info.Name() != "dirlink" {
		t.Errorf("Stat(dirlink) = %v, %v; want a folder of that name", info, err)
	}
	if _, err := s.ReadFile("apps"); err == nil {
		t.Error("reading a folder as a file succeeds")
	}
	if _, err := s.ReadDir("README.md"); err == nil {
		t.Error("listing a file succeeds")
	}
}

func TestSymbolicLinksStayInside(t *testing.T) {
	o := newOrigin(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.write("dir/file", "x")
	for name, target := range map[string]string{"absolute": secret, "above": "../work/dir/file", "dir/above": "../../dir/file", "dangling": "nothing",
		"loop": "loop", "pong": "ping", "ping": "pong", "chain1": "chain2", "chain2": "chain3", "chain3": secret, "folder": filepath.Dir(secret), "up": "..", "dir/root": "../..",
		"self": ".", "dir/self": "../dir", "tree": "tree/tree", "slash": "dir/file/", "rooted": "/dir/file", "dir/rooted": "/file", "through": "dir/file/x", "dir/../deep": "dir/../../../../../../../../etc/passwd"} {
		o.link(target, name)
	}
	o.commit("main")
	long := strings.TrimSpace(string(o.gitIn(strings.NewReader(strings.Repeat("dir/../", 1000)+"dir/file"), "-C", o.work, "hash-object", "-w", "--stdin")))
	o.git("-C", o.work, "update-index", "--add", "--cacheinfo", "120000,"+long+",long")
	o.git("-C", o.work, "commit", "--quiet", "-m", "a link that no file system has")
	o.git("-C", o.work, "push", "--quiet", "origin", "HEAD:main")
	f := newFetcher(t, Options{})
	s := snap(t, f, o.url(), "main")
	for _, name := range []string{"absolute", "above", "dir/above", "dangling", "loop", "ping", "through", "deep", "dir/file/x",
		"chain1", "folder", "folder/" + filepath.Base(secret), "up", "up/work/dir/file", "dir/root", "tree", "tree/x", "long", "rooted", "dir/rooted"} {
		for op, err := range map[string]error{"ReadFile": second(s.ReadFile(name)), "Stat": second(s.Stat(name)), "Open": second(s.Open(name)), "ReadDir": second(s.ReadDir(name))} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s(%s) = %v; want that it does not exist", op, name, err)
			}
		}
		for _, kind := range []rutter.InputKind{rutter.InputFile, rutter.InputList, rutter.InputStat} {
			if h, err := s.Hash(kind, name); h != "" || err != nil {
				t.Errorf("Hash(%s, %s) = %q, %v; want nothing", kind, name, h, err)
			}
		}
	}
	// Links that stay inside lead where they say, however far they go round.
	wantFile(t, s, strings.Repeat("self/", 30)+"dir/self/self/file", "x")
	if err := second(s.ReadFile(strings.Repeat("self/", maxLinks+1) + "dir/file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("more links than are followed: %v", err)
	}
	// Nothing outside was read, which the above shows, or written.
	if got, err := os.ReadFile(secret); err != nil || string(got) != "s3cret" {
		t.Errorf("the file outside is %q, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(secret), "*")); len(left) != 1 {
		t.Errorf("beside the file outside: %v", left)
	}
	noSecretOnDisk(t, f.opts.Dir, "s3cret")
	if err := second(s.ReadFile("../work/dir/file")); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path that is none: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestHash(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "d/a", "one", "d/sub/x", "x", "top", "t")
	f := newFetcher(t, Options{})
	hashes := func() map[string]string {
		s := snap(t, f, o.url(), "main")
		out := map[string]string{}
		for _, kind := range []rutter.InputKind{rutter.InputFile, rutter.InputList, rutter.InputStat} {
			for _, name := range []string{".", "d", "d/a", "d/b", "d/sub", "gone"} {
				h, err := s.Hash(kind, name)
				if err != nil {
					t.Fatal(err)
				}
				out[string(kind)+" "+name] = h
			}
		}
		return out
	}
	first := hashes()
	if got, want := first["file d/a"], o.git("-C", o.work, "rev-parse", "HEAD:d/a"); got != want {
		t.Errorf("hash of a file is %s, want its blob %s", got, want)
	}
	for key, want := range map[string]string{"stat .": "dir", "stat d/a": "file", "stat gone": "", "file d": "", "list d/a": "", "list gone": "", "file gone": ""} {
		if first[key] != want {
			t.Errorf("hash of %s is %q, want %q", key, first[key], want)
		}
	}
	changed := func(before, after map[string]string) map[string]bool {
		out := map[string]bool{}
		for k := range before {
			if before[k] != after[k] {
				out[k] = true
			}
		}
		return out
	}
	o.commit("main", "d/a", "two", "d/sub/x", "y")
	content := hashes()
	if diff := cmp.Diff(map[string]bool{"file d/a": true}, changed(first, content)); diff != "" {
		t.Errorf("a change of content (-want +got):\n%s", diff)
	}
	o.commit("main", "d/b", "new")
	if diff := cmp.Diff(map[string]bool{"file d/b": true, "list d": true, "stat d/b": true}, changed(content, hashes())); diff != "" {
		t.Errorf("a new file (-want +got):\n%s", diff)
	}
}

func TestLargeFileIsRefused(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "big", string(make([]byte, 4096)), "small", "x")
	s := snap(t, newFetcher(t, Options{MaxFileBytes: 1024}), o.url(), "main")
	if _, err := s.ReadFile("big"); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("reading a file that is too large: %v", err)
	}
	wantFile(t, s, "small", "x")
	if info, err := s.Stat("big"); err != nil || info.Size() != 4096 {
		t.Errorf("Stat(big) = %v, %v", info, err)
	}
}

func FuzzParseTree(f *testing.F) {
	f.Add([]byte("100644 a\x0012345678901234567890" + "40000 b\x0012345678901234567890"))
	f.Add([]byte("40000 ..\x0012345678901234567890"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, err := parseTree(data)
		if err != nil {
			return
		}
		for i, e := range tree.entries {
			if e.name == "" || e.name == "." || e.name == ".." || i > 0 && tree.entries[i-1].name >= e.name {
				t.Errorf("entry %d: %q", i, e.name)
			}
			if got, ok := tree.lookup(e.name); !ok || got != e {
				t.Errorf("lookup(%q) = %v, %v", e.name, got, ok)
			}
		}
	})
}

// monorepo is 6,000 files in 2,000 folders.
func monorepo(b *testing.B) (*Fetcher, *origin, []string) {
	b.Helper()
	o := newOrigin(b)
	var pairs, names []string
	for i := range 2000 {
		for _, name := range []string{"kustomization.yaml", "patch.yaml", "values.yaml"} {
			path := fmt.Sprintf("apps/group-%02d/app-%04d/%s", i%50, i, name)
			names = append(names, path)
			pairs = append(pairs, path, fmt.Sprintf("name: app-%d\nfile: %s\n", i, name))
		}
	}
	o.commit("main", pairs...)
	return newFetcher(b, Options{}), o, names
}

func BenchmarkHash6000(b *testing.B) {
	f, o, names := monorepo(b)
	s := snap(b, f, o.url(), "main")
	for b.Loop() {
		for _, name := range names {
			if h, err := s.Hash(rutter.InputFile, name); err != nil || h == "" {
				b.Fatal(h, err)
			}
		}
	}
}

// BenchmarkHash6000NewCommit is the same look-ups on a commit that was just pushed.
func BenchmarkHash6000NewCommit(b *testing.B) {
	f, o, names := monorepo(b)
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		o.commit("main", names[0], fmt.Sprint(n))
		s := snap(b, f, o.url(), "main")
		b.StartTimer()
		for _, name := range names {
			if h, err := s.Hash(rutter.InputFile, name); err != nil || h == "" {
				b.Fatal(h, err)
			}
		}
	}
}

func BenchmarkReadFile(b *testing.B) {
	f, o, names := monorepo(b)
	s := snap(b, f, o.url(), "main")
	b.Run("cold", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if i%len(names) == 0 {
				f.blobs = newCache[[]byte](64 << 20)
			}
			if _, err := s.ReadFile(names[i%len(names)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("warm", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := s.ReadFile(names[i%len(names)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPush is what one push costs: a look-up, a fetch and a new Snapshot.
func BenchmarkPush(b *testing.B) {
	f, o, names := monorepo(b)
	snap(b, f, o.url(), "main")
	n := 0
	for b.Loop() {
		b.StopTimer()
		n++
		o.commit("main", names[0], fmt.Sprint("push", n))
		b.StartTimer()
		snap(b, f, o.url(), "main")
	}
}
