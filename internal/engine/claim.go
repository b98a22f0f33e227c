package engine

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
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
	by map[claim][]claimant
}

func newClaims() *claims { return &claims{by: map[claim][]claimant{}} }

// declare records that a unit declares an object, and answers with the other
// units that have to do with it, when that is news to them.
func (c *claims) declare(u *state, k claim) []*state {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.by[k])
	i := slices.IndexFunc(all, func(x claimant) bool { return x.unit == u })
	switch {
	case i < 0:
		all = append(all, claimant{unit: u, declares: true})
	case all[i].declares:
		return nil
	default:
		all[i].declares = true
	}
	c.by[k] = all
	return othersOf(all, u)
}

// withdraw takes back what declare recorded; watching leaves the unit among
// those that are told of the object. It answers as declare does.
func (c *claims) withdraw(u *state, k claim, watching bool) []*state {
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []claimant
	declared := false
	for _, x := range c.by[k] {
		if x.unit == u {
			if declared = x.declares; !watching {
				continue
			}
			x.declares = false
		}
		left = append(left, x)
	}
	if len(left) == 0 {
		delete(c.by, k)
		return nil
	}
	c.by[k] = left
	if !declared {
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
	return othersOf(c.by[k], nil)
}

// other returns another unit that declares the object and is there to stay, or nil.
func (c *claims) other(u *state, k claim) *state {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, x := range c.by[k] {
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
	return !u.leaving.Load() && slices.Contains(c.by[k], claimant{unit: u, declares: true})
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

// foreign returns the instance of the other unit whose mark the object carries,
// if that unit is known and declares the object, or "".
func (e *Engine) foreign(u *state, obj *unstructured.Unstructured) string {
	hash := obj.GetLabels()[rutter.LabelUnit]
	if hash == u.hash || hash == "" {
		return ""
	}
	e.mu.RLock()
	owner := e.byHash[hash]
	e.mu.RUnlock()
	if owner == nil || !e.claims.declares(owner, claim{u.server, rutter.RefOf(obj)}) {
		return ""
	}
	return owner.instance
}

// released lets the units that declare objects of one that has gone, or goes,
// look at them anew: what they took for that one's is theirs alone now. No unit
// is locked.
func (e *Engine) released(server string, refs []rutter.Ref) {
	for _, ref := range refs {
		for _, u := range e.claims.of(claim{server, ref}) {
			u.mu.Lock()
			x := u.live[ref]
			wake := x != nil && x.foreign
			if wake {
				x.foreign, x.State, x.Reason = false, rutter.SyncUnknown, "was part of another application until now"
				u.notify()
			}
			u.mu.Unlock()
			if wake {
				e.queue.add(u.id)
			}
		}
	}
}
