package osdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/osdir"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

func folder(t *testing.T) (string, *osdir.Dir) {
	t.Helper()
	parent := t.TempDir()
	dir := filepath.Join(parent, "repo")
	for name, content := range map[string]string{"repo/a.txt": "hello\n", "repo/sub/b.txt": "b", "repo/.git/config": "secret", "outside.txt": "outside"} {
		file := filepath.Join(parent, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o750), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"in": "sub/b.txt", "out": "../outside.txt", "abs": "/etc/passwd", "dir": "sub"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := osdir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return dir, d
}

func TestFolder(t *testing.T) {
	_, d := folder(t)
	for name, want := range map[string]string{"a.txt": "hello\n", "in": "b", "dir/b.txt": "b"} {
		if got, err := d.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"out", "abs", ".git/config", ".git", "nope", "a.txt/x"} {
		if got, err := d.ReadFile(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if hash, err := d.Hash(rutter.InputFile, name); hash != "" || err != nil {
			t.Errorf("hash of %s: %q, %v", name, hash, err)
		}
	}
	if _, err := d.ReadFile("../outside.txt"); err == nil {
		t.Error("the folder can be left")
	}
	entries, err := d.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == ".git" {
			t.Error(".git is shown")
		}
	}
}

func TestHashes(t *testing.T) {
	dir, d := folder(t)
	same := rendertest.Snapshot(map[string]string{"a.txt": "hello\n"})
	want, err := same.Hash(rutter.InputFile, "a.txt")
	if err != nil {
		t.Fatal(err)
	}
	// git hash-object gives this for "hello\n".
	if got, err := d.Hash(rutter.InputFile, "a.txt"); err != nil || got != want || got != "ce013625030ba8dba906f756967f9e9ca394464a" {
		t.Errorf("%q, want %q, %v", got, want, err)
	}
	before, err := d.Hash(rutter.InputList, "sub")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a.txt"), []byte("changed"), 0o600), os.WriteFile(filepath.Join(dir, "sub/new"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Hash(rutter.InputFile, "a.txt"); err != nil || got == want {
		t.Errorf("a changed file keeps its hash: %v", err)
	}
	if got, err := d.Hash(rutter.InputList, "sub"); err != nil || got == before {
		t.Errorf("a changed folder keeps its hash: %v", err)
	}
	for name, want := range map[string]string{"a.txt": "file", "sub": "dir", "nope": ""} {
		if got, err := d.Hash(rutter.InputStat, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFolderThatIsNotThere(t *testing.T) {
	if _, err := osdir.Open(filepath.Join(t.TempDir(), "nope")); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Error(err)
	}
}
