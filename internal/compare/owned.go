package compare

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// OwnedHash returns a hash over the fields that manager's Apply entry owns and
// the live values of them. Two states of an object with the same hash differ
// in nothing that manager applied: a field that somebody else writes changes
// its value or leaves the set. ok is false when manager never applied the object.
//
// It runs for every event of every object, so it walks the field set and the
// object side by side and builds nothing but one buffer.
func OwnedHash(live *unstructured.Unstructured, manager string, rules *Rules) (hash string, ok bool) {
	n, ok := owned(live, manager)
	if !ok {
		return "", false
	}
	w := ownedWriter{buf: make([]byte, 0, hashBuffer)}
	w.root(n.fields, live.Object, rules.of(nil, live).l, rules.comparesStatus(live))
	return digest(w.buf), true
}

// ownedWriter writes the canonical form of owned fields and their values.
type ownedWriter struct {
	buf []byte
	key []byte
}

// root leaves the status out: it is the business of controllers, also where a
// custom resource keeps it in the main resource; but where it is to be compared.
func (w *ownedWriter) root(fields, obj map[string]any, skip pointers, status bool) {
	if _, ok := fields["f:status"]; ok && !status {
		skip = append(slices.Clip(skip), []string{"status"})
	}
	w.children(fields, obj, skip)
}

// place writes one place under its name, and nothing when all of it is
// ignored: an ignored field must not count whether we own it or not.
func (w *ownedWriter) place(name string, fields map[string]any, v any, found bool, skip pointers) {
	start := len(w.buf)
	w.buf = appendString(w.buf, name)
	switch {
	case !found:
		w.buf = append(w.buf, '-')
	case len(fields) == 0:
		w.buf = appendValue(w.buf, v, skip)
	default:
		inner := len(w.buf)
		w.children(fields, v, skip)
		if len(w.buf) == inner {
			w.buf = w.buf[:start]
			return
		}
	}
	w.buf = append(w.buf, ';')
}

func (w *ownedWriter) children(fields map[string]any, v any, skip pointers) {
	if list, ok := v.([]any); ok {
		w.elements(fields, list, skip)
		return
	}
	m, _ := v.(map[string]any)
	var room [24]string
	names := room[:0]
	for k := range fields {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		name, isField := strings.CutPrefix(k, prefixField)
		if !isField {
			if k == fieldSelf {
				w.buf = append(w.buf, '.')
			} else { // an element of a list that is no list any more
				w.place(k, nil, nil, false, nil)
			}
			continue
		}
		next, hit := skip.step(name)
		if hit {
			continue
		}
		sub, _ := fields[k].(map[string]any)
		child, found := m[name]
		w.place(name, sub, child, found, next)
	}
}

// elements writes the owned elements of a list in the order in which they are
// live, so that a change of their order counts, and then those that are gone.
func (w *ownedWriter) elements(fields map[string]any, list []any, skip pointers) {
	keys := node{fields: fields}.listKeys()
	found := make(map[string]bool, len(fields))
	for i, v := range list {
		k, ok := w.entryOf(fields, v, keys)
		if !ok {
			continue
		}
		found[k] = true
		next, hit := skip.index(i)
		if hit {
			continue
		}
		sub, _ := fields[k].(map[string]any)
		w.place(k, sub, v, true, next)
	}
	if len(found) == len(fields) {
		return
	}
	var gone []string
	for k := range fields {
		if !found[k] {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	for _, k := range gone {
		if k == fieldSelf {
			w.buf = append(w.buf, '.')
			continue
		}
		w.place(k, nil, nil, false, nil)
	}
}

// entryOf returns the entry of fields that names the element v.
func (w *ownedWriter) entryOf(fields map[string]any, v any, keys []string) (string, bool) {
	m, isMap := v.(map[string]any)
	if isMap && keys != nil {
		w.key = appendKey(w.key[:0], m, keys)
		if _, ok := fields[string(w.key)]; ok {
			return string(w.key), true
		}
		for k := range fields { // another spelling of the same keys
			if keyMatches(k, m) {
				return k, true
			}
		}
		return "", false
	}
	w.key = append(append(w.key[:0], prefixValue...), toJSON(v)...)
	_, ok := fields[string(w.key)]
	return string(w.key), ok
}
