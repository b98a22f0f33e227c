package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// item is an entry of an archive that a test packs.
type item struct {
	name string
	body string
	kind byte
	link string
	mode int64
	pax  map[string]string
}

// archive writes a tar archive with exactly these entries, whatever they are.
func archive(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, i := range items {
		h := &tar.Header{Name: i.name, Typeflag: i.kind, Linkname: i.link, Mode: i.mode, PAXRecords: i.pax}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(i.body))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, i.body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zip(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func openStore(t testing.TB, dir string, l Limits) *Store {
	t.Helper()
	s, err := OpenStore(StoreOptions{Dir: dir, Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(s *Store, key string, data []byte, strip bool) (*Tree, error) {
	return s.Put(func(b *Builder) (string, error) { return key, Tar(b, bytes.NewReader(data), strip) }, nil)
}

func TestArchivesThatAreRefused(t *testing.T) {
	deep := strings.Repeat("d/", 50) + "f"
	tests := []struct {
		name   string
		reason string
		data   []byte
		strip  bool
		limits Limits
		want   string
	}{
		{name: "absolute", data: archive(t, item{name: "/etc/passwd", body: "x"}), want: "absolute name"},
		{name: "parent", data: archive(t, item{name: "a/../../sentinel", body: "x"}), want: ".. in its name"},
		{name: "parent that comes back", reason: "another program may read it differently", data: archive(t, item{name: "a/../b", body: "x"}), want: ".. in its name"},
		{name: "parent in a chart", data: archive(t, item{name: "c/../../sentinel", body: "x"}), strip: true, want: ".. in its name"},
		{name: "backslash", data: archive(t, item{name: `a\..\..\b`, body: "x"}), want: "backslash"},
		{name: "control character", data: archive(t, item{name: "a\x1b[31m", body: "x"}), want: "control character"},
		{name: "line break", data: archive(t, item{name: "a\nb", body: "x"}), want: "control character"},
		{name: "C1 control", data: archive(t, item{name: "a\u009bb", body: "x"}), want: "control character"},
		{name: "not UTF-8", data: archive(t, item{name: "a\xff", body: "x"}), want: "not UTF-8"},
		{name: "absolute symlink", data: archive(t, item{name: "l", kind: tar.TypeSymlink, link: "/etc"}), want: "leads out"},
		{name: "symlink out", data: archive(t, item{name: "a/l", kind: tar.TypeSymlink, link: "../../x"}), want: "leads out"},
		{name: "symlink to the parent", data: archive(t, item{name: "l", kind: tar.TypeSymlink, link: ".."}), want: "leads out"},
		{name: "symlink out of a chart", reason: "the top folder is no cover", data: archive(t, item{name: "c/l", kind: tar.TypeSymlink, link: "../x"}), strip: true, want: "leads out"},
		{name: "file through a symlink", data: archive(t, item{name: "d", kind: tar.TypeSymlink, link: "e"}, item{name: "d/f", body: "x"}), want: "no folder"},
		{name: "hard link out", data: archive(t, item{name: "l", kind: tar.TypeLink, link: "../x"}), want: ".. in its name"},
		{name: "absolute hard link", data: archive(t, item{name: "l", kind: tar.TypeLink, link: "/etc/passwd"}), want: "absolute"},
		{name: "hard link to nothing", data: archive(t, item{name: "l", kind: tar.TypeLink, link: "x"}), want: "no earlier file"},
		{name: "hard link to a symlink", data: archive(t, item{name: "s", kind: tar.TypeSymlink, link: "f"}, item{name: "l", kind: tar.TypeLink, link: "s"}), want: "no earlier file"},
		{name: "device", data: archive(t, item{name: "null", kind: tar.TypeChar}), want: "only files"},
		{name: "block device", data: archive(t, item{name: "sda", kind: tar.TypeBlock}), want: "only files"},
		{name: "pipe", data: archive(t, item{name: "p", kind: tar.TypeFifo}), want: "only files"},
		{name: "two of a name", data: archive(t, item{name: "a", body: "1"}, item{name: "a", body: "2"}), want: "two entries"},
		{name: "two of a name, spelt differently", data: archive(t, item{name: "a", body: "1"}, item{name: "./a", body: "2"}), want: "two entries"},
		{name: "folder over a file", data: archive(t, item{name: "a", body: "1"}, item{name: "a/", kind: tar.TypeDir}), want: "two entries"},
		{name: "file over a folder", data: archive(t, item{name: "a/b", body: "1"}, item{name: "a", body: "2"}), want: "two entries"},
		{name: "file within a file", data: archive(t, item{name: "a", body: "1"}, item{name: "a/b", body: "2"}), want: "no folder"},
		{name: "the root as a file", data: archive(t, item{name: ".", kind: tar.TypeSymlink, link: "x"}), want: "name of a folder"},
		{name: "two folders at the top of a chart", data: archive(t, item{name: "a/Chart.yaml", body: "x"}, item{name: "b/x", body: "x"}), strip: true, want: "a chart lies in one folder"},
		{name: "file at the top of a chart", data: archive(t, item{name: "a/Chart.yaml", body: "x"}, item{name: "b", body: "x"}), strip: true, want: "a chart lies in one folder"},
		{name: "only a file at the top of a chart", data: archive(t, item{name: "Chart.yaml", body: "x"}), strip: true, want: "no folder; a chart lies in one folder"},
		{name: "deep", data: archive(t, item{name: deep, body: "x"}), want: "folders deep"},
		{name: "long name", data: archive(t, item{name: strings.Repeat("x", 2000), body: "x"}), want: "2000 bytes"},
		{name: "many entries", data: archive(t, item{name: "a"}, item{name: "b"}, item{name: "c"}), limits: Limits{Entries: 2}, want: "more than 2 entries"},
		{name: "large file", data: archive(t, item{name: "a", body: "12345"}), limits: Limits{EntryBytes: 4}, want: "more than 4"},
		{name: "large in all", data: archive(t, item{name: "a", body: "123"}, item{name: "b", body: "123"}), limits: Limits{TotalBytes: 5}, want: "more than 5 bytes together"},
		{name: "bomb", reason: "10 MiB of nothing are 10 kB", data: zip(t, archive(t, item{name: "a", body: strings.Repeat("\x00", 10<<20)})), limits: Limits{RatioFrom: 1 << 20}, want: "times its size"},
		{name: "bomb after the end", data: zip(t, append(archive(t, item{name: "a", body: "x"}), make([]byte, 10<<20)...)), limits: Limits{RatioFrom: 1 << 20}, want: "times its size"},
		{name: "bomb by headers", reason: "what is no content counts as well", data: zip(t, headers(t, 20)), limits: Limits{TotalBytes: 1 << 10, Ratio: 1 << 30}, want: "unfolds to more than"},
		{name: "truncated gzip", data: zip(t, archive(t, item{name: "a", body: "hello"}))[:60], want: "damaged"},
		{name: "truncated tar", data: archive(t, item{name: "a", body: strings.Repeat("x", 2000)})[:1500], want: "damaged"},
		{name: "no archive", data: []byte("<html>404</html>"), want: "damaged"},
		{name: "empty", data: archive(t), want: "empty"},
		{name: "nothing", data: nil, want: "empty"},
		{name: "checksum", data: flip(zip(t, archive(t, item{name: "a", body: "hello"})), -6), want: "damaged"},
		{name: "sparse", data: sparseOf(t), want: "only files"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "sentinel"), []byte("untouched"), 0o600); err != nil {
				t.Fatal(err)
			}
			s := openStore(t, filepath.Join(dir, "a", "b"), tc.limits)
			_, err := put(s, "k", tc.data, tc.strip)
			if err == nil || !strings.Contains(err.Error(), tc.want) || rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Fatalf("got error %v (%s), want one with %q; %s", err, rutter.CodeOf(err), tc.want, tc.reason)
			}
			if _, ok := s.Get("k"); ok {
				t.Error("what was refused was stored")
			}
			checkFiles(t, dir, "sentinel")
		})
	}
}

// checkFiles fails when there is any file but the named ones, at any depth.
func checkFiles(t *testing.T, dir string, want ...string) {
	t.Helper()
	var got []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, path)
			got = append(got, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files on disk (-want +got):\n%s", diff)
	}
}

// headers is an archive of empty files with headers of nearly a mebibyte.
func headers(t testing.TB, n int) []byte {
	var items []item
	for i := range n {
		items = append(items, item{name: string(rune('a' + i)), pax: map[string]string{"RUTTER.x": strings.Repeat("y", 900_000)}})
	}
	return archive(t, items...)
}

func flip(data []byte, at int) []byte {
	data[len(data)+at] ^= 0xff
	return data
}

// sparseOf is an archive with an old GNU sparse file, which the library does
// not write: the header is made by hand.
func sparseOf(t testing.TB) []byte {
	data := archive(t, item{name: "sparse", body: ""})
	h := data[:512]
	h[156] = tar.TypeGNUSparse
	copy(h[257:], "ustar  \x00")
	mendHeader(h)
	return data
}

func TestTree(t *testing.T) {
	data := archive(t,
		item{name: "pax_global_header", kind: tar.TypeXGlobalHeader, pax: map[string]string{"comment": "from git"}},
		item{name: "c/", kind: tar.TypeDir},
		item{name: "c/Chart.yaml", body: "name: c\n"},
		item{name: "./c/templates/a.yaml", body: "a: 1\n"},
		item{name: "c/run.sh", body: "#!/bin/sh\n", mode: 0o755},
		item{name: "c/values.yaml", kind: tar.TypeSymlink, link: "files/../Chart.yaml"},
		item{name: "c/files/up", kind: tar.TypeSymlink, link: "../templates"},
		item{name: "c/files/loop", kind: tar.TypeSymlink, link: "loop"},
		item{name: "c/files/out", kind: tar.TypeSymlink, link: "up/../../templates"},
		item{name: "c/same", kind: tar.TypeLink, link: "c/Chart.yaml"},
		item{name: "c/empty/", kind: tar.TypeDir},
		item{name: "c/templates/", kind: tar.TypeDir},
	)
	for name, packed := range map[string][]byte{"plain": data, "gzip": zip(t, data)} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, t.TempDir(), Limits{})
			tree, err := put(s, "k", packed, true)
			if err != nil {
				t.Fatal(err)
			}
			snap := tree.Snapshot("chart c", "1.0.0")
			reads := map[string]string{
				"Chart.yaml": "name: c\n", "same": "name: c\n", "values.yaml": "name: c\n", "files/up/a.yaml": "a: 1\n",
				"files/loop": "!file does not exist", "files/out/a.yaml": "!file does not exist", "missing": "!file does not exist",
				"templates": "!is a directory", "Chart.yaml/x": "!file does not exist", "../x": "!invalid argument", "/etc/passwd": "!invalid argument",
			}
			for path, want := range reads {
				got, err := fs.ReadFile(snap, path)
				if problem, ok := strings.CutPrefix(want, "!"); ok {
					if err == nil || !strings.Contains(err.Error(), problem) {
						t.Errorf("%s: got %q, %v; want an error with %q", path, got, err, problem)
					}
				} else if err != nil || string(got) != want {
					t.Errorf("%s: got %q, %v; want %q", path, got, err, want)
				}
			}
			if info, err := snap.Stat("run.sh"); err != nil || info.Mode() != 0o555 || !info.ModTime().IsZero() {
				t.Errorf("run.sh: %v, %v", info, err)
			}
		})
	}
}

func TestTreeIsAFileSystem(t *testing.T) {
	s := openStore(t, t.TempDir(), Limits{})
	tree, err := put(s, "k", archive(t, item{name: "d/a", body: "1"}, item{name: "d/e/b", body: "2", mode: 0o700}, item{name: "c", kind: tar.TypeSymlink, link: "d/a"}, item{name: "empty/", kind: tar.TypeDir}), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(tree.Snapshot("x", "r"), "d/a", "d/e/b", "c", "empty"); err != nil {
		t.Error(err)
	}
}

func TestHashesAreGits(t *testing.T) {
	s := openStore(t, t.TempDir(), Limits{})
	tree, err := put(s, "k", archive(t, item{name: "hello", body: "hello\n"}, item{name: "d/x"}), false)
	if err != nil {
		t.Fatal(err)
	}
	snap := tree.Snapshot("x", "r")
	tests := []struct {
		kind rutter.InputKind
		path string
		want string
	}{
		{rutter.InputFile, "hello", "ce013625030ba8dba906f756967f9e9ca394464a"}, // git hash-object
		{rutter.InputFile, "d/x", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"},
		{rutter.InputFile, "d", ""},
		{rutter.InputFile, "gone", ""},
		{rutter.InputList, "hello", ""},
		{rutter.InputStat, "hello", "file"},
		{rutter.InputStat, "d", "dir"},
		{rutter.InputStat, "gone", ""},
	}
	for _, tc := range tests {
		if got, err := snap.Hash(tc.kind, tc.path); err != nil || got != tc.want {
			t.Errorf("%s of %s: got %q, %v; want %q", tc.kind, tc.path, got, err, tc.want)
		}
	}
	list, _ := snap.Hash(rutter.InputList, ".")
	other, err := put(s, "k2", archive(t, item{name: "d/y"}, item{name: "hello", body: "changed"}), false)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := other.Snapshot("x", "r").Hash(rutter.InputList, "."); again != list || len(list) != 40 {
		t.Errorf("a listing depends on names and kinds only: %q, %q", list, again)
	}
}

func TestStoreSurvivesRestarts(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir, Limits{})
	data := archive(t, item{name: "a", body: "content"})
	if _, err := put(s, "k", data, false); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new-XYZ"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, dir, Limits{})
	tree, ok := s.Get("k")
	if !ok {
		t.Fatal("a restart lost the tree")
	}
	if got, err := fs.ReadFile(tree.Snapshot("x", "r"), "a"); err != nil || string(got) != "content" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, ok := s.Get("another"); ok {
		t.Error("found what was never stored")
	}
	checkFiles(t, dir, nameOf("k")+suffix)
}

func TestDamagedPacksAreDropped(t *testing.T) {
	data := archive(t, item{name: "a", body: strings.Repeat("content ", 100)}, item{name: "b", body: "more"})
	tests := []struct {
		name   string
		damage func(p []byte) []byte
	}{
		{"content", func(p []byte) []byte { p[3] ^= 1; return p }},
		{"table", func(p []byte) []byte { p[len(p)-endSize-5] ^= 1; return p }},
		{"sum", func(p []byte) []byte { p[len(p)-1] ^= 1; return p }},
		{"magic", func(p []byte) []byte { p[len(p)-endSize] ^= 1; return p }},
		{"offset", func(p []byte) []byte {
			binary.BigEndian.PutUint64(p[len(p)-endSize+len(magic):], 1<<63)
			return p
		}},
		{"cut", func(p []byte) []byte { return p[:len(p)/2] }},
		{"short", func(p []byte) []byte { return p[:7] }},
		{"empty", func([]byte) []byte { return nil }},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir, Limits{})
			if _, err := put(s, "k", data, false); err != nil {
				t.Fatal(err)
			}
			_ = s.Close()
			file := filepath.Join(dir, nameOf("k")+suffix)
			p, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, tc.damage(p), 0o600); err != nil {
				t.Fatal(err)
			}
			s = openStore(t, dir, Limits{})
			if _, ok := s.Get("k"); ok {
				t.Fatal("a damaged tree was used")
			}
			if _, err := put(s, "k", data, false); err != nil {
				t.Fatal(err)
			}
			if tree, ok := s.Get("k"); !ok || string(must(fs.ReadFile(tree.Snapshot("x", "r"), "b"))) != "more" {
				t.Error("what was fetched again cannot be read")
			}
		})
	}
	t.Run("of another key", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir, Limits{})
		_, _ = put(s, "k", data, false)
		if err := os.Rename(filepath.Join(dir, nameOf("k")+suffix), filepath.Join(dir, nameOf("other")+suffix)); err != nil {
			t.Fatal(err)
		}
		if _, ok := openStore(t, dir, Limits{}).Get("other"); ok {
			t.Error("a pack was taken for another")
		}
	})
	t.Run("while it is open", func(t *testing.T) {
		dir := t.TempDir()
		s := openStore(t, dir, Limits{})
		tree, err := put(s, "k", data, false)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, nameOf("k")+suffix), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt([]byte("XX"), 10); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		_, err = fs.ReadFile(tree.Snapshot("x", "r"), "a")
		if rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("damaged content was read: %v", err)
		}
		if _, ok := s.Get("k"); ok {
			t.Error("the damaged tree stayed in the store")
		}
	})
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

func TestStoreIsBounded(t *testing.T) {
	dir := t.TempDir()
	s, err := OpenStore(StoreOptions{Dir: dir, Bytes: 25_000, Open: 2})
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("x", 10_000)
	first, err := put(s, "1", archive(t, item{name: "a", body: body}), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"2", "3"} {
		if _, ok := s.Get("1"); !ok {
			t.Fatalf("before %s: what was used last was dropped", key)
		}
		if _, err := put(s, key, archive(t, item{name: "a", body: body}), false); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := s.Get("2"); ok {
		t.Error("the tree that was used longest ago was kept")
	}
	if _, err := put(s, "4", archive(t, item{name: "a", body: body}), false); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"1": false, "3": true, "4": true} {
		if _, ok := s.Get(key); ok != want {
			t.Errorf("%s: stored is %v, want %v", key, ok, want)
		}
	}
	if got, err := fs.ReadFile(first.Snapshot("x", "r"), "a"); err != nil || string(got) != body {
		t.Errorf("a tree in use cannot be read after it was dropped: %v", err)
	}
	if s.opened != 2 || s.used > 25_000 {
		t.Errorf("%d open, %d bytes", s.opened, s.used)
	}
	_ = s.Close()
	if _, err := put(s, "5", archive(t, item{name: "a"}), false); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a closed store: %v", err)
	}
}

// FuzzUnpack holds archives to what must hold for every tree: its names are
// clean and unique, all of it can be read, and it stays within its limits. With
// mend, the checksums of headers are made right, so that what is in them counts.
func FuzzUnpack(f *testing.F) {
	seeds := [][]byte{
		archive(f, item{name: "c/Chart.yaml", body: "x"}, item{name: "c/l", kind: tar.TypeSymlink, link: "Chart.yaml"}, item{name: "c/h", kind: tar.TypeLink, link: "c/Chart.yaml"}),
		archive(f, item{name: "../x", body: "x"}), archive(f, item{name: "a/", kind: tar.TypeDir}, item{name: "a/" + strings.Repeat("long/", 50) + "f", body: "x"}),
		sparseOf(f), []byte("no archive"),
	}
	for _, s := range seeds {
		f.Add(s, true, false)
		f.Add(s, false, true)
		f.Add(zip(f, s), false, false)
	}
	limits := Limits{Entries: 50, EntryBytes: 1 << 16, TotalBytes: 1 << 17, RatioFrom: 1 << 16, Depth: 10, PathBytes: 200}.withDefaults()
	f.Fuzz(func(t *testing.T, data []byte, strip, mend bool) {
		if mend {
			data = mended(data)
		}
		var out bytes.Buffer
		b := newBuilder(&out, limits)
		if err := Tar(b, bytes.NewReader(data), strip); err != nil {
			if code := rutter.CodeOf(err); code != rutter.CodeInvalid {
				t.Fatalf("code %s: %v", code, err)
			}
			return
		}
		if err := b.finish("k"); err != nil {
			t.Fatal(err)
		}
		if b.offset > limits.TotalBytes || len(b.records) > limits.Entries {
			t.Fatalf("%d bytes, %d entries", b.offset, len(b.records))
		}
		tree := treeOf(bytes.NewReader(out.Bytes()), b.records, func() { t.Error("damaged") })
		if err := tree.verify(); err != nil {
			t.Fatal(err)
		}
		snap := tree.Snapshot("x", "r")
		var walk func(dir string)
		walk = func(dir string) {
			entries, err := fs.ReadDir(snap, dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				name := strings.TrimPrefix(dir+"/"+e.Name(), "./")
				if clean, err := cleanName(name, limits); err != nil || clean != name || !fs.ValidPath(name) {
					t.Fatalf("name %q: %v", name, err)
				}
				switch {
				case e.IsDir():
					walk(name)
				case e.Type().IsRegular():
					if data, err := fs.ReadFile(snap, name); err != nil || int64(len(data)) > limits.EntryBytes {
						t.Fatalf("%s has %d bytes, %v", name, len(data), err)
					}
				default:
					_, _ = fs.ReadFile(snap, name)
				}
			}
		}
		walk(".")
	})
}

// mended makes the checksum right in every block that could be a header.
func mended(data []byte) []byte {
	data = bytes.Clone(data)
	for h := data; len(h) >= 512; h = h[512:] {
		if bytes.Equal(h[257:262], []byte("ustar")) {
			mendHeader(h[:512])
		}
	}
	return data
}

func mendHeader(h []byte) {
	copy(h[148:156], "        ")
	sum := 0
	for _, c := range h {
		sum += int(c)
	}
	copy(h[148:156], fmt.Sprintf("%06o\x00 ", sum))
}
