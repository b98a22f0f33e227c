package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/plan"
)

// unsettled is a unit that is about to be rendered: what it will declare is not
// known. Whoever is to remove an object waits for it, where it may declare that
// object: an object that moves from one unit to another is not removed between.
type unsettled struct {
	unit rutter.Unit
	// fresh is true for one that has not been rendered since it was declared.
	fresh bool
	// tried is true when that has failed.
	tried bool
}

const (
	// rivalPause gathers many units that settle at one time into one look of a
	// unit that waits for them, and rivalRetry is when it looks though none did.
	rivalPause = 100 * time.Millisecond
	rivalRetry = 30 * time.Second
)

// unsettle notes that the unit is to be rendered; u.mu is held.
func (e *Engine) unsettle(u *state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.units[u.id] == u {
		e.unsettled[u] = unsettled{unit: u.unit, fresh: u.desired == nil}
	}
}

// settled notes that the unit was looked at: what it declares is known, or it is
// known that this cannot be told. u.mu is held.
func (e *Engine) settled(u *state) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, noted := e.unsettled[u]
	switch {
	case !noted || u.refresh > refreshNone && u.problem == nil: // it is to be rendered once more
		return
	case u.desired == nil:
		x.unit, x.tried = u.unit, true
		e.unsettled[u] = x
	default:
		delete(e.unsettled, u)
	}
	e.wakeWaiters()
}

// forgetRival is for a unit that is no more; e.mu is held.
func (e *Engine) forgetRival(u *state) {
	delete(e.unsettled, u)
	e.wakeWaiters()
}

// wakeWaiters looks again at the units that wait; e.mu is held.
func (e *Engine) wakeWaiters() {
	for id := range e.waiters {
		e.queue.addAfter(id, rivalPause)
	}
	clear(e.waiters)
	close(e.quiet)
	e.quiet = make(chan struct{})
}

// awaitRivals has everything that could be pruned wait for a rival; u.mu is held.
func (e *Engine) awaitRivals(u *state, extras []plan.Extra) {
	if !slices.ContainsFunc(extras, func(x plan.Extra) bool { return x.Protected == "" }) {
		return
	}
	rival, _ := e.rival(u)
	if rival == nil {
		return
	}
	for i := range extras {
		extras[i].Waits = waitsFor(rival)
	}
}

// spare says why an object is not to be removed after all: what was not known
// when that was planned may be by now. Until rivals have rendered it waits, but
// not for one that cannot. No unit is locked.
func (e *Engine) spare(ctx context.Context, u *state, op *operation, ref rutter.Ref) string {
	deadline := time.NewTimer(rivalRetry)
	defer deadline.Stop()
	for late := false; ; {
		e.mu.RLock()
		quiet := e.quiet
		e.mu.RUnlock()
		u.mu.Lock()
		other := e.claims.other(u, claim{u.server, ref})
		rival, tried := e.rival(u)
		u.postponed = u.postponed || rival != nil && (tried || late)
		changed, superseded := u.changed, op.superseded
		u.mu.Unlock()
		switch {
		case other != nil:
			return "it is declared by application " + other.instance
		case rival == nil:
			return ""
		case tried || late || superseded || ctx.Err() != nil:
			return waitsFor(rival)
		}
		select {
		case <-quiet:
		case <-changed:
		case <-deadline.C:
			late = true
		case <-ctx.Done():
		}
	}
}

func waitsFor(rival *state) string {
	return "application " + rival.instance + " is not rendered yet and may declare it"
}

// awaitRival returns a rival of a unit, if there is one; the unit is then woken
// when that may be over. No unit is locked.
func (e *Engine) awaitRival(u *state) (rival *state, tried bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return e.rival(u)
}

// rival returns a unit that may come to declare objects of u: one at the same
// cluster that has just been declared, or that reads one of the same
// repositories and has not rendered its newest state yet. One that cannot be
// rendered counts only where it has the very sources and target of u; the rest
// would otherwise keep everything else from being removed; tried says that it is
// such a one. u.mu is held, and nobody else's: the notes are enough.
func (e *Engine) rival(u *state) (found *state, tried bool) {
	type candidate struct {
		unit  *state
		tried bool
	}
	e.mu.Lock()
	waited := e.waiters[u.id]
	e.waiters[u.id] = true           // noted first, so that none settles unheard
	byName := map[string]candidate{} // whose cluster has to be looked up
	for o, x := range e.unsettled {
		switch t := x.unit.Target; {
		case o == u || o.leaving.Load() || !x.rivals(u.unit):
		case t.Server == "":
			if old, seen := byName[t.Name]; !seen || old.tried {
				byName[t.Name] = candidate{o, x.tried}
			}
		case t.Server == u.server:
			found, tried = o, x.tried
		}
		if found != nil && !tried {
			break
		}
	}
	e.mu.Unlock()
	for name, o := range byName {
		if c, err := e.opts.Clusters.Lookup(rutter.Target{Name: name}); found == nil && err == nil && c.Info().Server == u.server {
			found, tried = o.unit, o.tried
		}
	}
	switch {
	case found != nil:
		e.queue.addAfter(u.id, rivalRetry)
	case !waited:
		e.mu.Lock()
		delete(e.waiters, u.id)
		e.mu.Unlock()
	}
	return found, tried
}

// rivals reports whether the unit may come to declare what another one has.
func (x unsettled) rivals(unit rutter.Unit) bool {
	switch {
	case x.tried:
		return kin(unit, x.unit)
	case x.fresh:
		return true
	}
	return sharesRepo(unit, x.unit)
}

func sharesRepo(a, b rutter.Unit) bool {
	return slices.ContainsFunc(a.Sources, func(x rutter.Source) bool {
		return slices.ContainsFunc(b.Sources, func(y rutter.Source) bool { return x.Repo("") == y.Repo("") })
	})
}

// kin reports whether two units would have the same objects, by all that can be
// known without rendering.
func kin(a, b rutter.Unit) bool {
	return a.Target.Namespace == b.Target.Namespace && slices.ContainsFunc(a.Sources, func(x rutter.Source) bool {
		return slices.ContainsFunc(b.Sources, func(y rutter.Source) bool {
			return x.RepoURL == y.RepoURL && x.Path == y.Path && x.Chart == y.Chart
		})
	})
}
