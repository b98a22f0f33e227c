package engine

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
	"github.com/rutterhq/rutter/internal/compare"
)

// liveSide gives a run the unit's live entries: it records the server's answers
// there and waits for what the watches bring.
type liveSide struct {
	engine  *Engine
	u       *state
	op      *operation
	d       *desired
	cluster rutter.Cluster
	server  string // the cluster that is written to
}

var _ apply.Live = (*liveSide)(nil)

// Applied implements apply.Live. The answer to an apply is the newest state
// there is; what the server made of our object is by definition no drift.
func (l *liveSide) Applied(step rutter.Step, obj *unstructured.Unstructured) {
	l.engine.stats.Applies.Add(1)
	ref := l.d.named(rutter.RefOf(obj))
	o := &l.d.objects[step.Index]
	x := l.engine.newEntry(o.gvk, 0, obj)
	x.State, x.DesiredHash = rutter.Synced, o.Hash
	l.u.mu.Lock()
	defer l.u.mu.Unlock()
	if l.op.rested[ref] && l.u.desired == l.d && l.u.server == l.server {
		l.engine.judge(l.u, ref, nil, &x, obj) // not all of it was sent
	} else {
		x.OwnedHash, _ = compare.OwnedHash(obj, rutter.FieldManager, l.d.rules)
	}
	if l.u.server != l.server {
		return // the unit has moved to another cluster meanwhile
	}
	if l.u.outdated(ref, &x) {
		return
	}
	if old := l.u.live[ref]; old != nil {
		x.epoch = old.epoch
		if old.Exists && old.rv > x.rv && old.UID == x.UID {
			if old.DesiredHash != o.Hash { // a newer event was judged by the older declaration
				old.State, old.DesiredHash, old.suspect = rutter.OutOfSync, o.Hash, true
			}
			return
		}
	}
	if x.State == rutter.Synced {
		l.u.drifts.equal(ref, l.engine.now())
	}
	l.u.live[ref] = &x
	l.u.notify()
}

// Removed implements apply.Live.
func (l *liveSide) Removed(step rutter.Step) {
	l.engine.stats.Prunes.Add(1)
	l.u.mu.Lock()
	defer l.u.mu.Unlock()
	if x := l.u.live[step.Ref]; x != nil && l.u.server == l.server {
		x.Deleting = true
	}
}

// Health implements apply.Live.
func (l *liveSide) Health(obj *unstructured.Unstructured) rutter.Health { return l.engine.assess(obj) }

// Await implements apply.Live.
func (l *liveSide) Await(ctx context.Context, want []apply.Awaited) ([]rutter.Health, error) {
	var healths []rutter.Health
	err := l.wait(ctx, func() (bool, error) {
		healths = healths[:0]
		all, problem := true, error(nil)
		for _, w := range want {
			h, done, err := l.awaitOne(w)
			healths = append(healths, h)
			all = all && done
			if problem == nil {
				problem = err
			}
		}
		return all, problem
	})
	return healths, err
}

// awaitOne is how an object is that is waited for, and whether that is over; u.mu is held.
func (l *liveSide) awaitOne(w apply.Awaited) (h rutter.Health, done bool, err error) {
	x := l.u.live[w.Ref]
	there := x != nil && x.Exists && (!w.Hook || x.UID == w.UID)
	switch {
	case there:
		h = x.Health
	case w.Hook && l.op.vanished[w.UID].Status != "":
		if h = l.op.vanished[w.UID]; h.Status != rutter.Healthy {
			h = rutter.Health{Status: rutter.Degraded, Message: fmt.Sprintf("it was removed before it ended; it was last seen %s", h.Status)}
		}
	default:
		return rutter.Health{Status: rutter.Missing}, false, &apply.MissingError{Ref: w.Ref}
	}
	switch {
	case h.Status == rutter.Healthy || h.Status == "":
		return h, true, nil
	case h.Status == rutter.Degraded:
		return h, true, rutter.Errorf(rutter.CodeInvalid, "%s is degraded: %s", w.Ref, h.Message)
	case w.Hook && h.Status != rutter.Progressing && h.Status != rutter.Suspended:
		return h, true, rutter.Errorf(rutter.CodeInvalid, "hook %s is %s: %s", w.Ref, h.Status, h.Message)
	}
	return h, false, nil
}

// kindRetry is when it is asked whether a kind is served though nothing said so.
const kindRetry = 5 * time.Second

// AwaitKind implements apply.Live.
func (l *liveSide) AwaitKind(ctx context.Context, index int) error {
	gvk := l.d.objects[index].gvk
	again := time.NewTicker(kindRetry)
	defer again.Stop()
	for {
		l.u.mu.Lock()
		changed, superseded := l.u.changed, l.op.superseded
		l.u.mu.Unlock()
		if superseded {
			return apply.ErrSuperseded
		}
		l.cluster.Watch(gvk)
		if _, err := l.cluster.Mapping(ctx, gvk); err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-again.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped while waiting: %w", context.Cause(ctx))
		}
	}
}

// AwaitGone implements apply.Live.
func (l *liveSide) AwaitGone(ctx context.Context, refs []rutter.Ref) error {
	return l.wait(ctx, func() (bool, error) {
		for _, ref := range refs {
			if x := l.u.live[ref]; x != nil && x.Exists {
				return false, nil
			}
		}
		return true, nil
	})
}

// wait returns when ok says so; it is woken by every change of the unit.
func (l *liveSide) wait(ctx context.Context, ok func() (bool, error)) error {
	for {
		l.u.mu.Lock()
		done, err := ok()
		changed, superseded := l.u.changed, l.op.superseded
		l.u.mu.Unlock()
		switch {
		case done || err != nil:
			return err
		case superseded:
			return apply.ErrSuperseded
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("stopped while waiting: %w", context.Cause(ctx))
		}
	}
}
