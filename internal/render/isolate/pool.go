package isolate

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// Options adjusts a Pool; zero values mean the defaults.
type Options struct {
	// Command starts a process that calls Serve: the path of this program and Command.
	Command []string
	// MaxMemory bounds one child; default 512 MiB.
	MaxMemory int64
	// MaxOutput bounds one answer; default 64 MiB.
	MaxOutput int64
	// Idle is how many children wait for the next task, and IdleTime how long;
	// default 2, for a minute.
	Idle     int
	IdleTime time.Duration
}

// Pool runs tasks in children. It is safe for concurrent use: as many children
// run as tasks are wanted at one time.
type Pool struct {
	opts Options

	mu     sync.Mutex
	idle   []*worker
	closed bool
}

// New returns a pool; its children start when they are needed.
func New(opts Options) *Pool {
	if opts.MaxMemory <= 0 {
		opts.MaxMemory = defaultMemory
	}
	if opts.MaxOutput <= 0 {
		opts.MaxOutput = defaultOutput
	}
	if opts.Idle <= 0 {
		opts.Idle = defaultIdle
	}
	if opts.IdleTime <= 0 {
		opts.IdleTime = defaultIdleTime
	}
	return &Pool{opts: opts}
}

// Close ends the children that wait; those at work end with their task.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, w := range p.idle {
		w.end()
	}
	p.idle = nil
}

// Evaluate runs a task in a child, which sees files. It ends with ctx, and the
// child with it.
func (p *Pool) Evaluate(ctx context.Context, task string, files Files, request []byte) ([]byte, error) {
	w, err := p.worker()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, w.end)
	answer, failed, err := w.run(task, files, request, p.opts)
	switch {
	case !stop():
		w.end()
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s was stopped: %w", task, context.Cause(ctx))
	case err != nil:
		return nil, w.death(task, err, p.opts)
	}
	p.put(w)
	return answer, failed
}

func (p *Pool) worker() (*worker, error) {
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		w.wait.Stop()
		return w, nil
	}
	p.mu.Unlock()
	return start(p.opts.Command)
}

func (p *Pool) put(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.uses++; p.closed || w.uses >= maxUses || len(p.idle) >= p.opts.Idle {
		w.end()
		return
	}
	w.wait = time.AfterFunc(p.opts.IdleTime, func() { p.retire(w) })
	p.idle = append(p.idle, w)
}

// retire ends a child that has waited long enough, unless it has got a task meanwhile.
func (p *Pool) retire(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		w.end()
	}
}

// worker is the parent's side of one child.
type worker struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said *opening
	uses int
	wait *time.Timer // while it is idle

	ended sync.Once
	exit  error
}

func start(command []string) (*worker, error) {
	if len(command) == 0 {
		return nil, rutter.Errorf(rutter.CodeInternal, "no command is set for evaluations")
	}
	w := &worker{said: &opening{}}
	w.cmd = exec.Command(command[0], command[1:]...) //nolint:noctx // it is this program, and outlives the render that it is started for
	w.cmd.Env = []string{}
	w.cmd.Dir = "/"
	w.cmd.Stderr = w.said
	in, inErr := w.cmd.StdinPipe()
	out, outErr := w.cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, w.cmd.Start()); err != nil {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "start a process for evaluations: %w", err)
	}
	w.in, w.out = in, bufio.NewReaderSize(out, 64<<10)
	return w, nil
}

// end kills the child and waits for it.
func (w *worker) end() {
	w.ended.Do(func() {
		_ = w.in.Close()
		_ = w.cmd.Process.Kill() // it may have gone by itself
		w.exit = w.cmd.Wait()
	})
}

// run does one task. failed is the task's own error; err says that the child is of no more use.
func (w *worker) run(task string, files Files, request []byte, opts Options) (answer []byte, failed, err error) {
	w.said.forget()
	if err := send(w.in, message{Kind: msgTask, Name: task, Memory: opts.MaxMemory, body: request}); err != nil {
		return nil, nil, err
	}
	for {
		m, err := receive(w.out, maxQuestion, opts.MaxOutput)
		if err != nil {
			return nil, nil, err
		}
		if m.Kind == msgDone {
			return m.body, m.Failure.err(), nil
		}
		if err := send(w.in, look(files, m)); err != nil {
			return nil, nil, err
		}
	}
}

// look answers a question of the child.
func look(files Files, m message) message {
	answer := message{Kind: m.Kind}
	var err error
	switch m.Kind {
	case msgRead:
		answer.body, err = files.ReadFile(m.Name)
	case msgList:
		var entries []fs.DirEntry
		entries, err = files.ReadDir(m.Name)
		for _, e := range entries {
			answer.Entries = append(answer.Entries, entry{Base: e.Name(), Kind: e.Type()})
		}
	case msgStat:
		var info fs.FileInfo
		if info, err = files.Stat(m.Name); err == nil {
			answer.Entries = []entry{entryOf(info)}
		}
	default:
		err = rutter.Errorf(rutter.CodeInternal, "no question is named %q", m.Kind)
	}
	answer.Failure = failureOf(err)
	return answer
}

// death says why a child could not finish.
func (w *worker) death(task string, err error, opts Options) error {
	if errors.Is(err, errTooLong) {
		w.end()
		return rutter.Errorf(rutter.CodeInvalid, "%s makes more than %d MiB: make what it evaluates smaller", task, opts.MaxOutput>>20)
	}
	w.await()
	said := w.said.bytes()
	switch {
	case w.cmd.ProcessState.ExitCode() == exitMemory, containsAny(said, "out of memory", "cannot allocate memory", muchMemory):
		return tooMuchMemory(task, opts.MaxMemory)
	case containsAny(said, "stack overflow", "stack exceeds"):
		return rutter.Errorf(rutter.CodeInvalid, "%s recurses too deeply", task)
	case w.exit != nil && w.cmd.ProcessState.ExitCode() < 0:
		return rutter.Errorf(rutter.CodeUnavailable, "%s was killed by the operating system: %w", task, w.exit)
	}
	return rutter.Errorf(rutter.CodeInternal, "%s ended unexpectedly: %w", task, errors.Join(err, w.exit))
}

// await lets a child that has closed its output go by itself, so that it can
// say why; not for long.
func (w *worker) await() {
	w.ended.Do(func() {
		_ = w.in.Close()
		kill := time.AfterFunc(2*time.Second, func() { _ = w.cmd.Process.Kill() })
		defer kill.Stop()
		w.exit = w.cmd.Wait()
	})
}

func containsAny(text []byte, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return bytes.Contains(text, []byte(p)) })
}

// opening keeps the start of what a child says when it dies: the reason stands
// first, the stacks that follow are of no interest.
type opening struct {
	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer.
func (t *opening) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if room := 4096 - len(t.buf); room > 0 {
		t.buf = append(t.buf, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

func (t *opening) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = t.buf[:0]
}

func (t *opening) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.buf)
}
