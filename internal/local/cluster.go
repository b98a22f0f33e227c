package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rutterhq/rutter"
)

// Shape is how much of a cluster is run.
type Shape string

// The shapes.
const (
	// Hub is an API server with namespaces, garbage collection and service accounts.
	Hub Shape = "hub"
	// Full adds workload controllers, a scheduler and simulated nodes.
	Full Shape = "full"
)

// Options describe one cluster.
type Options struct {
	Name string
	// Dir keeps the data; empty means a temporary folder.
	Dir string
	// Ephemeral removes the data at the end.
	Ephemeral bool
	Shape     Shape
	// Nodes is the number of simulated nodes of a full cluster; default 1.
	Nodes int
	// KubeVersion is reported instead of the real one, when set.
	KubeVersion string
	// Sync makes etcd wait for the disk.
	Sync bool
	// Detach lets the cluster outlive this process.
	Detach bool
	// StartTimeout bounds the wait for readiness; default 2 minutes.
	StartTimeout time.Duration
}

// Cluster is a running cluster.
type Cluster struct {
	Name       string
	Server     string
	Kubeconfig string
	PID        int
	Log        string

	cmd   *exec.Cmd
	stdin io.Closer
	done  chan struct{}
	err   error
}

// Start starts a cluster and returns when it is usable. The child dies with
// this process, however that ends, unless Detach is set.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	path, err := Find()
	if err != nil {
		return nil, err
	}
	if opts.Dir == "" {
		if opts.Dir, err = os.MkdirTemp("", "rutter-"+opts.Name+"-"); err != nil {
			return nil, fmt.Errorf("make a folder for cluster %s: %w", opts.Name, err)
		}
		opts.Ephemeral = true
	}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of cluster %s: %w", opts.Name, err)
	}
	c := &Cluster{Name: opts.Name, Kubeconfig: filepath.Join(opts.Dir, "kubeconfig"), Log: filepath.Join(opts.Dir, "log"), done: make(chan struct{})}
	ready, err := c.spawn(path, opts)
	if err != nil {
		return nil, err
	}
	return c, c.await(ctx, opts, ready)
}

// spawn starts the child and returns the pipe on which it says that it is ready.
func (c *Cluster) spawn(path string, opts Options) (*os.File, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of cluster %s: %w", c.Name, err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer w.Close()
	c.cmd = exec.Command(path, arguments(opts, c.Kubeconfig)...) //nolint:noctx // our own binary; its life is Stop's matter
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = log, log, []*os.File{w}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if opts.Detach {
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	} else {
		stdin, err := c.cmd.StdinPipe()
		if err != nil {
			return nil, fmt.Errorf("make a pipe: %w", err)
		}
		c.stdin = stdin
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	c.PID = c.cmd.Process.Pid
	go func() {
		c.err = c.cmd.Wait()
		close(c.done)
	}()
	return r, nil
}

func arguments(opts Options, kubeconfig string) []string {
	shape := opts.Shape
	if shape == "" {
		shape = Full
	}
	args := []string{"run", "--name", opts.Name, "--dir", opts.Dir, "--shape", string(shape), "--kubeconfig", kubeconfig, "--ready-fd", "3"}
	if opts.Nodes > 0 {
		args = append(args, "--nodes", strconv.Itoa(opts.Nodes))
	}
	if opts.KubeVersion != "" {
		args = append(args, "--kube-version", opts.KubeVersion)
	}
	for flag, on := range map[string]bool{"--ephemeral": opts.Ephemeral, "--sync": opts.Sync, "--die-with-parent": !opts.Detach} {
		if on {
			args = append(args, flag)
		}
	}
	return args
}

// await returns when the child has said that it is ready.
func (c *Cluster) await(ctx context.Context, opts Options, ready *os.File) error {
	defer ready.Close()
	timeout := opts.StartTimeout
	if timeout == 0 {
		timeout = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	line := make(chan string, 1)
	go func() {
		s, err := bufio.NewReader(ready).ReadString('\n')
		if err == nil {
			line <- strings.TrimSpace(s)
		}
	}()
	select {
	case c.Server = <-line:
		return nil
	case <-c.done:
		return rutter.Errorf(rutter.CodeUnavailable, "cluster %s ended while starting: %s", c.Name, tail(c.Log))
	case <-ctx.Done():
		c.Kill()
		return rutter.Errorf(rutter.CodeUnavailable, "cluster %s is not ready: %w; its log ends: %s", c.Name, ctx.Err(), tail(c.Log))
	}
}

// RESTConfig reaches the cluster as its administrator, without a client-side limit.
func (c *Cluster) RESTConfig() (*rest.Config, error) { return restConfig(c.Kubeconfig) }

func restConfig(kubeconfig string) (*rest.Config, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", kubeconfig, err)
	}
	rc.QPS = -1
	return rc, nil
}

// Done is closed when the cluster has ended.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// stopGrace is how long a cluster may take to stop before it is killed.
const stopGrace = 8 * time.Second

// Stop ends the cluster and waits for its end.
func (c *Cluster) Stop(ctx context.Context) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop cluster %s: %w", c.Name, err)
	}
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.Kill()
	case <-ctx.Done():
		c.Kill()
	}
	return nil
}

// Kill ends the cluster at once, as a crash would.
func (c *Cluster) Kill() {
	_ = c.cmd.Process.Kill() // it may have ended by itself
	<-c.done
}

// tail returns the last lines of a log as one line.
func tail(file string) string {
	data, err := os.ReadFile(file)
	if err != nil {
		return "(no log)"
	}
	const keep = 1500
	if len(data) > keep {
		data = data[len(data)-keep:]
	}
	return strings.Join(strings.Fields(string(data)), " ")
}
