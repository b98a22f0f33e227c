package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The names under which our own binary is started again, and the variable that
// shows a program that does not look at them that it is a child.
const (
	wardenName = "rutter-sandbox-warden"
	cellName   = "rutter-sandbox-cell"
	marker     = "RUTTER_SANDBOX_CHILD"
)

// File descriptors of the children beside the standard ones.
const (
	specFD   = 3 // what to do; its other end is the lifeline
	statusFD = 4
)

// spec is what the warden is told. No secret is ever in an argument or in the
// warden's own environment.
type spec struct {
	Args, Env  []string
	Dir        string
	Namespaces bool
	Landlock   bool
	Network    bool
	// OwnUser says that the user has no other processes.
	OwnUser bool

	Tree, Home, Temp, Root string
	Tools, Files           []string

	Grace        time.Duration
	Memory, Disk int64
	Processes    int
	OpenFiles    int
	CPU          int64
}

// places are the folders of a workspace as the program sees them.
type places struct{ tree, home, temp string }

// inside is the same for every run where there are namespaces: a program that
// prints where it is prints the same again.
func (s spec) inside() places {
	if s.Namespaces {
		return places{tree: "/rutter/repo", home: "/rutter/home", temp: "/tmp"}
	}
	return places{tree: s.Tree, home: s.Home, temp: s.Temp}
}

// report is a line from the warden. The first says that it is there.
type report struct {
	Done   bool
	Exit   int
	Signal string
	// Setup is why the sandbox could not be built, Missing why the program could
	// not be started, Stopped why it was.
	Setup, Missing, Stopped string
}

// MaybeChild must be called first in main, and in TestMain where tests run a
// Sandbox. In a process that was started as a child of a Sandbox it does what
// the child is there for and never returns; else it does nothing.
func MaybeChild() {
	if len(os.Args) == 0 || os.Getenv(marker) == "" {
		return
	}
	switch os.Args[0] {
	case wardenName:
		runtime.LockOSThread() // the cell dies with the thread that started it
		ward()
		os.Exit(0)
	case cellName:
		runtime.LockOSThread() // rights belong to a thread
		cell()
		os.Exit(1)
	}
}

// warden watches over one run.
type warden struct {
	spec   spec
	status *json.Encoder
	// stopped is why everything was killed, when it was.
	stopped atomic.Pointer[string]
	// self is our process id as /proc shows it.
	self int
}

func ward() {
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(statusFD)
	in := bufio.NewReader(os.NewFile(specFD, "spec"))
	w := &warden{status: json.NewEncoder(os.NewFile(statusFD, "status"))}
	w.report(report{})
	line, err := in.ReadBytes('\n')
	if err != nil {
		return // nobody wants it any more
	}
	if err := json.Unmarshal(line, &w.spec); err != nil {
		w.report(report{Setup: "read what to run: " + err.Error()})
		return
	}
	if err := w.build(); err != nil {
		w.report(report{Setup: err.Error()})
		return
	}
	if len(w.spec.Args) == 0 { // only asked whether it can be built
		w.report(report{Done: true})
		return
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		w.killAll()
		os.Exit(0)
	}()
	w.run()
}

func (w *warden) report(r report) { _ = w.status.Encode(r) } //nolint:errchkjson // without a reader there is nobody to tell

// build prepares what the cell is started in.
func (w *warden) build() error {
	// When memory is short, this goes first.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("900"), 0)
	if w.spec.Namespaces {
		if err := buildRoot(w.spec); err != nil {
			return err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errors.New("become the parent of orphans: " + err.Error())
	}
	self, err := os.Readlink("/proc/self")
	if err != nil {
		return errors.New("/proc is not there: " + err.Error())
	}
	w.self = number(self)
	return nil
}

// run starts the cell and stays until everything has ended.
func (w *warden) run() {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT)
	pid, failed, err := w.startCell()
	if err != nil {
		w.report(report{Setup: "start the cell: " + err.Error()})
		return
	}
	stopWatch := make(chan struct{})
	watched := make(chan struct{})
	go func() { defer close(watched); w.watch(stopWatch) }()
	go w.obey(term)
	var text report
	_ = json.NewDecoder(failed).Decode(&text) // nothing comes when the program has started
	status := reap(pid)
	close(stopWatch)
	<-watched
	w.killAll()
	w.report(w.outcome(text, status))
}

func (w *warden) outcome(failed report, status syscall.WaitStatus) report {
	if failed.Setup != "" || failed.Missing != "" {
		return failed
	}
	r := report{Done: true, Exit: status.ExitStatus()}
	if status.Signaled() {
		r.Exit, r.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
	}
	if why := w.stopped.Load(); why != nil {
		r.Stopped = *why
	}
	return r
}

// obey asks everything to end when we are asked, and makes it after a while.
func (w *warden) obey(term <-chan os.Signal) {
	<-term
	w.signalAll(syscall.SIGTERM)
	time.Sleep(w.spec.Grace)
	w.signalAll(syscall.SIGKILL)
}

// stop kills everything, for a reason that the user is told.
func (w *warden) stop(why string) {
	w.stopped.CompareAndSwap(nil, &why)
	w.signalAll(syscall.SIGKILL)
}

// startCell starts the third process; what it writes to failed is why the
// program could not be started.
func (w *warden) startCell() (pid int, failed io.Reader, err error) {
	specR, specW, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	failR, failW, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	pid, err = syscall.ForkExec("/proc/self/exe", []string{cellName}, &syscall.ProcAttr{
		Dir: "/", Env: []string{marker + "=1"},
		Files: []uintptr{null.Fd(), 1, 2, specR.Fd(), failW.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = specR.Close()
	_ = failW.Close()
	_ = null.Close()
	if err != nil {
		return 0, nil, err
	}
	go func() {
		_ = json.NewEncoder(specW).Encode(w.spec) //nolint:errchkjson // it fails when the cell is gone, which is noticed
		_ = specW.Close()
	}()
	return pid, failR, nil
}

// reap waits for the cell, and for orphans that became ours.
func reap(cell int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status
		case pid == cell && (status.Exited() || status.Signaled()):
			return status
		}
	}
}

// signalAll sends a signal to everything in the sandbox.
func (w *warden) signalAll(sig syscall.Signal) {
	if w.spec.Namespaces || w.spec.OwnUser {
		_ = syscall.Kill(-1, sig) // all that there are but ourselves
		return
	}
	for _, p := range descendants(w.self) {
		_ = syscall.Kill(p.pid, sig)
	}
}

// killAll leaves nothing alive. In a process namespace the kernel sees to that
// when the warden ends. Else everything is stopped first, so that nothing is
// born while the rest is killed.
func (w *warden) killAll() {
	if w.spec.Namespaces {
		w.signalAll(syscall.SIGKILL)
		return
	}
	for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for before, i := -1, 0; i < 100; i++ {
			w.signalAll(sig)
			now := len(descendants(w.self))
			if now == 0 || sig == syscall.SIGSTOP && now == before {
				break
			}
			before = now
			for sig == syscall.SIGKILL {
				pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
				if pid <= 0 || err != nil {
					break
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// folders are those that may be written to, as the warden sees them.
func (s spec) folders() []string {
	in := s.inside()
	return []string{in.tree, in.home, in.temp}
}

// candidates are the files that a command may mean, as a shell looks for them in PATH.
func candidates(name, dir string, folders []string) []string {
	if path.Base(name) != name {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return []string{name}
	}
	out := make([]string, 0, len(folders))
	for _, f := range folders {
		out = append(out, filepath.Join(f, name))
	}
	return out
}
