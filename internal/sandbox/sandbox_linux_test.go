package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
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
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
		tcp := listen(t, "tcp", "127.0.0.1:0")
		socket := listen(t, "unix", filepath.Join(dir, "socket"))
		if err := os.Chmod(socket, 0o777); err != nil {
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
		if err := os.Chmod(neighbour.dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(neighbour.dir, treeDir), 0o755); err != nil {
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

// nap is how long programs of this run of the tests sleep: they are found by it.

// TestNothingSurvives: what a program leaves running is gone when it ends.

// processes counts those whose command line holds a text.

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

// TestLeftovers: a session whose process is gone is removed by the next; one

// that lives is not.

// hang runs a program until it is killed.

// TestKilled: when we are killed, what we started is gone, and the next start

// removes what it wrote.

// TestRequire: what the kernel does not give is an error that says what to do.

// TestOrdinaryUser runs the tests again as somebody who is not root.

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
