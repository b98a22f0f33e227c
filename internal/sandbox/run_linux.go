package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rutterhq/rutter"
)

// Sandbox runs programs. It is safe for concurrent use.
type Sandbox struct {
	opts    Options
	session *session

	mu    sync.Mutex
	level *level // nil until a run has shown what the kernel allows
}

// level is what the kernel allows.
type level struct {
	namespaces, landlock bool
}

// New returns a Sandbox, and removes what killed processes left in TempDir. It
// must be closed.
func New(o Options) (*Sandbox, error) {
	if o.TempDir == "" {
		o.TempDir = os.TempDir()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, p := range slices.Concat(o.Tools, o.Files) {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "sandbox: %q must be an absolute path, and not all of the machine", p)
		}
	}
	if os.Getenv(marker) != "" {
		return nil, rutter.Errorf(rutter.CodeInternal, "sandbox: this program is a child of the sandbox and does not call sandbox.MaybeChild first in main")
	}
	s, err := openSession(o.TempDir)
	if err != nil {
		return nil, err
	}
	return &Sandbox{opts: o, session: s}, nil
}

// Close removes all workspaces.
func (s *Sandbox) Close() error { return s.session.close() }

// Tools returns the operator's folders of programs.
func (s *Sandbox) Tools() []string { return slices.Clone(s.opts.Tools) }

// Path returns the folders in which programs are looked for, first those of the operator.
func (s *Sandbox) Path() []string {
	system := os.Getenv("PATH")
	if system == "" {
		system = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	}
	return slices.Concat(s.opts.Tools, slices.DeleteFunc(filepath.SplitList(system), func(p string) bool { return !filepath.IsAbs(p) }))
}

// Check says whether programs can be run here, by running none.
func (s *Sandbox) Check(ctx context.Context) error {
	_, err := s.allowed(ctx)
	return err
}

// allowed finds out what the kernel allows, once, and whether that is enough.
func (s *Sandbox) allowed(ctx context.Context) (level, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.level != nil {
		return *s.level, nil
	}
	l := level{landlock: landlockVersion() > 0}
	err := s.tryNamespaces(ctx)
	l.namespaces = err == nil
	if ctx.Err() != nil {
		return l, unavailable("%w", context.Cause(ctx))
	}
	if err := enough(s.opts.Require, l, err); err != nil {
		return l, err
	}
	if !l.namespaces || !l.landlock {
		s.opts.Logger.Warn("programs run in the weaker sandbox", "namespaces", l.namespaces, "landlock", l.landlock)
	}
	s.level = &l
	return l, nil
}

// enough says whether what the kernel allows is what is required; err is why
// it allows no namespaces.
func enough(r Require, l level, err error) error {
	switch {
	case l.namespaces && l.landlock:
		return nil
	case !l.namespaces && !l.landlock:
		return unavailable("this machine allows neither namespaces nor Landlock, and one of them is needed: %w", err)
	case r == EitherWall:
		return nil
	case !l.namespaces:
		return unavailable("this machine does not allow namespaces: %w: allow user namespaces, or let rutter use the weaker sandbox without them", err)
	}
	return unavailable("this kernel has no Landlock: enable it (lsm=landlock), or let rutter use the weaker sandbox without it")
}

func (s *Sandbox) tryNamespaces(ctx context.Context) error {
	w, err := s.Workspace()
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // it is empty
	_, err = w.start(ctx, level{namespaces: true}, Command{Limits: Limits{}.filled()})
	return err
}

// Run runs one program to its end. Whatever it started is gone when Run returns.
// Errors: CodeInvalid when it was stopped for using too much time, memory, disk
// or output; CodeUnavailable when it could not be started.
func (w *Workspace) Run(ctx context.Context, c Command) (Result, error) {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return Result{}, rutter.Errorf(rutter.CodeInvalid, "sandbox: there is no command to run")
	}
	c.Limits = c.filled()
	l, err := w.s.allowed(ctx)
	if err != nil {
		return Result{}, err
	}
	return w.start(ctx, l, c)
}

// spec describes a run to the warden.
func (w *Workspace) spec(l level, c Command) spec {
	sp := spec{
		Args: c.Args, Network: c.Network, Namespaces: l.namespaces, Landlock: l.landlock,
		Tree: filepath.Join(w.dir, treeDir), Home: filepath.Join(w.dir, homeDir), Temp: filepath.Join(w.dir, tempDir),
		Root: filepath.Join(w.dir, rootDir), Tools: w.s.opts.Tools, Files: w.s.opts.Files, OwnUser: w.uid != os.Geteuid(),
		Grace: c.Grace, Memory: c.Memory, Disk: c.Disk, Processes: c.Processes, OpenFiles: c.OpenFiles,
		// A processor's time runs out long after the clock's, unless many are used at once.
		CPU: int64(4*c.Time/time.Second) + 1,
	}
	inside := sp.inside()
	sp.Dir = path.Join(inside.tree, path.Join("/", filepath.ToSlash(c.Dir)))
	sp.Env = append(slices.Clone(c.Env), "PATH="+strings.Join(w.s.Path(), ":"), "HOME="+inside.home, "TMPDIR="+inside.temp)
	return sp
}

// run is one run, seen from our side.
type run struct {
	cmd      *exec.Cmd
	lifeline *os.File // as long as it is open the warden lives
	status   chan report
	out      *capped
	err      *tail
}

func (w *Workspace) start(ctx context.Context, l level, c Command) (Result, error) {
	// The warden dies with the thread that started it: it must last as long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := &run{status: make(chan report, 2), out: &capped{limit: c.Output, over: make(chan struct{})}, err: &tail{limit: maxStderr}}
	if err := r.launch(w, l, c); err != nil {
		return Result{}, err
	}
	rep, stopped := r.follow(ctx, c.Limits)
	_ = r.lifeline.Close()
	waitErr := r.cmd.Wait()
	res := Result{Stdout: r.out.buf.Bytes(), Stderr: r.err.text(c.Secrets), ExitCode: rep.Exit, Signal: rep.Signal}
	// Where there is no root of its own, the random name would make each message another.
	res.Stderr = strings.ReplaceAll(res.Stderr, w.dir, "(workspace)")
	switch {
	case stopped != nil:
		return res, stopped
	case rep.Setup != "":
		return res, unavailable("%s", rep.Setup)
	case rep.Missing != "":
		return res, unavailable("%s", rep.Missing)
	case rep.Stopped != "":
		return res, rutter.Errorf(rutter.CodeInvalid, "%s", rep.Stopped)
	case !rep.Done:
		return res, unavailable("it ended unexpectedly: %w%s", errors.Join(waitErr, errGone), said(res.Stderr))
	}
	return res, nil
}

var errGone = errors.New("the warden is gone")

func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// launch starts the warden and tells it what to do.
func (r *run) launch(w *Workspace, l level, c Command) error {
	text, err := json.Marshal(w.spec(l, c))
	if err != nil {
		return unavailable("describe a run: %w", err)
	}
	specR, specW, err := os.Pipe()
	if err != nil {
		return unavailable("start a run: %w", err)
	}
	statusR, statusW, err := os.Pipe()
	if err != nil {
		_, _ = specR.Close(), specW.Close()
		return unavailable("start a run: %w", err)
	}
	r.lifeline = specW
	r.cmd = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{wardenName}, Env: []string{marker + "=1"}, Dir: "/",
		Stdout: r.out, Stderr: r.err, ExtraFiles: []*os.File{specR, statusW},
		SysProcAttr: w.attributes(l, c.Network),
		// A process outside that holds the output is not waited for.
		WaitDelay: 2 * time.Second,
	}
	err = r.cmd.Start()
	_, _ = specR.Close(), statusW.Close()
	if err != nil {
		_, _ = specW.Close(), statusR.Close()
		return unavailable("start a run: %w", err)
	}
	go r.listen(statusR)
	go func() { _, _ = specW.Write(append(text, '\n')) }() // it fails when the warden is gone, which is noticed
	return nil
}

// listen passes on what the warden reports.
func (r *run) listen(status *os.File) {
	defer status.Close()
	defer close(r.status)
	for lines := bufio.NewScanner(status); lines.Scan(); {
		var rep report
		if json.Unmarshal(lines.Bytes(), &rep) == nil {
			r.status <- rep
		}
	}
}

// startTime is how long the warden may take until it says that it is there.
const startTime = 20 * time.Second

// follow waits for the end of a run, and brings it about when it takes too
// long, says too much, or is not wanted any more.
func (r *run) follow(ctx context.Context, lim Limits) (last report, stopped error) {
	start, clock := time.NewTimer(startTime), time.NewTimer(lim.Time)
	defer start.Stop()
	defer clock.Stop()
	done, over, ending := ctx.Done(), r.out.over, false
	for {
		select {
		case rep, ok := <-r.status:
			if !ok {
				return last, stopped
			}
			last = rep
			start.Stop()
		case <-start.C:
			stopped = unavailable("it does not start: this program may not call sandbox.MaybeChild first in main")
			r.kill()
		case <-done:
			stopped, done = unavailable("stopped: %w", context.Cause(ctx)), nil
			r.end(clock, lim.Grace, &ending)
		case <-over:
			stopped, over = rutter.Errorf(rutter.CodeInvalid, "it printed more than %s", size(lim.Output)), nil
			r.kill()
		case <-clock.C:
			if ending {
				r.kill()
				continue
			}
			stopped = rutter.Errorf(rutter.CodeInvalid, "it was stopped after %s", lim.Time)
			r.end(clock, lim.Grace, &ending)
		}
	}
}

// end asks everything to end. The warden kills what is left after a while; if
// it doesn't, we do.
func (r *run) end(clock *time.Timer, grace time.Duration, ending *bool) {
	*ending = true
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	clock.Reset(grace + 2*time.Second)
}

// kill ends everything now.
func (r *run) kill() {
	_ = r.lifeline.Close()
	time.AfterFunc(2*time.Second, func() { _ = r.cmd.Process.Kill() })
}

// attributes are the warden's namespaces and its user.
func (w *Workspace) attributes(l level, network bool) *syscall.SysProcAttr {
	other := w.uid != os.Geteuid()
	a := &syscall.SysProcAttr{Setsid: true}
	if !l.namespaces {
		// Without namespaces it must live to kill what it started; the lifeline tells it to.
		if other {
			a.Credential = &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.gid), Groups: []uint32{}} //nolint:gosec // they are not negative
		}
		return a
	}
	a.Pdeathsig = syscall.SIGKILL
	a.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
	if !network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: w.uid, Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: w.gid, Size: 1}}
	a.GidMappingsEnableSetgroups = other
	a.Credential = &syscall.Credential{Uid: insideID, Gid: insideID, NoSetGroups: !other}
	// What building a root and watching over it takes, in its own namespace only.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_SYS_PTRACE}
	return a
}

// insideID is the user and group that a program believes to be.
const insideID = 1000

// capped collects the output up to a limit. The buffer is not embedded: it
// would offer a way to read everything without a look at the limit.
type capped struct {
	buf   bytes.Buffer
	limit int64
	over  chan struct{}
	full  bool
}

var errOver = errors.New("too much output")

// Write implements io.Writer.
func (c *capped) Write(p []byte) (int, error) {
	if int64(c.buf.Len()+len(p)) <= c.limit {
		return c.buf.Write(p)
	}
	if !c.full {
		c.full = true
		close(c.over)
	}
	return 0, errOver
}

// size prints a number of bytes.
func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
