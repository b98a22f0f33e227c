package engine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
	"github.com/rutterhq/rutter/internal/compare"
)

// liveSide gives a run the unit's live entries: it records the server's answers
// there and waits for what the watches bring.
type liveSide struct {
	engine *Engine
	u      *state
	op     *operation
	d      *desired
	server string // the cluster that is written to
}

var _ apply.Live = (*liveSide)(nil)

// Applied implements apply.Live. The answer to an apply is the newest state
// there is; what the server made of our object is by definition no drift.
func (l *liveSide) Applied(step rutter.Step, obj *unstructured.Unstructured) {
	l.engine.stats.Applies.Add(1)
	ref := rutter.RefOf(obj)
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

// Await implements apply.Live.
func (l *liveSide) Await(ctx context.Context, refs []rutter.Ref) error {
	return l.wait(ctx, func() (bool, error) {
		for _, ref := range refs {
			x := l.u.live[ref]
			switch {
			case x == nil || !x.Exists:
				return false, nil
			case x.Health.Status == rutter.Degraded:
				return false, rutter.Errorf(rutter.CodeInvalid, "%s is degraded: %s", ref, x.Health.Message)
			case x.Health.Status != rutter.Healthy && x.Health.Status != "":
				return false, nil
			}
		}
		return true, nil
	})
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
			return fmt.Errorf("stopped while waiting: %w", ctx.Err())
		}
	}
}
