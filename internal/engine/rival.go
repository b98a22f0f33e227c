package engine

import (
	"maps"
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
}

// awaitRivals has everything that could be pruned wait for a rival; u.mu is held.
func (e *Engine) awaitRivals(u *state, extras []plan.Extra) {
	if !slices.ContainsFunc(extras, func(x plan.Extra) bool { return x.Protected == "" }) {
		return
	}
	rival := e.rival(u, u.unit)
	if rival == nil {
		return
	}
	for i := range extras {
		extras[i].Waits = waitsFor(rival)
	}
}

// spare says why an object is not to be removed after all: what was not known
// when that was planned may be by now. No unit is locked.
func (e *Engine) spare(u *state, ref rutter.Ref) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if other := e.claims.other(u, claim{u.server, ref}); other != nil {
		return "it is declared by application " + other.instance
	}
	if rival := e.rival(u, u.unit); rival != nil {
		u.postponed = true
		return waitsFor(rival)
	}
	return ""
}

func waitsFor(rival *state) string {
	return "application " + rival.instance + " is not rendered yet and may declare it"
}

// awaitRival returns a rival of a unit, if there is one; the unit is then woken
// when that may be over. No unit is locked.
func (e *Engine) awaitRival(u *state) *state {
	u.mu.Lock()
	defer u.mu.Unlock()
	return e.rival(u, u.unit)
}

// rival returns a unit that may come to declare objects of u: one at the same
// cluster that has just been declared, or that reads one of the same
// repositories and has not rendered its newest state yet. One that cannot be
// rendered counts only where it has the very sources and target of u; the rest
// would otherwise keep everything else from being removed. u.mu is held, and
// nobody else's: the notes are enough.
func (e *Engine) rival(u *state, unit rutter.Unit) *state {
	e.mu.Lock()
	waited := e.waiters[u.id]
	e.waiters[u.id] = true // noted first, so that none settles unheard
	noted := maps.Clone(e.unsettled)
	e.mu.Unlock()
	for o, x := range noted {
		if o == u || o.leaving.Load() || !x.rivals(unit) || !e.sameCluster(u.server, x.unit.Target) {
			continue
		}
		e.queue.addAfter(u.id, rivalRetry)
		return o
	}
	if !waited {
		e.mu.Lock()
		delete(e.waiters, u.id)
		e.mu.Unlock()
	}
	return nil
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

func (e *Engine) sameCluster(server string, t rutter.Target) bool {
	if t.Server != "" && t.Server == server {
		return true
	}
	c, err := e.opts.Clusters.Lookup(t)
	return err == nil && c.Info().Server == server
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
