package compare

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
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
	desired, live = FoldSecret(desired), FoldSecret(live) // a live one from a file may never have been stored
	w := newLocalWalk(desired, live, opts)
	w.run(desired.Object)
	if len(w.findings.list) == 0 {
		return Result{Equal: true, Owned: !w.unowned}
	}
	if stored, ok := opts.Types.asStored(desired); ok {
		w.findings.list, w.unowned = nil, false
		w.run(stored)
	}
	res := w.result(live)
	res.Owned = res.Equal && !w.unowned
	return res
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
	// final says that nobody will be asked who knows better.
	final bool
	live  *unstructured.Unstructured
	ours  node
	skip  skips
	// unowned says that something declared is not ours.
	unowned bool
	// known are fields that hold a built-in type, and builtins those types.
	known    []known
	builtins *schema.Schemas
	// before is what was applied before us, as far as that is recorded.
	before history
	// types are those of the places on the way down; empty where the kind is not
	// known.
	root  *schema.Type
	types []*schema.Type
}

func newLocalWalk(desired, live *unstructured.Unstructured, opts Options) *localWalk {
	n, applied := owned(live, opts.manager())
	w := &localWalk{
		findings: &findings{},
		kind:     live.GetKind(),
		builtin:  builtinGroup(live.GroupVersionKind().Group),
		secret:   isSecret(live) || isSecret(desired),
		final:    opts.Final,
		live:     live,
		ours:     n,
		skip:     opts.Rules.of(desired, live),
		root:     cmp.Or(opts.Types.of(live), opts.Type),
		known:    opts.Rules.knownFields(rutter.RefOf(live)),
	}
	if opts.Types != nil {
		w.builtins = opts.Types.schemas
	}
	w.status = opts.Rules.comparesStatus(live)
	if !applied {
		w.before = historyOf(live)
	}
	return w
}

// run compares a form of the declared object with the live one.
func (w *localWalk) run(desired map[string]any) {
	w.top(desired, w.live.Object, w.ours, w.skip)
	w.removed(desired, w.live.Object, w.ours, w.skip)
	for _, n := range w.before.owned {
		w.removed(desired, w.live.Object, n, w.skip)
	}
	if w.before.lastApplied != nil {
		w.lost(w.before.lastApplied, desired, w.live.Object, w.skip)
	}
}

// push goes one step down.
func (w *localWalk) push(s step) {
	if w.root != nil {
		t := w.typ()
		if s.kind == stepField {
			t = t.Field(s.name)
		} else {
			t = t.Item()
		}
		w.types = append(w.types, t)
	}
	w.findings.push(s)
}

// pop goes back up.
func (w *localWalk) pop() {
	if w.root != nil {
		w.types = w.types[:len(w.types)-1]
	}
	w.findings.pop()
}

// typ is the type of the current place, nil when it is not known.
func (w *localWalk) typ() *schema.Type {
	if len(w.types) == 0 {
		return w.root
	}
	return w.types[len(w.types)-1]
}

// add records a difference at the current place.
func (w *localWalk) add(desired any, hasDesired bool, live any, hasLive bool) {
	w.findings.add(plain(desired), hasDesired, live, hasLive)
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
		return name == "status" && !f.status
	case len(f.at) == 1 && f.at[0].name == "metadata":
		return serverField(name)
	}
	return false
}

// identity reports whether the current place is a part of what names the object,
// which nobody owns.
func (f *findings) identity() bool {
	switch name := f.at[len(f.at)-1].name; len(f.at) {
	case 1:
		return name == "apiVersion" || name == "kind"
	case 2:
		return f.at[0].name == "metadata" && (name == "name" || name == "namespace")
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
	if m, isMap := d.(map[string]any); (!isMap || len(m) == 0) && !n.exists && !w.identity() {
		w.unowned = true
	}
	if !found {
		if !w.mayBeAbsent(d, n) {
			w.add(d, true, nil, false)
		}
		return
	}
	if empty, ok := d.(dropped); ok {
		d = empty.value
		if w.filledIn(d, l) {
			return
		}
	}
	switch d := d.(type) {
	case nil:
		if w.final && (w.builtin || isDefault(w.typ(), l)) {
			return // as if it were not declared: what the server makes of it can't be known here
		}
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
	case nil, dropped:
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
		return zeroScalar(d) && (w.builtin && n.exact() || w.keptOut())
	}
}

// sameLeaf compares a scalar the way the API server would.
func (w *localWalk) sameLeaf(d, l any) bool {
	if sameScalar(d, l) || w.sameKnown(d, l) {
		return true
	}
	if !w.builtin || d == nil {
		return false
	}
	field, parent := w.field()
	if w.secret {
		return len(w.at) == 2 && parent == "data" && w.at[0].name == "data" && sameBase64(d, l)
	}
	if t := w.typ(); t != nil {
		return t.Kind == schema.Quantity && sameQuantity(d, l)
	}
	return quantityField(w.kind, field, parent) && sameQuantity(d, l)
}

// mapping compares a map. One that is owned whole, or known to be atomic, is
// replaced by an apply, so that more live entries are a difference there.
func (w *localWalk) mapping(d, l map[string]any, n node, skip skips) {
	for name, v := range d {
		w.child(name, v, l, n, skip)
	}
	if !w.atomicMap(d, n) {
		return
	}
	for name, v := range l {
		if _, declared := d[name]; declared || v == nil {
			continue
		}
		if _, hit := skip.field(name); hit || w.defaulted(name, v, l) {
			continue
		}
		w.push(step{kind: stepField, name: name})
		w.add(nil, false, v, true)
		w.pop()
	}
}

// atomicMap reports whether an apply of d would replace a map as a whole. Owned
// as such it is replaced, but for one that was applied empty: only its type tells.
func (w *localWalk) atomicMap(d map[string]any, n node) bool {
	field, parent := w.field()
	if len(w.at) == 0 || len(w.at) == 1 && field == "metadata" {
		return false
	}
	if parent == "metadata" && (field == "labels" || field == "annotations") {
		return false
	}
	if settled := n.exact() && n.leaf() && len(d) == 0 && w.typ().Known(); n.exists && !settled {
		return n.leaf()
	}
	if w.insideAtomic() {
		return true
	}
	if t := w.typ(); t.Known() {
		return t.Atomic
	}
	if !w.builtin {
		return !w.final // a custom resource may have declared it atomic
	}
	return atomicName(field)
}

// insideAtomic reports whether the current place is an element of a list that
// is compared by index, or is below one, or below a map that is replaced whole.
func (w *localWalk) insideAtomic() bool {
	for i, s := range w.at {
		if s.kind == stepIndex || i < len(w.types)-1 && w.types[i] != nil && w.types[i].Atomic {
			return true
		}
	}
	return false
}
