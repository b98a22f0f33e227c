package argo

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// placementRetry is the pause after a watch of placement resources broke, and
	// placementRefused the one after it was refused.
	placementRetry   = 10 * time.Second
	placementRefused = 5 * time.Minute
)

// placements watches the kinds of placement resources that sets ask for, so
// that a decision is carried out when it is made and not minutes later. Of the
// objects nothing is kept: a change wakes the sets that use the kind, and these
// read what they need. Where a kind may not be watched, the sets come by
// themselves (generate.RequeueDefaults).
type placements struct {
	namespace string
	log       *slog.Logger
	wake      func(types.NamespacedName)
	client    metadata.Interface

	mu sync.Mutex
	// running is the context of the watches; nil until they may begin.
	running context.Context //nolint:containedctx // the manager's, for what begins later
	kinds   map[schema.GroupVersionResource]*placementKind
}

// placementKind is one kind in use.
type placementKind struct {
	users map[types.NamespacedName]bool
	stop  context.CancelFunc
}

// setupPlacements lets the watches begin with the manager.
func (c *Controllers) setupPlacements(mgr ctrl.Manager) error {
	client, err := metadata.NewForConfig(mgr.GetConfig())
	if err != nil {
		return fmt.Errorf("set up the watches of placement resources: %w", err)
	}
	p := &c.sets.placements
	p.namespace, p.log, p.wake, p.client = c.opts.Namespace, c.opts.Logger, c.sets.wake, client
	return mgr.Add(p)
}

// Start implements manager.Runnable.
func (p *placements) Start(ctx context.Context) error {
	p.mu.Lock()
	p.running = ctx
	for gvr, kind := range p.kinds {
		p.begin(gvr, kind) //nolint:contextcheck // it is kept, for kinds that are asked for later
	}
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

// begin watches a kind; p.mu is held.
func (p *placements) begin(gvr schema.GroupVersionResource, kind *placementKind) {
	if p.running == nil || kind.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(p.running)
	kind.stop = stop
	go p.follow(ctx, gvr)
}

// use notes that a set is asking for objects of a kind.
func (p *placements) use(key types.NamespacedName, gvr schema.GroupVersionResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := p.kinds[gvr]
	if kind == nil {
		if p.kinds == nil {
			p.kinds = map[schema.GroupVersionResource]*placementKind{}
		}
		kind = &placementKind{users: map[types.NamespacedName]bool{}}
		p.kinds[gvr] = kind
	}
	kind.users[key] = true
	p.begin(gvr, kind)
}

// settle takes back the kinds that a set uses no more; nobody watches what
// nobody uses.
func (p *placements) settle(key types.NamespacedName, now []schema.GroupVersionResource) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for gvr, kind := range p.kinds {
		if slices.Contains(now, gvr) {
			continue
		}
		delete(kind.users, key)
		if len(kind.users) > 0 {
			continue
		}
		if kind.stop != nil {
			kind.stop()
		}
		delete(p.kinds, gvr)
	}
}

// changed wakes the users of a kind.
func (p *placements) changed(gvr schema.GroupVersionResource) {
	p.mu.Lock()
	var users []types.NamespacedName
	if kind := p.kinds[gvr]; kind != nil {
		for key := range kind.users {
			users = append(users, key)
		}
	}
	p.mu.Unlock()
	for _, key := range users {
		p.wake(key)
	}
}

// follow watches a kind until ctx ends, whatever happens to the watch.
func (p *placements) follow(ctx context.Context, gvr schema.GroupVersionResource) {
	for {
		err := p.attend(ctx, gvr)
		if ctx.Err() != nil {
			return
		}
		pause := placementRetry
		if apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) {
			pause = placementRefused
			p.log.Warn("placement resources cannot be watched and are polled", "resource", gvr.String(), "err", err)
		} else {
			p.log.Debug("the watch of placement resources ended", "resource", gvr.String(), "err", err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// attend watches from now on until the watch breaks. What was missed before it
// is not known, so the users look.
func (p *placements) attend(ctx context.Context, gvr schema.GroupVersionResource) error {
	objects := p.client.Resource(gvr).Namespace(p.namespace)
	list, err := objects.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("list %s: %w", gvr.Resource, err)
	}
	p.changed(gvr)
	for at := list.ResourceVersion; ; {
		w, err := objects.Watch(ctx, metav1.ListOptions{ResourceVersion: at, AllowWatchBookmarks: true})
		if err != nil {
			return fmt.Errorf("watch %s: %w", gvr.Resource, err)
		}
		last, err := p.drain(w, gvr, at)
		w.Stop()
		if err != nil || last == at { // nothing came at all: do not spin
			return err
		}
		at = last
	}
}

// drain takes what a watch brings until it ends, and returns how far it came.
func (p *placements) drain(w watch.Interface, gvr schema.GroupVersionResource, at string) (string, error) {
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return at, fmt.Errorf("watch %s: %w", gvr.Resource, apierrors.FromObject(e.Object))
		}
		if m, ok := e.Object.(*metav1.PartialObjectMetadata); ok && m.ResourceVersion != "" {
			at = m.ResourceVersion
		}
		if e.Type != watch.Bookmark {
			p.changed(gvr)
		}
	}
	return at, nil
}
