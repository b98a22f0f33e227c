package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
)

// passers is how many objects of a unit are given at one time.
const passers = 8

// handing is a hand-over in progress: another unit takes what this one has.
type handing struct {
	to      rutter.UnitID
	done    bool
	problem error
}

// HandOver gives everything that one unit has to another one, which declares the
// same: the marks on the objects change, and nothing else. What the other one
// does not declare is its own to prune then. The unit that gives does nothing
// else from now on; it is woken until done is true, when it has nothing left and
// may be removed. Until then the call is repeated; Changed says when it is worth
// it, and an error what keeps it from going on.
//
// It can be cut off at any point, and begun again in either direction.
func (e *Engine) HandOver(from, to rutter.UnitID) (done bool, err error) {
	u := e.unit(from)
	if u == nil {
		return false, nil // it is not acted on: a person has set it aside
	}
	e.Retain(to)
	u.mu.Lock()
	if u.handing != nil && u.handing.to == to {
		defer u.mu.Unlock()
		return u.handing.done, u.handing.problem
	}
	u.handing = &handing{to: to}
	u.stop()
	server, refs := u.depart()
	u.mu.Unlock()
	e.released(server, refs)
	e.queue.add(from)
	return false, nil
}

// Retain ends a hand-over: the unit keeps what it still has.
func (e *Engine) Retain(id rutter.UnitID) {
	u := e.unit(id)
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.handing == nil {
		return
	}
	u.handing = nil
	u.leaving.Store(u.deletion != nil)
	u.refresh, u.news = max(u.refresh, refreshKnown), true
	e.unsettle(u)
	e.queue.add(id)
}

// depart takes the unit's say away, and returns what others may now look at
// anew; u.mu is held.
func (u *state) depart() (server string, refs []rutter.Ref) {
	u.leaving.Store(true)
	return u.server, slices.Collect(maps.Keys(u.live))
}

// processHandOver takes a step of handing everything over.
func (e *Engine) processHandOver(ctx context.Context, u *state, unit rutter.Unit) {
	u.mu.Lock()
	to := u.handing.to
	u.mu.Unlock()
	done, err := e.handOver(ctx, u, unit, to)
	if ctx.Err() != nil {
		return
	}
	u.mu.Lock()
	h := u.handing
	moved := h != nil && h.to == to && (h.done != done || (h.problem == nil) != (err == nil) || err != nil && h.problem.Error() != err.Error())
	if h != nil && h.to == to {
		h.done, h.problem = done, err
	}
	u.mu.Unlock()
	if err != nil {
		e.queue.addAfter(u.id, rivalRetry)
	}
	if moved {
		e.opts.Changed(u.id, false)
	}
}

func (e *Engine) handOver(ctx context.Context, u *state, unit rutter.Unit, to rutter.UnitID) (done bool, err error) {
	c, err := e.member(unit)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return true, nil // the cluster is no longer a member: there is nothing to hand over
	}
	if err != nil {
		return false, err
	}
	if ready, err := e.oversees(ctx, u, unit, c); !ready {
		return false, err
	}
	taker, err := e.taker(u, to, c.Info().Server)
	if taker == nil {
		return false, err
	}
	if err := e.passAll(ctx, u, c, u.marked(), func(victim) *state { return taker }); err != nil {
		return false, err
	}
	return len(u.marked()) == 0, nil
}

// taker is the unit that takes over, once it is known what it declares; until
// then u waits for it, and an error says why it is not known.
func (e *Engine) taker(u *state, to rutter.UnitID, server string) (*state, error) {
	e.mu.Lock()
	t := e.units[to]
	e.waiters[u.id] = true
	e.mu.Unlock()
	e.queue.addAfter(u.id, rivalRetry)
	if t == nil || t.leaving.Load() {
		return nil, nil
	}
	t.mu.Lock()
	rendered, problem, at := t.desired != nil, t.problem, t.server
	t.mu.Unlock()
	switch {
	case !rendered && problem != nil:
		return nil, rutter.Errorf(rutter.CodeOf(problem), "application %s, which is to take over, cannot be compared: %w", t.instance, problem)
	case !rendered:
		return nil, nil
	case at != server:
		return nil, rutter.Errorf(rutter.CodeConflict, "application %s, which is to take over, is at another cluster", t.instance)
	}
	return t, nil
}

// marked are the live objects that carry the unit's marks and are to stay.
func (u *state) marked() []victim { return u.ours(func(x *entry) bool { return !x.Deleting }) }

// ours are the live objects that carry the unit's marks and fit.
func (u *state) ours(fits func(*entry) bool) []victim {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []victim
	for ref, x := range u.live {
		if x.Exists && fits(x) && instanceOf(x.Tracking) == u.instance {
			all = append(all, victim{ref: ref, gvk: x.gvk, UID: x.UID, wave: x.meta.Wave})
		}
	}
	slices.SortFunc(all, func(a, b victim) int { return a.ref.Compare(b.ref) })
	return all
}

// passClaimed gives every object that another unit declares to that unit.
func (e *Engine) passClaimed(ctx context.Context, u *state, c rutter.Cluster) error {
	return e.passAll(ctx, u, c, u.marked(), func(x victim) *state { return e.claims.other(u, claim{c.Info().Server, x.ref}) })
}

// passAll gives objects to those who take them, side by side. One that cannot be
// given stops no other.
func (e *Engine) passAll(ctx context.Context, u *state, c rutter.Cluster, objects []victim, taker func(victim) *state) error {
	errs := make([]error, len(objects))
	var g errgroup.Group
	g.SetLimit(passers)
	for i, x := range objects {
		if to := taker(x); to != nil {
			g.Go(func() error {
				errs[i] = e.pass(ctx, u, c, x, to)
				return nil
			})
		}
	}
	_ = g.Wait() // each has its own error
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) > 1 {
		return fmt.Errorf("%w (and so %d more)", errs[0], len(errs)-1)
	}
	return errors.Join(errs...)
}

// pass writes the marks of another unit on an object, which is then that unit's.
// The object is the same one; whether its content is what that unit declares is
// compared as ever. Where that unit goes itself meanwhile, the object comes back.
func (e *Engine) pass(ctx context.Context, u *state, c rutter.Cluster, x victim, to *state) error {
	err := e.mark(ctx, c, x, u, to)
	if err == nil {
		e.stats.Passed.Add(1)
		e.queue.add(to.id)
	}
	if errors.Is(err, errLeaving) {
		if err = e.mark(ctx, c, x, to, u); err == nil || errors.Is(err, errLeaving) {
			e.queue.add(u.id)
			return nil
		}
	}
	if code := rutter.CodeOf(err); err != nil && code != rutter.CodeNotFound && code != rutter.CodeConflict {
		return rutter.Errorf(code, "hand %s over to application %s: %w", x.ref, to.instance, err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	e.drop(u, x.ref) // it is that unit's, gone, or another object by that name
	return nil
}

// errLeaving says that the unit which was given an object is itself going, and
// may have looked for what it has for the last time.
var errLeaving = errors.New("it is being deleted itself")

// mark gives an object to a unit, and lets that know before the watch does: so
// the object goes with it if it is deleted at once.
func (e *Engine) mark(ctx context.Context, c rutter.Cluster, x victim, from, to *state) error {
	from.mu.Lock()
	stamp := from.stampOf(x.ref) + "/" + from.instance
	from.mu.Unlock()
	to.mu.Lock()
	tracking := inventory.TrackingID(to.instance, x.ref, to.unit.Target.Namespace)
	to.mu.Unlock()
	obj, err := c.Mark(ctx, x.gvk, x.ref.Namespace, x.ref.Name, rutter.Mark{UID: x.UID, From: from.hash, To: to.hash, Tracking: tracking})
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it was about
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.server == c.Info().Server {
		y := e.newEntry(x.gvk, 0, obj)
		e.judge(to, x.ref, nil, &y, obj)
		to.live[x.ref] = &y
		if _, known := to.declaredAt[x.ref]; !known && !to.desired.declares(x.ref) {
			to.declaredAt[x.ref] = stamp // by the one that gave it
		}
		to.notify()
	}
	if to.leaving.Load() {
		return errLeaving
	}
	return nil
}
