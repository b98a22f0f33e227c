package compare

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// HasFormer reports whether a live object was applied by another tool, which the
// first apply of ours succeeds.
func HasFormer(live *unstructured.Unstructured) (yes bool) {
	eachEntry(live, func(e managedEntry) { yes = yes || rutter.FormerManager(e.manager, e.operation, e.subresource) })
	return yes
}

// Takeover returns the one patch by which an object that another tool applied,
// and that is as Git wants it, becomes ours: our marks, our ownership as the
// server itself has written it in told, its answer to a dry run of our apply,
// and nothing left of the former owner. ok is false when anything else is to
// change; then it takes an apply.
func Takeover(want, live, told *unstructured.Unstructured, opts Options) (patch []byte, ok bool) {
	if !HasFormer(live) || !sameContent(live, told) {
		return nil, false
	}
	w := newLocalWalk(FoldSecret(want), live, opts)
	w.before = historyOf(live)
	w.run(w.stored(want, opts))
	for _, f := range w.findings.list {
		if !onlyMarks(f) {
			return nil, false
		}
	}
	var kept []any
	for _, e := range entriesOf(told) {
		m, _ := e.(map[string]any)
		manager, _ := m["manager"].(string)
		operation, _ := m["operation"].(string)
		subresource, _ := m["subresource"].(string)
		if !rutter.FormerManager(manager, operation, subresource) {
			kept = append(kept, e)
		}
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": kept},
		{"op": "add", "path": "/metadata/labels", "value": withoutMarks(told.GetLabels(), want.GetLabels())},
		{"op": "add", "path": "/metadata/annotations", "value": withoutMarks(told.GetAnnotations(), want.GetAnnotations())},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	return patch, err == nil
}

// stored is the declared object as the server would keep it, as far as its type
// is known.
func (w *localWalk) stored(want *unstructured.Unstructured, opts Options) map[string]any {
	want = FoldSecret(want)
	if stored, ok := opts.Types.asStored(want); ok {
		return stored
	}
	return want.Object
}

func entriesOf(u *unstructured.Unstructured) []any {
	meta, _ := u.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	return entries
}

// sameContent compares two answers of a server but for marks and who owns what.
func sameContent(a, b *unstructured.Unstructured) bool {
	x, y := a.DeepCopy(), b.DeepCopy()
	for _, u := range []*unstructured.Unstructured{x, y} {
		u.SetManagedFields(nil)
		u.SetResourceVersion("")
		u.SetGeneration(0)
		u.SetLabels(withoutMarks(u.GetLabels(), nil))
		u.SetAnnotations(withoutMarks(u.GetAnnotations(), nil))
		for _, mark := range []struct{ field, name string }{{"labels", rutter.LabelUnit}, {"annotations", rutter.AnnotationTracking}} {
			unstructured.RemoveNestedField(u.Object, "metadata", mark.field, mark.name)
			if m, _, _ := unstructured.NestedMap(u.Object, "metadata", mark.field); len(m) == 0 {
				unstructured.RemoveNestedField(u.Object, "metadata", mark.field)
			}
		}
	}
	return reflect.DeepEqual(x.Object, y.Object)
}

// onlyMarks says that a difference is one of marks: ours, or those of the former
// owner. One of them that Git declares is a field like any other.
func onlyMarks(f finding) bool {
	p := f.path
	if len(p) < 2 || p[0].name != "metadata" || p[1].name != "labels" && p[1].name != "annotations" {
		return false
	}
	if len(p) == 3 {
		return ourMark(p[2].name) || formerMark(p[2].name) && !f.hasDesired
	}
	declared, _ := f.desired.(map[string]any)
	for name := range declared {
		if !ourMark(name) {
			return false
		}
	}
	return len(p) == 2 && !f.hasLive
}

func ourMark(name string) bool { return name == rutter.LabelUnit || name == rutter.AnnotationTracking }

// formerMark reports whether a label or annotation is what a former owner finds
// its objects by: while it is there, that owner may remove them.
func formerMark(name string) bool {
	switch name {
	case lastApplied, "kustomize.toolkit.fluxcd.io/name", "kustomize.toolkit.fluxcd.io/namespace", "kustomize.toolkit.fluxcd.io/checksum",
		"helm.toolkit.fluxcd.io/name", "helm.toolkit.fluxcd.io/namespace",
		"app.kubernetes.io/instance":
		return true
	}
	return false
}

// withoutMarks are labels or annotations without the marks of former owners, but
// for those that Git declares.
func withoutMarks(m, declared map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		if _, ok := declared[k]; ok || !formerMark(k) {
			out[k] = v
		}
	}
	return out
}
