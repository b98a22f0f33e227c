package engine

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// claim is one object of one cluster as units declare it.
type claim struct {
	server string
	ref    rutter.Ref
}

// claim records that the unit declares the objects of d; u.mu is held.
func (e *Engine) claim(u *state, d *desired) {
	if d == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for ref := range d.index {
		k := claim{u.server, ref}
		if !slices.Contains(e.claims[k], u) {
			e.claims[k] = append(slices.Clip(e.claims[k]), u)
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
	e.mu.Lock()
	defer e.mu.Unlock()
	for ref := range d.index {
		if x := u.live[ref]; x != nil && x.Exists {
			continue
		}
		k := claim{u.server, ref}
		left := slices.DeleteFunc(slices.Clone(e.claims[k]), func(o *state) bool { return o == u })
		if len(left) == 0 {
			delete(e.claims, k)
		} else {
			e.claims[k] = left
		}
	}
}

// otherClaim returns the instance of another unit that declares ref, or "".
func (e *Engine) otherClaim(u *state, server string, ref rutter.Ref) string {
	e.mu.RLock()
	claimants := e.claims[claim{server, ref}]
	e.mu.RUnlock()
	for _, o := range claimants {
		if o != u {
			return o.instance
		}
	}
	return ""
}

// foreign returns the instance of the other unit whose mark the object carries,
// if that unit is known and declares the object, or "".
func (e *Engine) foreign(u *state, obj *unstructured.Unstructured) string {
	hash := obj.GetLabels()[rutter.LabelUnit]
	if hash == u.hash || hash == "" {
		return ""
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	owner := e.byHash[hash]
	if owner == nil || !slices.Contains(e.claims[claim{u.server, rutter.RefOf(obj)}], owner) {
		return ""
	}
	return owner.instance
}

// released lets the units that declare objects of one that has gone look at
// them anew: what they took for that one's is theirs alone now. No unit is locked.
func (e *Engine) released(server string, refs []rutter.Ref) {
	for _, ref := range refs {
		e.mu.RLock()
		claimants := e.claims[claim{server, ref}]
		e.mu.RUnlock()
		for _, u := range claimants {
			u.mu.Lock()
			id, x := u.unit.ID, u.live[ref]
			wake := x != nil && x.foreign
			if wake {
				x.foreign, x.State, x.Reason = false, rutter.SyncUnknown, "was part of another application until now"
				u.notify()
			}
			u.mu.Unlock()
			if wake {
				e.queue.add(id)
			}
		}
	}
}
