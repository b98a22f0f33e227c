package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/health"
)

// SetHealth takes how an operator has the health of kinds assessed; nil is the
// built-in rules alone. The objects of the kinds that it is about, or was, are
// looked at anew.
func (e *Engine) SetHealth(a *health.Assessor) {
	before := e.health.Swap(a)
	concerned := func(x *entry) bool {
		return a.Assesses(x.gvk.Group, x.gvk.Kind) || before.Assesses(x.gvk.Group, x.gvk.Kind)
	}
	for _, u := range e.all() {
		u.mu.Lock()
		again := false
		for ref, x := range u.live {
			if x.Exists && u.desired.declares(ref) && concerned(x) {
				x.State, x.Reason, x.Diffs, x.suspect = rutter.SyncUnknown, "its health is assessed anew", nil, false
				again = true
			}
		}
		u.mu.Unlock()
		if again {
			e.queue.add(u.id)
		}
	}
}

// assess is the health of a live object.
func (e *Engine) assess(obj *unstructured.Unstructured) rutter.Health {
	return e.health.Load().Of(obj, e.now())
}
