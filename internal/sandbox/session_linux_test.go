package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func TestWipe(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := outside(t)
		keep := filepath.Join(dir, "keep")
		writeFile(t, keep, "x", 0o644)
		w, err := s.Workspace()
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Run(t.Context(), bash("mkdir -p a/b/c && touch a/b/c/f && ln -s "+dir+" a/out && chmod 000 a/b/c a/b; mkfifo p; echo x > r; chmod 400 r"))
		// Without a namespace of its own the warden may have been shut out, which ends the run.
		if err != nil && rutter.CodeOf(err) != rutter.CodeInvalid {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(keep); err != nil {
			t.Errorf("a file outside was removed: %v", err)
		}
	})
}

func TestLeftovers(t *testing.T) {
	dir := outside(t)
	alive, dead := open(t, Options{TempDir: dir}), open(t, Options{TempDir: dir})
	lives, dies := space(t, alive), space(t, dead)
	_ = dead.session.lock.Close() // as the kernel does for a process that ends
	open(t, Options{TempDir: dir})
	if _, err := os.Stat(lives.dir); err != nil {
		t.Errorf("a workspace in use is gone: %v", err)
	}
	if _, err := os.Stat(dies.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a leftover is still there: %v", err)
	}
	if os.Geteuid() == 0 {
		closed := filepath.Join(dir, "closed")
		if err := os.MkdirAll(filepath.Join(closed, "tmp"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := New(Options{TempDir: filepath.Join(closed, "tmp")}); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "chmod o+x") {
			t.Errorf("a folder that nobody can pass through is used: %v", err)
		}
	}
	foreign := outside(t)
	if err := os.Mkdir(filepath.Join(foreign, fmt.Sprintf("rutter-sandbox-%d", os.Geteuid())), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(foreign, fmt.Sprintf("rutter-sandbox-%d", os.Geteuid())), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{TempDir: foreign}); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a folder that others can write to is used: %v", err)
	}
}

func hang(dir string) {
	s, err := New(Options{TempDir: dir, Require: EitherWall})
	if err != nil {
		panic(err)
	}
	l := walls[os.Getenv("SANDBOX_TEST_WALL")]
	s.level = &l
	w, err := s.Workspace()
	if err != nil {
		panic(err)
	}
	_, _ = w.Run(context.Background(), bash("setsid sleep "+nap(4321)+" & echo x > f; sleep "+nap(4321)))
	panic("it ended")
}

func TestKilled(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := outside(t)
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_HANG="+dir, "SANDBOX_TEST_WALL="+filepath.Base(t.Name()))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		sleeps := fmt.Sprintf("sleep\x004321.%d", 10_000_000+cmd.Process.Pid)
		eventually(t, "it runs", func() bool { return processes(t, sleeps) == 2 })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		eventually(t, "nothing of it lives", func() bool { return processes(t, sleeps) == 0 })
		open(t, Options{TempDir: dir})
		left, _ := filepath.Glob(filepath.Join(dir, "*", "s-*"))
		if len(left) != 1 {
			t.Errorf("there are %v", left)
		}
	})
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2400 {
		if ok() {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func TestRequire(t *testing.T) {
	for name, tc := range map[string]struct {
		require Require
		has     level
		ok      bool
	}{
		"everything, and it is there":   {Everything, level{true, true}, true},
		"everything, no namespaces":     {Everything, level{false, true}, false},
		"everything, no Landlock":       {Everything, level{true, false}, false},
		"one wall, no namespaces":       {EitherWall, level{false, true}, true},
		"one wall, no Landlock":         {EitherWall, level{true, false}, true},
		"one wall, but there is no one": {EitherWall, level{false, false}, false},
	} {
		if err := enough(tc.require, tc.has, errors.ErrUnsupported); (err == nil) != tc.ok || err != nil && rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("all tests run as one already")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^Test(Walls|Limits|NothingSurvives|Wipe|Killed|Tools)$", "-test.failfast")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321, Groups: []uint32{}}}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/tmp"}
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
