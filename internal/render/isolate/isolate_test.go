package isolate_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/isolate"
)

// tasks are what the children of these tests can do.
func tasks() map[string]isolate.Task {
	return map[string]isolate.Task{
		"echo": func(_ isolate.Files, in []byte) ([]byte, error) { return in, nil },
		"pid":  func(isolate.Files, []byte) ([]byte, error) { return fmt.Append(nil, os.Getpid()), nil },
		"look": look,
		"fail": func(isolate.Files, []byte) ([]byte, error) {
			return nil, fmt.Errorf("task: %w", &rutter.Error{Code: rutter.CodeInvalid, File: "a/b.x", Line: 7, Message: "is wrong"})
		},
		"panic": func(isolate.Files, []byte) ([]byte, error) { panic("oh") },
		"exit":  func(isolate.Files, []byte) ([]byte, error) { os.Exit(3); return nil, nil },
		"loop": func(isolate.Files, []byte) ([]byte, error) {
			for n := 0; ; n++ {
			}
		},
		"grow": func(isolate.Files, []byte) ([]byte, error) {
			var all [][]byte
			for {
				b := make([]byte, 1<<20)
				for i := range b {
					b[i] = 1
				}
				all = append(all, b)
				if len(all) > 1<<40 { // never
					return b, nil
				}
			}
		},
		"huge":    func(_ isolate.Files, in []byte) ([]byte, error) { return make([]byte, 8<<30+len(in)), nil },
		"recurse": func(isolate.Files, []byte) ([]byte, error) { return fmt.Append(nil, recurse(1)), nil },
		"long":    func(isolate.Files, []byte) ([]byte, error) { return make([]byte, 3<<20), nil },
		"print": func(isolate.Files, []byte) ([]byte, error) {
			fmt.Println("a library that prints")
			return []byte("ok"), nil
		},
		"escape": escape,
	}
}

func recurse(n int) int {
	if n == 0 {
		return 0
	}
	return recurse(n+1) + n
}

// look says what it sees.
func look(files isolate.Files, _ []byte) ([]byte, error) {
	data, err := files.ReadFile("dir/f")
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	entries, err := files.ReadDir("dir")
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	info, err := files.Stat("dir")
	if err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	_, absent := files.ReadFile("absent")
	_, refused := files.Stat("refused")
	return fmt.Appendf(nil, "%s %s %v %v %v %v %s", data, entries[0].Name(), entries[0].IsDir(), info.IsDir(),
		errors.Is(absent, fs.ErrNotExist), errors.Is(refused, fs.ErrNotExist), rutter.CodeOf(refused)), nil
}

// escape tries what a task has no use for, and says what worked.
func escape(_ isolate.Files, in []byte) ([]byte, error) {
	var out []string
	try := func(what string, err error) {
		if err == nil {
			out = append(out, what)
		}
	}
	_, err := os.ReadFile(string(in))
	try("read", err)
	try("write", os.WriteFile(string(in)+".new", []byte("x"), 0o600))
	_, err = net.Dial("tcp", "127.0.0.1:1")
	if !strings.Contains(err.Error(), "too many open files") {
		out = append(out, "socket: "+err.Error())
	}
	try("run", exec.Command("/bin/true").Run())
	if len(os.Environ()) > 0 {
		out = append(out, "environment")
	}
	return []byte(strings.Join(out, ",")), nil
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == isolate.Command {
		isolate.Serve(tasks())
	}
	if len(os.Args) == 2 && os.Args[1] == parentMode {
		parent()
	}
	os.Exit(m.Run())
}

// parentMode makes this binary a parent whose child is busy for ever.
const parentMode = "be-a-parent"

func parent() {
	p := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}})
	pid, err := p.Evaluate(context.Background(), "pid", repo(), nil)
	fmt.Println(string(pid), err)
	_, _ = p.Evaluate(context.Background(), "loop", repo(), nil)
}

func TestChildDiesWithItsParent(t *testing.T) {
	cmd := exec.Command(os.Args[0], parentMode)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // let the child get busy
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("the child %d outlives its parent", pid)
}

func pool(t *testing.T) *isolate.Pool {
	t.Helper()
	p := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}, MaxMemory: 64 << 20, MaxOutput: 2 << 20})
	t.Cleanup(p.Close)
	return p
}

// files refuse one path with an error of their own.
type files struct{ fstest.MapFS }

func (f files) Stat(name string) (fs.FileInfo, error) {
	if name == "refused" {
		return nil, rutter.Errorf(rutter.CodeForbidden, "not this one")
	}
	return f.MapFS.Stat(name)
}

func repo() files { return files{fstest.MapFS{"dir/f": {Data: []byte("content")}}} }

func TestEvaluate(t *testing.T) {
	sentinel := filepath.Join(t.TempDir(), "sentinel")
	if err := os.WriteFile(sentinel, []byte("SENTINEL"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		task, in, want string
		code           rutter.Code
		reason         string
	}{
		{task: "echo", in: "hello", want: "hello"},
		{task: "look", want: "content f false true true false forbidden", reason: "files and errors cross the border"}, //nolint:dupword // answers in a row
		{task: "fail", code: rutter.CodeInvalid, want: "a/b.x:7: is wrong", reason: "an error keeps its code and place"},
		{task: "print", want: "ok", reason: "the conversation has its own channel"},
		{task: "escape", in: sentinel, want: "", reason: "a child opens nothing"},
		{task: "panic", code: rutter.CodeInternal, want: "panic failed unexpectedly: oh"},
		{task: "exit", code: rutter.CodeInternal, want: "exit ended unexpectedly"},
		{task: "grow", code: rutter.CodeInvalid, want: "grow needs more than 64 MiB of memory"},
		{task: "huge", code: rutter.CodeInvalid, want: "huge needs more than 64 MiB of memory"},
		{task: "recurse", code: rutter.CodeInvalid, want: "recurse needs more than 64 MiB of memory", reason: "a stack is memory too"},
		{task: "long", code: rutter.CodeInvalid, want: "long makes more than 2 MiB"},
		{task: "nothing", code: rutter.CodeInternal, want: `no task is named "nothing"`},
	}
	p := pool(t)
	for _, tt := range tests {
		t.Run(tt.task, func(t *testing.T) {
			out, err := p.Evaluate(t.Context(), tt.task, repo(), []byte(tt.in))
			if rutter.CodeOf(err) != tt.code || err == nil && string(out) != tt.want || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("want %s %q, got %q, %s %v: %s", tt.code, tt.want, out, rutter.CodeOf(err), err, tt.reason)
			}
			if out, err := p.Evaluate(t.Context(), "echo", repo(), []byte("next")); err != nil || string(out) != "next" {
				t.Errorf("the next task: %q, %v", out, err)
			}
		})
	}
}

func TestTimeIsUp(t *testing.T) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("no more time"))
	defer cancel()
	began := time.Now()
	_, err := pool(t).Evaluate(ctx, "loop", repo(), nil)
	if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "loop was stopped: no more time") || time.Since(began) > 20*time.Second {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func TestChildrenAreUsedAgain(t *testing.T) {
	p := pool(t)
	pid := func() string {
		out, err := p.Evaluate(t.Context(), "pid", repo(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	first := pid()
	if pid() != first {
		t.Error("a child that behaves is not used again")
	}
	if _, err := p.Evaluate(t.Context(), "exit", repo(), nil); err == nil {
		t.Error("no error")
	}
	if pid() == first {
		t.Error("a dead child is used again")
	}
	seen := map[string]bool{}
	for range 250 {
		seen[pid()] = true
	}
	if len(seen) != 2 {
		t.Errorf("%d children did 250 tasks, want 2: one is replaced after 200", len(seen))
	}
	last := pid()
	p.Close()
	if pid() == last {
		t.Error("a child is used after its pool was closed")
	}
}

func TestIdleChildrenEnd(t *testing.T) {
	p := isolate.New(isolate.Options{Command: []string{os.Args[0], isolate.Command}, IdleTime: 20 * time.Millisecond})
	t.Cleanup(p.Close)
	out, err := p.Evaluate(t.Context(), "pid", repo(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if _, err := os.Stat("/proc/" + string(out)); err != nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("the child %s still waits", out)
}

func TestManyAtOnce(t *testing.T) {
	p := pool(t)
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			task, want := "echo", fmt.Sprint(i)
			if i%4 == 0 {
				task, want = "panic", ""
			}
			out, err := p.Evaluate(t.Context(), task, repo(), fmt.Append(nil, i))
			if string(out) != want || (err == nil) != (task == "echo") {
				t.Errorf("%d: %q, %v", i, out, err)
			}
		})
	}
	wg.Wait()
}

func TestNoSuchCommand(t *testing.T) {
	for _, command := range [][]string{nil, {"/does/not/exist"}} {
		if _, err := isolate.New(isolate.Options{Command: command}).Evaluate(t.Context(), "echo", repo(), nil); err == nil {
			t.Errorf("%v: no error", command)
		}
	}
	if _, err := isolate.New(isolate.Options{Command: []string{"/bin/true"}}).Evaluate(t.Context(), "echo", repo(), nil); rutter.CodeOf(err) != rutter.CodeInternal {
		t.Errorf("a command that serves nothing: %v", err)
	}
}
