package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func program(t *testing.T, elem ...string) string {
	t.Helper()
	path := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFind(t *testing.T) {
	top := t.TempDir()
	sub := filepath.Join(top, "a", "b")
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(sub)
	t.Setenv("RUTTER_LOCALCLUSTER", "")
	t.Setenv("PATH", "")
	beside := program(t, top, "bin", binary)

	if got, err := Find(); rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), "make build") {
		t.Errorf("a program in a folder above that is not our tree must not be run: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(top, "go.mod"), []byte(module+"\n\ngo 1.26.0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(); err != nil || got != beside {
		t.Errorf("in our tree: %q, %v", got, err)
	}
	named := program(t, top, "elsewhere", "lc")
	t.Setenv("RUTTER_LOCALCLUSTER", named)
	if got, err := Find(); err != nil || got != named {
		t.Errorf("named: %q, %v", got, err)
	}
	t.Setenv("RUTTER_LOCALCLUSTER", filepath.Join(top, "nothing"))
	if _, err := Find(); rutter.CodeOf(err) != rutter.CodeNotFound || !strings.Contains(err.Error(), "make build") {
		t.Errorf("named, but not there: %v", err)
	}
}

// TestStartTime tells a process from another one that got its number.
func TestStartTime(t *testing.T) {
	if startTime(os.Getpid()) == 0 {
		t.Error("this process has no start time")
	}
	if startTime(os.Getpid()) == startTime(1) {
		t.Error("this process and the first one started at the same time")
	}
	const none = 1 << 30
	if got := startTime(none); got != 0 {
		t.Errorf("no such process, but it started at %d", got)
	}
}
