package engine

import (
	"slices"

	"github.com/rutterhq/rutter"
)

// What a controller knows of a unit after a restart it knows from the record: the
// status of the object that declares it. Hence two things wait until it is written.
// A sync does not make objects of a kind that the record does not name: they could
// not be found again when the next commit declares none of that kind. And hooks are
// kept until it says how the sync ended.

// Recorded says that a report is kept.
func (e *Engine) Recorded(r rutter.Report) {
	u := e.unit(r.ID)
	if u == nil {
		return
	}
	u.mu.Lock()
	wake := u.recordKinds(r.Resources)
	if op := r.Operation; op != nil && op.Phase.Completed() && u.last != nil && u.last.StartedAt.Equal(op.StartedAt) {
		if !u.recorded.Equal(op.StartedAt) {
			u.recorded = op.StartedAt
			wake = wake || u.keepsHooks()
		}
		u.last = withoutResults(u.last)
	}
	u.mu.Unlock()
	if wake {
		e.queue.add(r.ID)
	}
}

// withoutResults is an operation without what became of each object: the record has
// that, and keeps it as it is.
func withoutResults(op *rutter.OperationReport) *rutter.OperationReport {
	if op == nil || op.Results == nil {
		return op
	}
	short := *op
	short.Results = nil
	return &short
}

// recordKinds notes the kinds of objects that the record names, and reports whether
// a sync waits for that; u.mu is held.
func (u *state) recordKinds(all []rutter.ResourceReport) (waited bool) {
	for i := range all {
		gvk := rutter.GVK{Group: all[i].Group, Version: all[i].Version, Kind: all[i].Kind}
		if !slices.Contains(u.unit.KnownKinds, gvk) {
			u.unit.KnownKinds = append(slices.Clip(u.unit.KnownKinds), gvk)
		}
	}
	waited = u.unrecorded && !u.unknownKinds()
	if waited {
		u.unrecorded = false
	}
	return waited
}

// unknownKinds reports whether a kind is declared that the record does not name;
// u.mu is held.
func (u *state) unknownKinds() bool {
	return u.desired != nil && slices.ContainsFunc(u.desired.objects, func(o desiredObject) bool {
		return o.Ref.Name != "" && !o.Meta.Skip && o.Refused == "" && !slices.Contains(u.unit.KnownKinds, o.gvk)
	})
}

func (u *state) keepsHooks() bool {
	for _, x := range u.live {
		if x.hook != nil {
			return true
		}
	}
	return false
}
