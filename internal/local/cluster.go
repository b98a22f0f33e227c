package local

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	// Shape is Full when empty.
	Shape Shape
	// Nodes is the number of simulated nodes of a full cluster; default 1.
	Nodes int
	// KubeVersion is reported instead of the real one, when set.
	KubeVersion string
	// Log is the file for what the cluster complains about; Dir/log when empty.
	Log string
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

	process *os.Process
	done    chan struct{}
	err     error // of the process; to be read after done
}

// Start starts a cluster and returns when it is usable. The child dies with
// this process, however that ends, unless Detach is set.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	l, err := launch(opts)
	if err != nil {
		return nil, err
	}
	return l.await(ctx)
}

// await returns when the child has said that it is ready.
func (l *launched) await(ctx context.Context) (*Cluster, error) {
	c := l.cluster
	defer l.close()
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	select {
	case c.Server = <-l.ready():
		return c, nil
	case <-c.done:
		return nil, rutter.Errorf(rutter.CodeUnavailable, "cluster %s ended while starting (%w): %s", c.Name, c.end(), l.tail())
	case <-ctx.Done():
		c.Kill()
		return nil, rutter.Errorf(rutter.CodeUnavailable, "cluster %s is not ready: %w; its log ends: %s", c.Name, ctx.Err(), l.tail())
	}
}

// RESTConfig reaches the cluster as its administrator, without a client-side limit.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	rc, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig %s: %w", c.Kubeconfig, err)
	}
	rc.QPS = -1
	return rc, nil
}

// Done is closed when the cluster has ended.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// end says how the process ended.
func (c *Cluster) end() error {
	<-c.done
	if c.err == nil {
		return errors.New("exit status 0")
	}
	return c.err
}

// stopGrace is how long a cluster may take to stop before it is killed.
const stopGrace = 8 * time.Second

// Stop ends the cluster and waits for its end.
func (c *Cluster) Stop(ctx context.Context) error {
	if err := c.process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
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
	_ = c.process.Kill() // it may have ended by itself
	<-c.done
}
