package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// follower knows all Applications as the API server shows them: what a user
// sees, at the moment in which he sees it.
type follower struct {
	mu      sync.Mutex
	apps    map[string]seen
	changed chan struct{}
	ended   chan struct{}
	err     error
}

// seen is what is looked at of an Application.
type seen struct {
	sync, revision, phase, condition string
}

// syncedAt tells whether the commit has been synced, the operation included.
func (s seen) syncedAt(commit string) bool {
	return s.sync == "Synced" && s.revision == commit && s.phase == "Succeeded"
}

func (s seen) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s at %.8s, operation %s %s", s.sync, s.revision, s.phase, s.condition))
}

// follow watches until ctx ends.
func follow(ctx context.Context, c client.WithWatch) *follower {
	f := &follower{apps: map[string]seen{}, changed: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for ctx.Err() == nil { // a watch begins with what there is
			if f.err = f.watch(ctx, c); f.err != nil {
				return
			}
		}
	}()
	return f
}

func (f *follower) watch(ctx context.Context, c client.WithWatch) error {
	w, err := c.Watch(ctx, &v1alpha1.ApplicationList{}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watch Applications: %w", err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		app, ok := ev.Object.(*v1alpha1.Application)
		if !ok {
			return fmt.Errorf("the watch of Applications answers %v", ev.Object)
		}
		s := seen{sync: app.Status.Sync.Status, revision: app.Status.Sync.Revision}
		if op := app.Status.OperationState; op != nil {
			s.phase = op.Phase
		}
		for _, cond := range app.Status.Conditions {
			s.condition = cond.Message
		}
		f.mu.Lock()
		f.apps[app.Name] = s
		f.mu.Unlock()
		select {
		case f.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// await waits until ok holds for all the named Applications.
func (f *follower) await(ctx context.Context, c *child, names []string, ok func(seen) bool) error {
	pending := names
	for {
		f.mu.Lock()
		var rest []string
		for _, name := range pending {
			if app, exists := f.apps[name]; !exists || !ok(app) {
				rest = append(rest, name)
			}
		}
		f.mu.Unlock()
		if pending = rest; len(pending) == 0 {
			return nil
		}
		var err error
		select {
		case <-f.changed:
			continue
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-c.ended:
			err = c.err
		case <-f.ended:
			err = f.err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		return fmt.Errorf("%d of %d Applications are not there yet, %s is %q: %w", len(pending), len(names), pending[0], f.apps[pending[0]], err)
	}
}
