package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter/localcluster/internal/datadir"
)

func put(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOneProcessAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "c")
	d, err := datadir.Claim(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Claim(path, false); err == nil || !strings.Contains(err.Error(), "runs in "+path) {
		t.Errorf("claimed twice: %v", err)
	}
	d.Release()
	again, err := datadir.Claim(path, false)
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	again.Release()
}

// TestEphemeralSparesOthers: a folder that is given by mistake loses nothing.
func TestEphemeralSparesOthers(t *testing.T) {
	home := t.TempDir()
	thesis := put(t, home, "thesis.tex")
	if _, err := datadir.Claim(home, true); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("a folder with somebody's files: %v", err)
	}
	dir := t.TempDir()
	d, err := datadir.Claim(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	put(t, dir, "etcd", "member", "db")
	late := put(t, dir, "late.txt") // came while the cluster ran
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{thesis, late} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("somebody's file is gone: %v", err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
	if err := os.Remove(late); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the empty folder is still there: %v", err)
	}
}

func TestAwaitRemoval(t *testing.T) {
	d, err := datadir.Claim(filepath.Join(t.TempDir(), "c"), false)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	got := make(chan error, 1)
	go func() { got <- d.AwaitRemoval(t.Context(), time.Millisecond) }()
	select {
	case err := <-got:
		t.Fatalf("nothing was removed: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	if err := os.RemoveAll(d.Path); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-got:
		if err == nil {
			t.Error("the end must have a cause")
		}
	case <-time.After(5 * time.Second):
		t.Fatal("the removal was not noticed")
	}
}
