package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/apply"
)

// claim is one object of one cluster as units declare it.
type claim struct {
	server string
	ref    rutter.Ref
}

// claimant is a unit that has to do with an object.
type claimant struct {
	unit *state
	// declares is false for one that declared the object before: it is told of it
	// until it goes or is another unit's, but has no say in what becomes of it.
	declares bool
}

// claims are who declares what. What another unit declares is never removed: it
// becomes that unit's. Its lock is taken last.
type claims struct {
	mu sync.RWMutex
	// sole are the objects that concern one unit, which nearly all do, by server;
	// and shared the others.
	sole   map[string]map[rutter.Ref]claimant
	shared map[claim][]claimant
}

func newClaims() *claims {
	return &claims{sole: map[string]map[rutter.Ref]claimant{}, shared: map[claim][]claimant{}}
}

// by is who has to do with an object; the lock is held.
func (c *claims) by(k claim) []claimant {
	if x, ok := c.sole[k.server][k.ref]; ok {
		return []claimant{x}
	}
	return c.shared[k]
}

// put records who has to do with an object; the lock is held.
func (c *claims) put(k claim, all []claimant) {
	at := c.sole[k.server]
	switch {
	case len(all) != 1:
		delete(at, k.ref)
	case at != nil:
		at[k.ref] = all[0]
	default:
		c.sole[k.server] = map[rutter.Ref]claimant{k.ref: all[0]}
	}
	if at != nil && len(at) == 0 {
		delete(c.sole, k.server)
	}
	if len(all) > 1 {
		c.shared[k] = all
	} else {
		delete(c.shared, k)
	}
}

// declare records that a unit declares an object, and answers with the other
// units that have to do with it, when that is news to them.
func (c *claims) declare(u *state, k claim) []*state {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.by(k))
	i := slices.IndexFunc(all, func(x claimant) bool { return x.unit == u })
	switch {
	case i < 0:
		all = append(all, claimant{unit: u, declares: true})
	case all[i].declares:
		return nil
	default:
		all[i].declares = true
	}
	c.put(k, all)
	return othersOf(all, u)
}

// withdraw takes back what declare recorded; watching leaves the unit among
// those that are told of the object. It answers as declare does.
func (c *claims) withdraw(u *state, k claim, watching bool) []*state {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []claimant
	declared := false
	for _, x := range c.by(k) {
		if x.unit == u {
			if declared = x.declares; !watching {
				continue
			}
			x.declares = false
		}
		left = append(left, x)
	}
	c.put(k, left)
	if !declared || len(left) == 0 {
		return nil
	}
	return othersOf(left, u)
}

func othersOf(all []claimant, u *state) []*state {
	var others []*state
	for _, x := range all {
		if x.unit != u {
			others = append(others, x.unit)
		}
	}
	return others
}

// of returns all units that have to do with an object.
func (c *claims) of(k claim) []*state {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return othersOf(c.by(k), nil)
}

// other returns another unit that declares the object and is there to stay, or nil.
func (c *claims) other(u *state, k claim) *state {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, x := range c.by(k) {
		if x.unit != u && x.declares && !x.unit.leaving.Load() {
			return x.unit
		}
	}
	return nil
}

// declares reports whether the unit declares the object and is there to stay.
func (c *claims) declares(u *state, k claim) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return !u.leaving.Load() && slices.Contains(c.by(k), claimant{unit: u, declares: true})
}

// claim records that the unit declares the objects of d; u.mu is held. What its
// project refuses it has no claim to.
func (e *Engine) claim(u *state, d *desired) {
	if d == nil {
		return
	}
	for ref, i := range d.index {
		if d.objects[i].Refused == "" {
			e.wake(e.claims.declare(u, claim{u.server, ref}))
		}
	}
}

// unclaim takes back what claim recorded; u.mu is held. An object that is still
// there stays claimed until it goes or is another unit's, so that the unit learns
// of both.
func (e *Engine) unclaim(u *state, d *desired) {
	if d == nil {
		return
	}
	for ref := range d.index {
		x := u.live[ref]
		e.wake(e.claims.withdraw(u, claim{u.server, ref}, x != nil && x.Exists))
	}
}

// wake looks at units again.
func (e *Engine) wake(units []*state) {
	for _, u := range units {
		e.queue.add(u.id)
	}
}

// partOfTwo is said of an object that two units declare (reference 2.11).
func partOfTwo(ref rutter.Ref, a, b string) string {
	return fmt.Sprintf("%s/%s is part of applications %s and %s", ref.Kind, ref.Name, a, b)
}

// foreign returns the other unit whose mark the object carries, if that unit is
// known and declares the object, or nil.
func (e *Engine) foreign(u *state, obj *unstructured.Unstructured) *state {
	hash := obj.GetLabels()[rutter.LabelUnit]
	if hash == u.hash || hash == "" {
		return nil
	}
	e.mu.RLock()
	owner := e.byHash[hash]
	e.mu.RUnlock()
	if owner == nil || !e.claims.declares(owner, claim{u.server, rutter.RefOf(obj)}) {
		return nil
	}
	return owner
}

// yieldGrace is how long a sync waits for a unit that declares an object as well:
// it may be about to be deleted, as one whose set gives its elements other names.
const yieldGrace = 5 * time.Second

// awaitOwner makes sure that an object is not another unit's: what carries the mark
// of a unit that declares it stays that one's, and the error says so. A unit that is
// about to be rendered or deleted may declare it no more: that is waited for, so that
// an object that moves goes over without an error. No unit is locked.
func (e *Engine) awaitOwner(ctx context.Context, u *state, op *operation, ref rutter.Ref) error {
	began := e.now()
	deadline := time.NewTimer(yieldGrace)
	defer deadline.Stop()
	for {
		e.mu.RLock()
		quiet := e.quiet
		e.mu.RUnlock()
		u.mu.Lock()
		var owner *state
		if x := u.live[ref]; x != nil && x.Exists {
			owner = x.foreign
		}
		k, changed, superseded := claim{u.server, ref}, u.changed, op.superseded
		u.mu.Unlock()
		if owner == nil || !e.claims.declares(owner, k) {
			return nil
		}
		e.mu.RLock()
		pending, unsure := e.unsettled[owner]
		e.mu.RUnlock()
		patience := yieldGrace
		if unsure && !pending.tried {
			patience = rivalRetry
		}
		left := patience - e.now().Sub(began)
		if left <= 0 || superseded {
			return u.concede(op, ref, rutter.Errorf(rutter.CodeConflict, "%s: it carries the mark of %s and is left to that one; take it out of one of the two", partOfTwo(ref, owner.instance, u.instance), owner.instance))
		}
		deadline.Reset(left)
		select {
		case <-quiet:
		case <-changed:
		case <-deadline.C:
		case <-ctx.Done():
			return fmt.Errorf("stopped while application %s has %s: %w", owner.instance, ref, context.Cause(ctx))
		}
	}
}

// concede notes that an operation left an object to somebody else: trying again
// changes nothing before that one lets it go, which starts a sync by itself.
func (u *state) concede(op *operation, ref rutter.Ref, err error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if op.conceded == nil {
		op.conceded = map[rutter.Ref]bool{}
	}
	op.conceded[ref] = true
	return err
}

// onlyConceded reports whether nothing of an operation failed but what it left to
// others; u.mu is held.
func (o *operation) onlyConceded(results []rutter.StepResult) bool {
	for _, r := range results {
		if r.Status == apply.StatusFailed && !o.conceded[r.Ref] {
			return false
		}
	}
	return len(o.conceded) > 0
}

// stillOthers reports whether what an operation left to others is theirs yet; u.mu
// is held.
func (u *state) stillOthers(op *operation) bool {
	for ref := range op.conceded {
		if x := u.live[ref]; x == nil || x.foreign == nil && x.claimed == "" {
			return false
		}
	}
	return true
}

// released lets the units that declare objects of one that has gone, or goes,
// look at them anew: what they took for that one's is theirs alone now. No unit
// is locked.
func (e *Engine) released(server string, refs []rutter.Ref) {
	for _, ref := range refs {
		for _, u := range e.claims.of(claim{server, ref}) {
			u.mu.Lock()
			x := u.live[ref]
			wake := x != nil && x.foreign != nil
			if wake {
				u.yielded(x)
			}
			u.mu.Unlock()
			if wake {
				e.queue.add(u.id)
			}
		}
	}
}
