package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rutterhq/rutter/localcluster/internal/controlplane"
	"github.com/rutterhq/rutter/localcluster/internal/datadir"
	"github.com/rutterhq/rutter/localcluster/internal/node"
)

type runFlags struct {
	opts       controlplane.Options
	shape      string
	nodes      int
	kubeconfig string
	log        string
	ephemeral  bool
	withParent bool
	readyFD    int
}

func runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use: "run", Short: "Run one cluster until it is told to stop", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context()) },
	}
	fl := c.Flags()
	fl.StringVar(&f.opts.Name, "name", "local", "name of the cluster, used in its kubeconfig")
	fl.StringVar(&f.opts.Dir, "dir", "", "folder for the cluster's data; a temporary one when empty")
	fl.StringVar(&f.shape, "shape", "full", "full (controllers, scheduler, simulated nodes) or hub (API server, namespaces, garbage collection)")
	fl.IntVar(&f.nodes, "nodes", 1, "number of simulated nodes of a full cluster")
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "where to write the administrator's kubeconfig once the cluster is ready; DIR/kubeconfig when empty")
	fl.StringVar(&f.log, "log", "", "where to write what the parts complain about; DIR/log when empty")
	fl.BoolVar(&f.ephemeral, "ephemeral", false, "remove the data when the cluster stops")
	fl.BoolVar(&f.opts.Sync, "sync", false, "let etcd wait for the disk: slower, survives a power cut")
	fl.StringVar(&f.opts.Version, "kube-version", "", "Kubernetes version to report, such as v1.36.0; what the cluster can do stays the same")
	fl.BoolVar(&f.withParent, "die-with-parent", false, "stop when the parent process ends; also when standard input is a pipe and is closed")
	fl.IntVar(&f.readyFD, "ready-fd", 0, "file descriptor to write one line to when the cluster is ready")
	return c
}

func (f *runFlags) validate() error {
	switch {
	case f.shape != "full" && f.shape != "hub":
		return fmt.Errorf("--shape must be full or hub, not %q", f.shape)
	case f.nodes < 0:
		return fmt.Errorf("--nodes must not be negative, but is %d", f.nodes)
	case f.opts.Name == "":
		return errors.New("--name must not be empty")
	}
	f.opts.Full = f.shape == "full"
	if !f.opts.Full {
		f.nodes = 0
	}
	return nil
}

func (f *runFlags) run(ctx context.Context) (err error) {
	if err := f.validate(); err != nil {
		return err
	}
	dir, err := f.claim()
	if err != nil {
		return err
	}
	defer dir.Release()
	if f.ephemeral {
		defer func() { err = errors.Join(err, removeData(dir)) }()
	}
	log, err := openLog(f.log)
	if err != nil {
		return err
	}
	f.opts.Log = log // stays open: a part that is given up on may still write
	quiet(log)

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if f.withParent {
		go awaitOrphan(ctx, func() { cancel(context.Canceled) }, func() {
			if f.ephemeral {
				_ = removeData(dir) // nobody is left to be told
			}
		})
	}
	go func() {
		const look = 2 * time.Second
		if err := dir.AwaitRemoval(ctx, look); err != nil {
			cancel(err)
		}
	}()
	return controlplane.Run(ctx, f.opts, f.ready)
}

// removeData removes a temporary cluster's folder. A part that was given up on may
// write into it once more, so it is tried again for a moment.
func removeData(dir *datadir.Dir) error {
	const tries, pause = 20, 50 * time.Millisecond
	var err error
	for range tries {
		if err = dir.Remove(); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return err
}

// claim takes the cluster's folder and completes the paths in it.
func (f *runFlags) claim() (*datadir.Dir, error) {
	if f.opts.Dir == "" {
		tmp, err := os.MkdirTemp("", "rutter-localcluster-")
		if err != nil {
			return nil, fmt.Errorf("make a folder for the data: %w", err)
		}
		f.opts.Dir, f.ephemeral = tmp, true
	}
	dir, err := datadir.Claim(f.opts.Dir, f.ephemeral)
	if err != nil {
		return nil, err
	}
	f.opts.Dir = dir.Path
	if f.kubeconfig == "" {
		f.kubeconfig = dir.Join("kubeconfig")
	}
	if f.log == "" {
		f.log = dir.Join("log")
	}
	if f.kubeconfig, err = filepath.Abs(f.kubeconfig); err != nil {
		dir.Release()
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return dir, nil
}

// ready completes a cluster whose API server answers, and tells the parent.
func (f *runFlags) ready(ctx context.Context, c *controlplane.Cluster) error {
	if f.nodes > 0 {
		if err := node.Start(ctx, c.Kubeconfig, f.nodes, f.opts.Log); err != nil {
			return err
		}
	}
	if err := c.AwaitUsable(ctx, f.nodes); err != nil {
		return err
	}
	if err := c.PublishKubeconfig(f.kubeconfig); err != nil {
		return err
	}
	var to io.WriteCloser = os.Stdout
	if f.readyFD > 0 {
		to = os.NewFile(uintptr(f.readyFD), "ready")
		defer to.Close()
	}
	if _, err := fmt.Fprintln(to, c.Server()); err != nil {
		return fmt.Errorf("tell that the cluster is ready: %w", err)
	}
	return nil
}
