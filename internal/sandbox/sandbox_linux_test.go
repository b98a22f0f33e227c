package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// TestMain is also the process that TestKilled kills.
func TestMain(m *testing.M) {
	MaybeChild()
	if dir := os.Getenv("SANDBOX_TEST_HANG"); dir != "" {
		hang(dir)
	}
	os.Exit(m.Run())
}

// walls are the forms of the sandbox: each wall alone must hold, so a test that
// passes here fails when that wall is taken away.
var walls = map[string]level{
	"both":       {namespaces: true, landlock: true},
	"namespaces": {namespaces: true},
	"landlock":   {landlock: true},
}

// each runs a test behind every wall that this kernel has.
func each(t *testing.T, test func(t *testing.T, s *Sandbox)) {
	t.Helper()
	for name, l := range walls {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{Require: EitherWall})
			has, err := s.allowed(t.Context())
			if err != nil {
				t.Skipf("no sandbox on this machine: %v", err)
			}
			if l.namespaces && !has.namespaces || l.landlock && !has.landlock {
				t.Skip("this kernel does not have it")
			}
			s.level = &l
			test(t, s)
		})
	}
}

func open(t *testing.T, o Options) *Sandbox {
	t.Helper()
	if o.TempDir == "" {
		o.TempDir = outside(t)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return s
}

// outside is a folder that everybody can use, outside of every workspace.
func outside(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wipe(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func space(t *testing.T, s *Sandbox) *Workspace {
	t.Helper()
	w, err := s.Workspace()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func bash(script string) Command {
	return Command{Args: []string{"bash", "-c", script}, Limits: Limits{Time: time.Minute, Grace: time.Second}}
}

// TestWalls tries to do what must not be possible. Every script prints
// "escaped" when it is.
func TestWalls(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		dir := outside(t)
		sentinel := filepath.Join(dir, "sentinel")
		writeFile(t, sentinel, "escaped", 0o666)
		open := filepath.Join(dir, "open")
		if err := os.Mkdir(open, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(open, 0o777); err != nil { //nolint:gosec // that is the test
			t.Fatal(err)
		}
		tcp := listen(t, "tcp", "127.0.0.1:0")
		socket := listen(t, "unix", filepath.Join(dir, "socket"))
		if err := os.Chmod(socket, 0o777); err != nil { //nolint:gosec // that is the test
			t.Fatal(err)
		}
		victim := exec.CommandContext(t.Context(), "sleep", "60")
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = victim.Process.Kill(); _ = victim.Wait() }()
		neighbour := space(t, s)
		if err := neighbour.WriteFile("secret", []byte("escaped"), false); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(neighbour.dir, 0o755); err != nil { //nolint:gosec // as if the user were the same
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(neighbour.dir, treeDir), 0o755); err != nil { //nolint:gosec // likewise
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(tcp)
		for name, script := range map[string]string{
			"read a file outside":              "cat " + sentinel,
			"read it through a link":           "ln -s " + sentinel + " l && cat l",
			"read it through the parents":      "cat ../../../../../../../.." + sentinel,
			"read it through /proc":            "cat /proc/1/root" + sentinel + " /proc/self/root" + sentinel,
			"link it":                          "ln " + sentinel + " here && cat here",
			"list a folder outside":            "ls " + dir + " | grep -q sentinel && echo escaped",
			"read the passwords":               "grep -q : /etc/shadow && echo escaped",
			"write to a file outside":          "echo x >> " + sentinel + " && echo escaped",
			"write to a folder outside":        "echo x > " + open + "/new && echo escaped",
			"write through a link":             "ln -s " + open + " d && echo x > d/new && echo escaped",
			"change the system":                "touch /usr/bin/rutter-escaped && echo escaped",
			"write to the root":                "touch /escaped && echo escaped",
			"read the neighbour":               "cat " + neighbour.dir + "/repo/secret",
			"connect to the machine":           "exec 3<>/dev/tcp/127.0.0.1/" + port + " && echo escaped",
			"send a datagram":                  "echo x > /dev/udp/127.0.0.1/" + port + " && echo escaped",
			"connect to a local socket":        pythonic("import socket; s=socket.socket(socket.AF_UNIX); s.connect('" + socket + "'); print('escaped')"),
			"open a raw socket":                pythonic("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('escaped')"),
			"stop a process outside":           fmt.Sprintf("kill -9 %d && echo escaped", victim.Process.Pid),
			"read a process's environment":     fmt.Sprintf("cat /proc/%d/environ > e && [ -s e ] && echo escaped", os.Getpid()),
			"read the starter's":               "cat /proc/$PPID/environ | tr '\\0' '\\n' | grep -q PATH && echo escaped",
			"become root":                      "unshare -Ur true && echo escaped",
			"mount":                            "mount -t tmpfs x . && echo escaped",
			"change the root":                  pythonic("import os; os.chroot('.'); print('escaped')"),
			"trace the starter":                pythonic("import ctypes,os; r=ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0); print('escaped' if r==0 else 'no')"),
			"use a capability":                 "chown 0:0 . && echo escaped; [ $(grep CapEff /proc/self/status | tr -d 'CapEf:\\t0') ] && echo escaped",
			"inherit a file":                   "exec 2>/dev/null; for fd in 3 4 5 6 7 8 9; do (true <&$fd) && echo escaped $fd; done",
			"read from the standard input":     "read -r x && echo escaped",
			"see our environment":              "env | grep -q SANDBOX_TEST && echo escaped",
			"write to the terminal":            "echo x > /dev/tty && echo escaped",
			"make memory that none is charged": pythonic("import os; os.memfd_create('x'); print('escaped')"),
		} {
			t.Run(name, func(t *testing.T) {
				t.Setenv("SANDBOX_TEST", "x")
				res, err := space(t, s).Run(t.Context(), bash(script))
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(res.Stdout), "escaped") {
					t.Errorf("it is possible: %s%s", res.Stdout, res.Stderr)
				}
			})
		}
		if data, err := os.ReadFile(sentinel); err != nil || string(data) != "escaped" {
			t.Errorf("the sentinel is %q, %v", data, err)
		}
		if left, _ := os.ReadDir(open); len(left) > 0 {
			t.Errorf("something was written outside: %v", left)
		}
	})
}

// pythonic is a script for what the shell has no word for.
func pythonic(program string) string { return "python3 -c \"" + program + "\"" }

func listen(t *testing.T, network, address string) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello\n"))
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// TestInside is what must be possible.
func TestInside(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		w := space(t, s)
		for _, err := range []error{
			w.Mkdir("app"), w.WriteFile("app/values", []byte("v1"), false), w.WriteFile("app/run", []byte("#!/bin/sh\necho ran\n"), true), w.Symlink("app/values", "link"),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, tc := range map[string]struct{ script, want string }{
			"files are there, with their modes": {"cat values ../link && ./run && [ ! -x values ] && echo fine", "v1v1ran\nfine\n"},
			"the tree can be written to":        {"mkdir -p a/b && echo x > a/x && mv a/x a/b/x && mv a/b ../b && cat ../b/x && rm -r ../b a && ls", "x\nrun\nvalues\n"},
			"home and temporary folder":         {`echo h > $HOME/h && t=$(mktemp) && echo t > $t && case $t in $TMPDIR/*) ;; *) echo not in TMPDIR;; esac; cat $HOME/h $t`, "h\nt\n"},
			"devices":                           {"head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 2 /dev/urandom | wc -c", "3\n2\n"},
			"a pipe and a child":                {"echo abc | tr b x; (exit 3) || echo $?", "axc\n3\n"},
			"the environment is what was given": {"env | grep -v -e ^PATH= -e ^HOME= -e ^TMPDIR= -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD=", "GIVEN=1\n"},
		} {
			t.Run(name, func(t *testing.T) {
				c := bash(tc.script)
				c.Dir, c.Env = "app", []string{"GIVEN=1"}
				res, err := w.Run(t.Context(), c)
				if err != nil || res.ExitCode != 0 {
					t.Fatalf("%v, exit %d: %s", err, res.ExitCode, res.Stderr)
				}
				if got := string(res.Stdout); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		}
	})
}

// TestNetwork: with leave, the machine's network is there.
func TestNetwork(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		_, port, _ := net.SplitHostPort(listen(t, "tcp", "127.0.0.1:0"))
		c := bash("exec 3<>/dev/tcp/127.0.0.1/" + port + " && cat <&3")
		c.Network = true
		res, err := space(t, s).Run(t.Context(), c)
		if err != nil || string(res.Stdout) != "hello\n" {
			t.Errorf("got %q, %v: %s", res.Stdout, err, res.Stderr)
		}
	})
}

// TestLimits runs what uses too much of something.
func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		for name, tc := range map[string]struct {
			script string
			limits Limits
			want   string
		}{
			"time":                    {"sleep 100", Limits{Time: 200 * time.Millisecond, Grace: 5 * time.Second}, "stopped after 200ms"},
			"time, and it won't end":  {"trap '' TERM; while :; do sleep 0.05; done", Limits{Time: 200 * time.Millisecond, Grace: 200 * time.Millisecond}, "stopped after 200ms"},
			"memory of one process":   {"head -c 400m /dev/zero | tail -n 1 | wc -c", Limits{Memory: 64 << 20}, "more memory than 64 MiB"},
			"memory of many together": {"for i in 1 2 3 4; do (x=$(head -c 30m /dev/zero | tr '\\0' a); sleep 100) & done; wait", Limits{Memory: 64 << 20}, "more memory than 64 MiB"},
			"output":                  {"yes", Limits{Output: 1 << 20}, "more than 1 MiB"},
			"disk":                    {"for i in 1 2 3 4 5 6 7 8 9 10; do head -c 8m /dev/zero > $HOME/f$i; done; sleep 100", Limits{Disk: 32 << 20}, "more than 32 MiB"},
		} {
			t.Run(name, func(t *testing.T) {
				c := bash(tc.script)
				if tc.limits.Time == 0 {
					tc.limits.Time = 90 * time.Second
				}
				c.Limits = tc.limits
				start := time.Now()
				res, err := space(t, s).Run(t.Context(), c)
				if rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got %v (exit %d, %s), want an error with %q", err, res.ExitCode, res.Stderr, tc.want)
				}
				if took := time.Since(start); took > time.Minute {
					t.Errorf("it took %s", took)
				}
			})
		}
		t.Run("disk without names", func(t *testing.T) {
			c := bash("for fd in 3 4 5 6 7; do eval \"exec $fd>f; rm f; head -c 8m /dev/zero >&$fd\"; done; sleep 100")
			c.Limits = Limits{Time: 90 * time.Second, Disk: 32 << 20}
			if _, err := space(t, s).Run(t.Context(), c); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "more than 32 MiB") {
				t.Errorf("got %v", err)
			}
		})
		t.Run("one file", func(t *testing.T) {
			c := bash("head -c 8m /dev/zero > big; stat -c %s big")
			c.Disk = 4 << 20
			res, err := space(t, s).Run(t.Context(), c)
			if err != nil || strings.TrimSpace(string(res.Stdout)) != strconv.Itoa(4<<20) {
				t.Errorf("the file has %s bytes, %v", res.Stdout, err)
			}
		})
		t.Run("processes", func(t *testing.T) {
			c := bash("for i in $(seq 300); do sleep 5 & done 2>/dev/null; jobs -r | wc -l")
			c.Args = []string{"sh", "-c", "n=0; for i in $(seq 300); do (sleep 5) 2>/dev/null & done; ls -d /proc/[0-9]* 2>/dev/null | wc -l; echo done"}
			c.Processes = 40
			res, err := space(t, s).Run(t.Context(), c)
			if err != nil || strings.Contains(string(res.Stdout), "done") {
				t.Errorf("300 processes were started where 40 are allowed: %q, %v", res.Stdout, err)
			}
		})
		t.Run("fork bomb", func(t *testing.T) {
			c := bash(":(){ :|:& };: " + nap(0) + "; sleep 10")
			c.Limits = Limits{Time: 400 * time.Millisecond, Grace: 200 * time.Millisecond, Processes: 50}
			_, err := space(t, s).Run(t.Context(), c)
			if rutter.CodeOf(err) != rutter.CodeInvalid {
				t.Errorf("got %v", err)
			}
			if n := processes(t, nap(0)); n > 0 {
				t.Errorf("%d of its processes live", n)
			}
		})
	})
}

// nap is how long programs of this run of the tests sleep: they are found by it.
func nap(seconds int) string { return fmt.Sprintf("%d.%d", seconds, 10_000_000+os.Getpid()) }

// TestNothingSurvives: what a program leaves running is gone when it ends.
func TestNothingSurvives(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		res, err := space(t, s).Run(t.Context(), bash(strings.ReplaceAll("(setsid sleep LONG >/dev/null 2>&1 &) ; (sleep LONG &); nohup sleep LONG & sleep 0.1; echo out", "LONG", nap(9876))))
		if err != nil || string(res.Stdout) != "out\n" {
			t.Errorf("got %q, %v", res.Stdout, err)
		}
		if n := processes(t, nap(9876)); n > 0 {
			t.Errorf("%d processes live", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(200*time.Millisecond, cancel)
		if _, err := space(t, s).Run(ctx, bash("setsid sleep "+nap(9876)+" & sleep "+nap(9876))); rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("a run that is not wanted any more ends with %v", err)
		}
		if n := processes(t, nap(9876)); n > 0 {
			t.Errorf("%d processes live after a cancellation", n)
		}
	})
}

// processes counts those whose command line holds a text.
func processes(t *testing.T, text string) int {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if data, err := os.ReadFile(f); err == nil && strings.Contains(string(data), text) && !strings.Contains(string(data), "test.run") {
			n++
		}
	}
	return n
}

// TestEnd is how a program's end is told.
func TestEnd(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		for name, tc := range map[string]struct {
			cmd    Command
			exit   int
			signal string
			stderr string
		}{
			"status":        {bash("echo bad luck >&2; exit 7"), 7, "", "bad luck"},
			"signal":        {bash("kill -SEGV $$"), 139, "SIGSEGV", ""},
			"polite":        {Command{Args: []string{"sh", "-c", "exit 0"}}, 0, "", ""},
			"secrets":       {Command{Args: []string{"sh", "-c", "echo token hunter2hunter2 at https://me:pass@host/x >&2"}, Secrets: []string{"hunter2hunter2", "at"}}, 0, "", "token *** at https://***@host/x"},
			"colours":       {bash(`printf '\033[31mred\033[0m\007\n' >&2`), 0, "", "red"},
			"only the end":  {bash("seq 1 100000 >&2; echo last >&2"), 0, "", "last"},
			"where we were": {bash("echo $PWD/x >&2"), 0, "", "/repo/x"},
		} {
			t.Run(name, func(t *testing.T) {
				res, err := space(t, s).Run(t.Context(), tc.cmd)
				if err != nil {
					t.Fatal(err)
				}
				if res.ExitCode != tc.exit || res.Signal != tc.signal || !strings.HasSuffix(res.Stderr, tc.stderr) || len(res.Stderr) > maxStderr {
					t.Errorf("got %+v", res)
				}
				if regexp.MustCompile(`w-\d`).MatchString(res.Stderr) {
					t.Errorf("a random name is in the message: %q", res.Stderr)
				}
			})
		}
		for name, c := range map[string]Command{
			"no such program":  {Args: []string{"rutter-no-such-program"}},
			"not a program":    {Args: []string{"/etc/ssl"}},
			"no such folder":   {Args: []string{"true"}, Dir: "missing"},
			"program not seen": {Args: []string{"/proc/1/exe"}},
		} {
			if _, err := space(t, s).Run(t.Context(), c); rutter.CodeOf(err) != rutter.CodeUnavailable {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
}

// TestTools: the operator's folders are seen, and first.
func TestTools(t *testing.T) {
	dir := outside(t)
	writeFile(t, filepath.Join(dir, "true"), "#!/bin/sh\necho ours\n", 0o755)
	for name, l := range walls {
		s := open(t, Options{Tools: []string{dir}})
		if err := s.Check(t.Context()); err != nil {
			t.Skip(err)
		}
		s.level = &l
		res, err := space(t, s).Run(t.Context(), Command{Args: []string{"true"}})
		if err != nil || string(res.Stdout) != "ours\n" {
			t.Errorf("%s: got %q, %v: %s", name, res.Stdout, err, res.Stderr)
		}
		res, err = space(t, s).Run(t.Context(), bash("echo x >> "+dir+"/true && echo escaped"))
		if err != nil || len(res.Stdout) > 0 {
			t.Errorf("%s: a tool could be changed: %v", name, err)
		}
	}
	if _, err := New(Options{Tools: []string{"relative"}}); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

// TestParallel runs many at a time.
func TestParallel(t *testing.T) {
	each(t, func(t *testing.T, s *Sandbox) {
		var wg sync.WaitGroup
		for i := range 8 {
			w := space(t, s)
			wg.Go(func() {
				text := fmt.Sprint("mine ", i)
				if err := w.WriteFile("f", []byte(text), false); err != nil {
					t.Error(err)
				}
				res, err := w.Run(t.Context(), bash("sleep 0.1; ls $HOME $TMPDIR; cat f; echo x > $HOME/x; echo y > $TMPDIR/y"))
				if err != nil || !strings.HasSuffix(string(res.Stdout), text) || strings.Contains(string(res.Stdout), "x\n") {
					t.Errorf("got %q, %v: %s", res.Stdout, err, res.Stderr)
				}
			})
		}
		wg.Wait()
	})
}

// TestWipe: whatever a program leaves is removed, and nothing else.
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

// TestLeftovers: a session whose process is gone is removed by the next; one
// that lives is not.
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
	if err := os.Chmod(filepath.Join(foreign, fmt.Sprintf("rutter-sandbox-%d", os.Geteuid())), 0o777); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	if _, err := New(Options{TempDir: foreign}); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a folder that others can write to is used: %v", err)
	}
}

// hang runs a program until it is killed.
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

// TestKilled: when we are killed, what we started is gone, and the next start
// removes what it wrote.
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

// TestRequire: what the kernel does not give is an error that says what to do.
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

// TestOrdinaryUser runs the tests again as somebody who is not root.
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

func TestScrub(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                             "plain",
		"the key abcdef123456 and abcdef12": "the key *** and ***",
		"BEGIN line-one-of-the-key END":     "BEGIN *** END",
		"ssh://git:pw@host and http://h/p":  "ssh://***@host and http://h/p",
	} {
		if got := Scrub(in, []string{"abcdef12", "abcdef123456", "x\nline-one-of-the-key\n", "a"}); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
