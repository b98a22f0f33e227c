package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/rutterhq/rutter/localcluster/internal/controlplane"
	"github.com/rutterhq/rutter/localcluster/internal/node"
)

type runFlags struct {
	opts       controlplane.Options
	shape      string
	nodes      int
	kubeconfig string
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
	fl.BoolVar(&f.ephemeral, "ephemeral", false, "remove the data when the cluster stops")
	fl.BoolVar(&f.opts.Sync, "sync", false, "let etcd wait for the disk: slower, survives a power cut")
	fl.StringVar(&f.opts.Version, "kube-version", "", "Kubernetes version to report, such as v1.36.0")
	fl.BoolVar(&f.withParent, "die-with-parent", false, "stop when standard input is closed, which the end of the parent does")
	fl.IntVar(&f.readyFD, "ready-fd", 0, "file descriptor to write one line to when the cluster is ready")
	return c
}

func (f *runFlags) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if f.shape != "full" && f.shape != "hub" {
		return fmt.Errorf("--shape must be full or hub, not %q", f.shape)
	}
	f.opts.Full = f.shape == "full"
	if !f.opts.Full {
		f.nodes = 0
	}
	if f.opts.Dir == "" {
		dir, err := os.MkdirTemp("", "rutter-localcluster-")
		if err != nil {
			return fmt.Errorf("make a folder for the data: %w", err)
		}
		f.opts.Dir, f.ephemeral = dir, true
	}
	if f.ephemeral {
		defer os.RemoveAll(f.opts.Dir)
	}
	if f.kubeconfig == "" {
		f.kubeconfig = filepath.Join(f.opts.Dir, "kubeconfig")
	}
	quiet()
	if f.withParent {
		go func() {
			_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
			cancel()
		}()
	}
	return controlplane.Run(ctx, f.opts, func(c *controlplane.Cluster) error { return f.ready(ctx, c) })
}

// ready completes a cluster whose API server answers, and tells the parent.
func (f *runFlags) ready(ctx context.Context, c *controlplane.Cluster) error {
	if f.nodes > 0 {
		if err := node.Start(ctx, c.Kubeconfig, f.nodes); err != nil {
			return err
		}
	}
	if err := c.AwaitUsable(ctx, f.nodes); err != nil {
		return err
	}
	if err := c.PublishKubeconfig(f.kubeconfig); err != nil {
		return err
	}
	if f.readyFD > 0 {
		pipe := os.NewFile(uintptr(f.readyFD), "ready")
		defer pipe.Close()
		if _, err := fmt.Fprintln(pipe, c.Server()); err != nil {
			return fmt.Errorf("tell the parent: %w", err)
		}
		return nil
	}
	fmt.Println(c.Server())
	return nil
}

// quiet keeps the components' logs to errors; they go to standard error, which
// the parent sends to a file.
func quiet() {
	fs := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(fs)
	_ = fs.Set("v", "0")
	_ = fs.Set("stderrthreshold", "ERROR")
	_ = fs.Set("logtostderr", "false")
	_ = fs.Set("alsologtostderr", "false")
	klog.SetOutput(io.Discard)
}
