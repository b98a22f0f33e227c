package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// launched is a child that has been started and not yet said that it is ready.
type launched struct {
	cluster *Cluster
	timeout time.Duration
	pipe    *os.File // the child writes one line when it is ready
	log     *os.File // open, since an ephemeral child removes its folder when it fails
}

// launch starts the child.
func launch(opts Options) (*launched, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	path, err := Find()
	if err != nil {
		return nil, err
	}
	made, err := opts.complete()
	if err != nil {
		return nil, err
	}
	l := &launched{timeout: opts.StartTimeout, cluster: &Cluster{
		Name: opts.Name, Kubeconfig: filepath.Join(opts.Dir, "kubeconfig"), Log: opts.Log, done: make(chan struct{}),
	}}
	if err := l.start(path, opts, made); err != nil {
		l.close()
		if made {
			err = errors.Join(err, os.RemoveAll(opts.Dir))
		}
		return nil, err
	}
	return l, nil
}

// validate refuses here what the child would only say in its log.
func (o *Options) validate() error {
	if o.Shape != "" && o.Shape != Hub && o.Shape != Full {
		return rutter.Errorf(rutter.CodeInvalid, "the shape of cluster %s must be %s or %s, not %q", o.Name, Hub, Full, o.Shape)
	}
	if o.Nodes < 0 {
		return rutter.Errorf(rutter.CodeInvalid, "cluster %s cannot have %d nodes", o.Name, o.Nodes)
	}
	return nil
}

// complete fills in what was left open, and says whether it made the folder.
func (o *Options) complete() (made bool, err error) {
	if o.Shape == "" {
		o.Shape = Full
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 2 * time.Minute
	}
	if o.Name == "" {
		o.Name = "local"
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "rutter-cluster-"); err != nil {
			return false, fmt.Errorf("make a folder for cluster %s: %w", o.Name, err)
		}
		o.Ephemeral, made = true, true
	} else if _, err := os.Stat(o.Dir); errors.Is(err, fs.ErrNotExist) {
		made = true
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			return false, fmt.Errorf("make the folder of cluster %s: %w", o.Name, err)
		}
	}
	if o.Log == "" {
		o.Log = filepath.Join(o.Dir, "log")
	}
	return made, nil
}

func (l *launched) start(path string, opts Options, made bool) error {
	c := l.cluster
	var err error
	const flags = os.O_CREATE | os.O_RDWR | os.O_APPEND | os.O_TRUNC // child and parent write to it
	if l.log, err = os.OpenFile(c.Log, flags, 0o600); err != nil {
		return fmt.Errorf("open the log of cluster %s: %w", c.Name, err)
	}
	var said *os.File
	if l.pipe, said, err = os.Pipe(); err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer said.Close()
	cmd := exec.Command(path, opts.arguments(c)...) //nolint:noctx // our own binary; its life is Stop's matter
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = l.log, l.log, []*os.File{said}
	var leash io.Closer = io.NopCloser(nil)
	if opts.Detach {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		cmd.SysProcAttr = attached()
		if leash, err = cmd.StdinPipe(); err != nil {
			return fmt.Errorf("make a pipe: %w", err)
		}
	}
	if err := c.supervise(cmd, leash, func() {
		if opts.Ephemeral && made {
			os.RemoveAll(opts.Dir) // the child does it, unless it was killed
		}
	}); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	return nil
}

// supervise starts the process and keeps the thread that did so until it has
// ended: the kernel takes the end of that thread for the end of the parent.
func (c *Cluster) supervise(cmd *exec.Cmd, leash io.Closer, after func()) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			c.process, c.PID = cmd.Process, cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		leash.Close()
		after()
		close(c.done)
	}()
	return <-started
}

func (o *Options) arguments(c *Cluster) []string {
	args := []string{"run", "--name", c.Name, "--dir", o.Dir, "--shape", string(o.Shape), "--kubeconfig", c.Kubeconfig, "--log", c.Log, "--ready-fd", "3"}
	if o.Nodes != 0 {
		args = append(args, "--nodes", strconv.Itoa(o.Nodes))
	}
	if o.KubeVersion != "" {
		args = append(args, "--kube-version", o.KubeVersion)
	}
	if o.Ephemeral {
		args = append(args, "--ephemeral")
	}
	if o.Sync {
		args = append(args, "--sync")
	}
	if !o.Detach {
		args = append(args, "--die-with-parent")
	}
	return args
}

// ready delivers the URL of the server once the child has written it.
func (l *launched) ready() <-chan string {
	line := make(chan string, 1)
	go func() {
		s, err := bufio.NewReader(l.pipe).ReadString('\n')
		if err == nil {
			line <- strings.TrimSpace(s)
		}
	}()
	return line
}

// tail returns the last lines of the log as one line.
func (l *launched) tail() string {
	const keep = 1500
	size, err := l.log.Seek(0, io.SeekEnd)
	if err != nil {
		return "(no log)"
	}
	data, err := io.ReadAll(io.NewSectionReader(l.log, max(0, size-keep), keep))
	if err != nil {
		return "(no log)"
	}
	return strings.Join(strings.Fields(string(data)), " ")
}

func (l *launched) close() {
	if l.pipe != nil {
		l.pipe.Close()
	}
	if l.log != nil {
		l.log.Close()
	}
}
