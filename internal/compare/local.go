package compare

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Local compares what Git declares with a live object, without asking the
// server: every declared value must be there, and nothing may be there that
// our manager owns and Git no longer declares. Fields of others and the
// server's defaults are no difference.
//
// Equal is only said when an apply would change nothing. Where that takes
// knowledge of the server that isn't at hand, the answer is "different": that
// costs one dry run, and Predicted then has the last word.
func Local(desired, live *unstructured.Unstructured, opts Options) Result {
	f := &findings{}
	if desired == nil || live == nil {
		f.add(objectOf(desired), desired != nil, objectOf(live), live != nil)
		if live == nil {
			return f.result(desired)
		}
		return f.result(live)
	}
	desired = FoldSecret(desired)
	n, _ := owned(live, opts.manager())
	w := &localWalk{
		findings: f,
		kind:     live.GetKind(),
		builtin:  builtinGroup(live.GroupVersionKind().Group),
		secret:   isSecret(live) || isSecret(desired),
	}
	skip := opts.Rules.of(desired, live)
	w.top(desired.Object, live.Object, n, skip)
	w.removed(desired.Object, live.Object, n, skip)
	return f.result(live)
}

// objectOf stands for a whole object in a difference: all of it would be long,
// and a Secret.
func objectOf(u *unstructured.Unstructured) any {
	if u == nil {
		return nil
	}
	return map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}
}

// localWalk compares declared values with live ones. In every method d is the
// declared value, l the live one and n what we own at the place.
type localWalk struct {
	*findings

	kind    string
	builtin bool
	secret  bool
}

// builtinGroup reports whether a group is served by Kubernetes itself, whose
// types normalise quantities and drop empty values; custom resources are
// stored as they were sent.
func builtinGroup(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return true
	case "apiextensions.k8s.io", "apiregistration.k8s.io", "admissionregistration.k8s.io", "networking.k8s.io",
		"rbac.authorization.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "coordination.k8s.io", "discovery.k8s.io",
		"node.k8s.io", "events.k8s.io", "certificates.k8s.io", "flowcontrol.apiserver.k8s.io", "resource.k8s.io",
		"authentication.k8s.io", "authorization.k8s.io", "storagemigration.k8s.io", "internal.apiserver.k8s.io":
		return true
	}
	return false
}

// serverField names the metadata that is the server's alone.
func serverField(name string) bool {
	switch name {
	case "creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink",
		"deletionTimestamp", "deletionGracePeriodSeconds":
		return true
	}
	return false
}

// skipped reports whether a field at the current place is never compared.
func (f *findings) skipped(name string) bool {
	switch {
	case len(f.at) == 0:
		return name == "status"
	case len(f.at) == 1 && f.at[0].name == "metadata":
		return serverField(name)
	}
	return false
}

func (w *localWalk) top(d, l map[string]any, n node, skip skips) {
	for name, v := range d {
		w.child(name, v, l, n, skip)
	}
}

// child compares one declared field with the one of the same name.
func (w *localWalk) child(name string, v any, l map[string]any, n node, skip skips) {
	if w.skipped(name) {
		return
	}
	next, hit := skip.field(name)
	if hit {
		return
	}
	lv, found := l[name]
	w.push(step{kind: stepField, name: name})
	w.value(v, lv, found && lv != nil, n.field(name), next)
	w.pop()
}

func (w *localWalk) value(d, l any, found bool, n node, skip skips) {
	if !found {
		if !w.mayBeAbsent(d, n) {
			w.add(d, true, nil, false)
		}
		return
	}
	switch d := d.(type) {
	case map[string]any:
		if lm, ok := l.(map[string]any); ok {
			w.mapping(d, lm, n, skip)
			return
		}
	case []any:
		if ll, ok := l.([]any); ok {
			w.list(d, ll, n, skip)
			return
		}
	default:
		if w.sameLeaf(d, l) {
			return
		}
	}
	w.add(d, true, l, true)
}

// mayBeAbsent reports whether a declared value that isn't live is one that the
// server has dropped. When a field is ours and isn't there, nobody has taken it
// away: what we applied last was empty, and the built-in types keep no empties.
// That holds for the very field, not for one inside something owned whole.
func (w *localWalk) mayBeAbsent(d any, n node) bool {
	switch d := d.(type) {
	case nil:
		return true
	case []any:
		return len(d) == 0 && (n.exact() || w.builtin)
	case map[string]any:
		if len(d) == 0 {
			field, parent := w.field()
			return n.exact() || parent == "metadata" && freeForm(field)
		}
		for k, v := range d {
			if !w.mayBeAbsent(v, n.field(k)) {
				return false
			}
		}
		return true
	default:
		return w.builtin && n.exact() && zeroScalar(d)
	}
}

// sameLeaf compares a scalar the way the API server would.
func (w *localWalk) sameLeaf(d, l any) bool {
	if sameScalar(d, l) {
		return true
	}
	if !w.builtin || d == nil {
		return false
	}
	field, parent := w.field()
	if w.secret {
		return len(w.at) == 2 && parent == "data" && w.at[0].name == "data" && sameBase64(d, l)
	}
	return quantityField(w.kind, field, parent) && sameQuantity(d, l)
}

// mapping compares a map. One that is owned whole, or known to be atomic, is
// replaced by an apply, so that more live entries are a difference there.
func (w *localWalk) mapping(d, l map[string]any, n node, skip skips) {
	for name, v := range d {
		w.child(name, v, l, n, skip)
	}
	if !w.atomicMap(n) {
		return
	}
	for name, v := range l {
		if _, declared := d[name]; declared || v == nil {
			continue
		}
		if _, hit := skip.field(name); hit || w.builtin && w.defaulted(name, v, l) {
			continue
		}
		w.push(step{kind: stepField, name: name})
		w.add(nil, false, v, true)
		w.pop()
	}
}

// atomicMap reports whether an apply would replace a map as a whole.
func (w *localWalk) atomicMap(n node) bool {
	field, parent := w.field()
	if len(w.at) == 0 || len(w.at) == 1 && field == "metadata" {
		return false
	}
	if parent == "metadata" && (field == "labels" || field == "annotations") {
		return false
	}
	if n.exists {
		return n.leaf()
	}
	if !w.builtin {
		return true // a custom resource may have declared it atomic
	}
	return atomicName(field) || w.insideAtomic()
}

// insideAtomic reports whether the current place is an element of a list that
// is compared by index, or is below one.
func (w *localWalk) insideAtomic() bool {
	for _, s := range w.at {
		if s.kind == stepIndex {
			return true
		}
	}
	return false
}
