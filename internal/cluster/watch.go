package cluster

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rutterhq/rutter"
)

// failuresToTaint is how often in a row a reachable cluster may fail to answer
// for a kind, or say that it is busy, before the kind counts as tainted. What
// is a plain refusal taints at once.
const failuresToTaint = 2

// errRelist says that a watch cannot go on from where it was.
var errRelist = errors.New("the watch's position is too old")

// watch follows the marked objects of one kind.
type watch struct {
	m      *member
	gvk    rutter.GVK
	epoch  int64
	synced atomic.Bool
	listed bool // in this round
	// order is held while the sink is told something: the namespaces of a
	// restricted member are followed side by side.
	order sync.Mutex
}

// Watch implements rutter.Cluster.
func (m *member) Watch(gvk rutter.GVK) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed || m.watches[gvk] != nil {
		return
	}
	w := &watch{m: m, gvk: gvk}
	m.watches[gvk] = w
	m.wg.Go(func() { w.run(m.ctx) })
}

// Synced implements rutter.Cluster.
func (m *member) Synced(gvk rutter.GVK) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watches[gvk]
	return w != nil && w.synced.Load()
}

// run lists and watches until ctx ends. What fails is tried again with growing
// pauses; a kind that is not served is tried again when discovery learns it.
func (w *watch) run(ctx context.Context) {
	t := w.m.timing
	delay, failures := t.retryMin, 0
	for ctx.Err() == nil {
		if w.m.breaker.awaitClosed(ctx) != nil {
			return
		}
		learned := w.m.discovery.wait()
		started := time.Now()
		w.listed = false
		err := w.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if w.listed && time.Since(started) > t.probeEvery {
			delay, failures = t.retryMin, 0 // it went well for a while
		}
		if !errors.Is(err, errRelist) {
			failures++
			w.taint(err, failures)
		}
		if w.rest(ctx, delay, learned) {
			delay = t.retryMin / 8 // a kind is known a moment before it is served
		} else {
			delay = min(2*delay, t.retryMax)
		}
	}
}

// taint tells the sink that the kind cannot be watched, if it is the kind and
// not the cluster.
func (w *watch) taint(err error, failures int) {
	if w.m.breaker.check() != nil {
		return
	}
	if rutter.CodeOf(err) == rutter.CodeUnavailable && failures < failuresToTaint {
		return
	}
	if failures == failuresToTaint { // said once for a row of failures
		w.m.log.Warn("a kind cannot be watched", "kind", w.gvk.Kind, "group", w.gvk.Group, "err", err)
	}
	w.order.Lock()
	defer w.order.Unlock()
	w.m.sink.Tainted(w.m.server, w.gvk, err)
}

// rest waits before the next round; true when news of kinds ended the wait.
func (w *watch) rest(ctx context.Context, delay time.Duration, learned <-chan struct{}) bool {
	timer := time.NewTimer(delay/2 + rand.N(delay)) //nolint:gosec // spreads retries, not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-learned:
		return true
	case <-ctx.Done():
	}
	return false
}

// round is one listing and the watches that follow from it. It never returns nil.
func (w *watch) round(ctx context.Context) error {
	mapping, err := w.m.discovery.mapping(ctx, w.gvk)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		w.m.discovery.lookOut(w.gvk)
	}
	if err != nil {
		return err
	}
	w.epoch = w.m.epochs.Add(1)
	scopes := w.scopes(mapping)
	versions := make([]string, len(scopes))
	for i, ns := range scopes {
		if versions[i], err = w.list(ctx, pathOf(w.gvk, mapping, ns, "")); err != nil {
			return w.outdated(err)
		}
	}
	w.m.sink.Tainted(w.m.server, w.gvk, nil)
	w.synced.Store(true)
	w.listed = true
	w.m.sink.Listed(w.m.server, w.gvk, w.epoch)
	if len(scopes) == 0 { // a cluster-scoped kind of a member restricted to namespaces
		<-ctx.Done()
		return errRelist
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ends := make(chan error, len(scopes))
	for i, ns := range scopes {
		go func() { ends <- w.follow(ctx, pathOf(w.gvk, mapping, ns, ""), versions[i]) }()
	}
	err = <-ends
	cancel() // one scope that must list again makes all list again
	for range len(scopes) - 1 {
		<-ends //nolint:errcheck // the first of them said why
	}
	return w.outdated(err)
}

// outdated notes when the kind itself is gone, and sorts out what only means
// that a listing has to begin anew.
func (w *watch) outdated(err error) error {
	switch {
	case expired(err):
		return errRelist
	case unserved(err):
		w.m.discovery.forget(w.gvk)
	}
	return err
}

// scopes are the namespaces to look at, or one empty string for all.
func (w *watch) scopes(mapping rutter.Mapping) []string {
	info := w.m.Info()
	switch {
	case len(info.Namespaces) == 0, !mapping.Namespaced && info.ClusterResources:
		return []string{""}
	case !mapping.Namespaced:
		return nil
	}
	return info.Namespaces
}
