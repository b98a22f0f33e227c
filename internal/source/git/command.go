package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// runner runs the git binary with an environment that holds nothing of this
// machine's or user's configuration.
type runner struct {
	bin string
	// home is an empty folder: no .netrc, no .ssh, no .gitconfig.
	home string
	// tmp is where the files that a login needs live while a command runs.
	tmp string
	// session holds both; held is its lock.
	session string
	held    *os.File
}

// command is one run of git.
type command struct {
	// bin is another program, where one is needed to speak to a server.
	bin  string
	args []string
	// dir is the repository (GIT_DIR); empty for none.
	dir string
	// env is the login's part of the environment.
	env []string
	// files are inherited by git; a lock stays held until git is gone.
	files []*os.File
	stdin string
}

// maxStderr bounds what is kept of a command's messages; maxStdout what a
// server may answer to a ref look-up.
const (
	maxStderr = 16 << 10
	maxStdout = 256 << 20
)

// exitError is a git that failed, with what it said.
type exitError struct {
	err    error
	stderr string
	sub    string
}

func (e *exitError) Error() string {
	return "git " + e.sub + ": " + e.err.Error() + ": " + lastLine(e.stderr)
}

func (e *exitError) Unwrap() error { return e.err }

// run runs git and returns its standard output. When ctx ends, git and
// everything it started are killed.
func (r *runner) run(ctx context.Context, c command) ([]byte, error) {
	cmd := exec.CommandContext(ctx, cmp.Or(c.bin, r.bin), c.args...)
	cmd.Dir = r.home
	cmd.Env = append(r.environ(), c.env...)
	if c.dir != "" {
		cmd.Env = append(cmd.Env, "GIT_DIR="+c.dir)
	}
	cmd.ExtraFiles = c.files
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	stdout, stderr := &bounded{limit: maxStdout, strict: true}, &bounded{limit: maxStderr}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	isolate(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if stdout.over {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "git %s answered with more than %d MiB", c.args[0], maxStdout>>20)
	}
	if err == nil {
		return stdout.Bytes(), nil
	}
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		err = ctxErr
	}
	return nil, &exitError{err: err, stderr: stderr.String(), sub: c.args[0]}
}

// isolate puts cmd in a process group of its own, which is killed as a whole,
// and which does not outlive this process.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = groupAttributes()
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// passed are variables of the operator's environment that git may see: how to
// find programs and how to get out of the network.
var passed = []string{"PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "TMPDIR"}

func (r *runner) environ() []string {
	env := make([]string, 0, 32)
	for _, name := range passed {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env,
		"HOME="+r.home, "XDG_CONFIG_HOME="+r.home, "LC_ALL=C", "LANG=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "SSH_ASKPASS_REQUIRE=never",
		"GIT_ALLOW_PROTOCOL=file:http:https:ssh", "GIT_PROTOCOL_FROM_USER=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_FLUSH=1")
}

// settings is configuration for one command, given by the environment.
type settings [][2]string

// base is what every command gets. Objects are checked when they arrive; what
// old but harmless tools have written is let through.
func base() settings {
	s := settings{
		{"protocol.version", "2"}, {"gc.auto", "0"}, {"maintenance.auto", "false"}, {"core.hooksPath", "/dev/null"},
		{"core.fsmonitor", "false"}, {"credential.helper", ""}, {"http.followRedirects", "initial"},
		{"fetch.fsckObjects", "true"}, {"fetch.recurseSubmodules", "false"}, {"submodule.recurse", "false"},
		{"fetch.writeCommitGraph", "false"}, {"advice.fetchShowForcedUpdates", "false"},
		{"http.lowSpeedLimit", "1"}, {"http.lowSpeedTime", "60"}, {"core.fsync", "committed,loose-object"},
	}
	for _, id := range []string{"zeroPaddedFilemode", "missingSpaceBeforeDate", "badTimezone", "badEmail", "missingEmail",
		"missingNameBeforeEmail", "missingSpaceBeforeEmail", "badDate", "badDateOverflow", "nullSha1", "multipleAuthors"} {
		s = append(s, [2]string{"fetch.fsck." + id, "ignore"})
	}
	return s
}

func (s settings) env() []string {
	env := make([]string, 0, 2*len(s)+1)
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(s)))
	for i, kv := range s {
		n := strconv.Itoa(i)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+kv[0], "GIT_CONFIG_VALUE_"+n+"="+kv[1])
	}
	return env
}

// newRunner finds git and prepares the folders that it may use.
func newRunner(bin, dir string) (*runner, error) {
	if bin == "" {
		bin = "git"
	}
	found, err := exec.LookPath(bin)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "the git program was not found: install the package git: %w", err)
	}
	if found, err = filepath.Abs(found); err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "finding git: %w", err)
	}
	r := &runner{bin: found}
	if err := r.startSession(filepath.Join(dir, "sessions")); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "preparing the folder for Git mirrors: %w", err)
	}
	return r, nil
}

// startSession makes this process's own folder for temporary files. Those of
// processes that were killed are removed, with the private keys that may be in
// them: a session that lives holds a lock.
func (r *runner) startSession(root string) error {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(root, "*"))
	if err != nil {
		return err
	}
	for _, dir := range old {
		endSession(dir)
	}
	dir, err := os.MkdirTemp(root, "s-")
	if err != nil {
		return err
	}
	r.session, r.home, r.tmp = dir, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")
	if r.held, err = os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(r.held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err
	}
	return errors.Join(os.Mkdir(r.home, 0o700), os.Mkdir(r.tmp, 0o700))
}

// endSession removes a session's folder unless its process lives. A folder
// without a lock is one that is just being made; the next start looks again.
func endSession(dir string) {
	held, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0o600)
	if err != nil {
		return
	}
	defer held.Close()
	if syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
		_ = os.RemoveAll(dir)
	}
}

// close ends the session.
func (r *runner) close() error {
	return errors.Join(r.held.Close(), os.RemoveAll(r.session))
}

// bounded keeps the first bytes that are written to it; a strict one fails the
// writer once there are more.
type bounded struct {
	bytes.Buffer

	limit  int
	strict bool
	over   bool
}

func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - b.Len()
	if len(p) <= room {
		return b.Buffer.Write(p)
	}
	b.over = b.strict
	if b.strict {
		return 0, errors.New("too much output")
	}
	b.Buffer.Write(p[:max(room, 0)])
	return len(p), nil
}
