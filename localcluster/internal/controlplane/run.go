package controlplane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	logsapi "k8s.io/component-base/logs/api/v1"
)

// stopGrace is how long the parts may take to end. What is left after that ends
// with the process; etcd is closed in any case.
const stopGrace = 3 * time.Second

// Run starts the parts and calls ready once the API server answers. It returns
// when ctx has ended and the parts have stopped, or when one of them fails.
func Run(ctx context.Context, opts Options, ready func(context.Context, *Cluster) error) error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged // three components share this process's logging
	c, err := prepare(opts)
	if err != nil {
		return err
	}
	defer c.listener.Close()
	defer c.etcd.remove()
	store, err := startEtcd(ctx, c.etcd, opts)
	if err != nil {
		return stopped(ctx, err)
	}
	defer store.Close()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("kube-apiserver", c.apiServer)
	if err := c.awaitReady(ctx); err == nil {
		part("kube-controller-manager", c.controllerManager)
		if opts.Full {
			part("kube-scheduler", c.scheduler)
		}
		if err := ready(ctx, c); err != nil {
			cancel(err)
		}
	}
	<-ctx.Done()
	awaitEnd(&wg)
	return stopped(ctx, context.Cause(ctx))
}

// awaitEnd waits for the parts, but not for one that doesn't end.
func awaitEnd(wg *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(stopGrace):
	}
}

// stopped is nil for a cluster that ended because it was told to.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
