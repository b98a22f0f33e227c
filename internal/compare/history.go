package compare

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// history is what is recorded of an object that we have never applied about
// those who did: what they applied and Git no longer declares is to go.
type history struct {
	// owned are the fields of managers who apply on the server's side. Of those
	// who apply on their own side the server also counts what it filled in
	// itself, so that what they own says nothing.
	owned []node
	// lastApplied is what was applied that way, as the annotation says.
	lastApplied map[string]any
}

// applier reports whether a manager applies what is declared somewhere, so that
// what it owns and Git doesn't declare was taken away there.
func applier(manager string) bool {
	switch manager {
	case "kubectl", "argocd-controller", "argocd-application-controller", "kustomize-controller", "helm-controller", "helm":
		return true
	}
	return false
}

// mark reports whether a label or annotation is one by which a tool finds what
// it has applied: it is not declared in Git, where only that is compared with.
func (w *localWalk) mark(name string) bool {
	if !w.final || len(w.at) != 2 || w.at[0].name != "metadata" {
		return false
	}
	switch name {
	case rutter.LabelUnit, rutter.AnnotationTracking, "app.kubernetes.io/instance", "app.kubernetes.io/managed-by":
		return true
	}
	domain, _, _ := strings.Cut(name, "/")
	switch domain {
	case "kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io", "meta.helm.sh":
		return true
	}
	return false
}

func historyOf(live *unstructured.Unstructured) (h history) {
	eachEntry(live, func(e managedEntry) {
		if e.operation == "Apply" && len(e.fields) > 0 && applier(e.manager) {
			h.owned = append(h.owned, node{fields: e.fields, exists: true})
		}
	})
	text, ok := live.GetAnnotations()[lastApplied]
	if !ok {
		return h
	}
	var last map[string]any
	if json.Unmarshal([]byte(text), &last) != nil || last == nil {
		return h
	}
	h.lastApplied = FoldSecret(&unstructured.Unstructured{Object: last}).Object
	return h
}

// lost finds what was applied last, is no longer declared and is still live.
func (w *localWalk) lost(last, d, l any, skip skips) {
	switch last := last.(type) {
	case map[string]any:
		dm, _ := d.(map[string]any)
		lm, _ := l.(map[string]any)
		for name, v := range last {
			w.lostField(name, v, dm, lm, skip)
		}
	case []any:
		dl, _ := d.([]any)
		ll, _ := l.([]any)
		if keys, set := w.shape(last, node{}); keys != nil {
			w.lostElems(last, dl, ll, keys, skip)
		} else if set {
			w.lostValues(last, dl, ll, skip)
		}
	}
}

func (w *localWalk) lostField(name string, last any, d, l map[string]any, skip skips) {
	next, hit := skip.field(name)
	lv, live := l[name]
	_, declared := d[name]
	if hit || !live || lv == nil || last == nil || w.skipped(name) || w.lastApplied(name) || !declared && w.mark(name) {
		return
	}
	w.push(step{kind: stepField, name: name})
	defer w.pop()
	if !declared {
		w.add(nil, false, lv, true)
		return
	}
	w.lost(last, d[name], lv, next)
}

func (w *localWalk) lostElems(last, d, l []any, keys []string, skip skips) {
	for _, v := range last {
		elem, ok := v.(map[string]any)
		if !ok {
			continue
		}
		elem = w.withKeys(elem, keys)
		at, _ := findElem(l, elem, keys)
		declared := -1
		for i, v := range d {
			if m, ok := v.(map[string]any); ok && sameKeys(w.withKeys(m, keys), elem, keys) {
				declared = i
			}
		}
		next, hit := skip.elem(declared, at)
		if at < 0 || hit {
			continue
		}
		w.push(step{kind: stepKeyed, elem: elem, keys: keys})
		if declared < 0 {
			w.add(nil, false, l[at], true)
		} else {
			w.lost(v, d[declared], l[at], next)
		}
		w.pop()
	}
}

func (w *localWalk) lostValues(last, d, l []any, skip skips) {
	for _, v := range last {
		at := indexOf(l, v)
		if at < 0 || indexOf(d, v) >= 0 {
			continue
		}
		if _, hit := skip.elem(-1, at); hit {
			continue
		}
		w.push(step{kind: stepValue, value: v})
		w.add(nil, false, v, true)
		w.pop()
	}
}
