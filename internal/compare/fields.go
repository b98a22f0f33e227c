package compare

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The keys of the FieldsV1 format: "f:name" is a field, "k:{…}" an element of
// an associative list by its keys, "v:…" an element of a set by its value, and
// "." the thing itself. What has no children is owned whole.
const (
	prefixField = "f:"
	prefixKeyed = "k:"
	prefixValue = "v:"
	fieldSelf   = "."
)

// node is a place in an owned field set. The zero node is owned by nobody.
type node struct {
	fields map[string]any
	exists bool
	// within says that the place is a part of something owned whole.
	within bool
}

// exact says that the set names the very place.
func (n node) exact() bool { return n.exists && !n.within }

// inside is n for a part of a leaf.
func (n node) inside() node { return node{exists: n.exists, within: true} }

// leaf says that the place is owned whole: a scalar, an atomic map or list, or
// a map that was applied empty.
func (n node) leaf() bool { return n.exists && len(n.fields) == 0 }

// of wraps a child of a field set.
func (n node) of(key string) node {
	if n.leaf() {
		return n.inside()
	}
	v, ok := n.fields[key]
	if !ok {
		return node{}
	}
	m, _ := v.(map[string]any)
	return node{fields: m, exists: true}
}

func (n node) field(name string) node { return n.of(prefixField + name) }

// keyed finds the element of an associative list that has the keys of elem.
func (n node) keyed(elem map[string]any, keys []string) node {
	if n.leaf() {
		return n.inside()
	}
	var room [64]byte
	if v, ok := n.fields[string(appendKey(room[:0], elem, keys))]; ok {
		m, _ := v.(map[string]any)
		return node{fields: m, exists: true}
	}
	for key, v := range n.fields {
		if keyMatches(key, elem) {
			m, _ := v.(map[string]any)
			return node{fields: m, exists: true}
		}
	}
	return node{}
}

// value finds an element of a set.
func (n node) value(v any) node {
	return n.of(prefixValue + inline(v))
}

// listKeys returns the names of the keys of an associative list, nil when the
// set doesn't know the place as one.
func (n node) listKeys() []string {
	for key := range n.fields {
		if names := keyNames(key); names != nil {
			return names
		}
	}
	return nil
}

// isSet says that the place is known as a list that is a set.
func (n node) isSet() bool {
	for key := range n.fields {
		if len(key) > 2 && key[:2] == prefixValue {
			return true
		}
	}
	return false
}

// managedEntry is one entry of metadata.managedFields.
type managedEntry struct {
	manager, operation, subresource, time string
	fields                                map[string]any
}

// eachEntry calls yield for the entries of an object that don't concern its
// status, which is never compared.
func eachEntry(u *unstructured.Unstructured, yield func(managedEntry)) {
	if u == nil {
		return
	}
	meta, _ := u.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		var entry managedEntry
		entry.subresource, _ = m["subresource"].(string)
		if entry.subresource == "status" {
			continue
		}
		entry.manager, _ = m["manager"].(string)
		entry.operation, _ = m["operation"].(string)
		entry.time, _ = m["time"].(string)
		entry.fields, _ = m["fieldsV1"].(map[string]any)
		yield(entry)
	}
}

// owned returns what manager's Apply entries own; ok is false when the manager
// has never applied the object.
func owned(u *unstructured.Unstructured, manager string) (n node, ok bool) {
	eachEntry(u, func(e managedEntry) {
		if e.manager != manager || e.operation != "Apply" || e.fields == nil {
			return
		}
		if ok { // one entry for each API version that we ever applied
			n.fields = mergeFields(n.fields, e.fields)
			return
		}
		n, ok = node{fields: e.fields, exists: true}, true
	})
	if ok && isSecret(u) {
		n.fields = foldOwned(n.fields)
	}
	return n, ok
}

// Applied reports whether manager has ever applied the object.
func Applied(live *unstructured.Unstructured, manager string) bool {
	_, ok := owned(live, manager)
	return ok
}

// foldOwned moves what is owned of stringData to data, where the server keeps
// it: the values would otherwise belong to nobody.
func foldOwned(fields map[string]any) map[string]any {
	text, ok := fields["f:stringData"].(map[string]any)
	if !ok {
		return fields
	}
	out := maps.Clone(fields)
	delete(out, "f:stringData")
	data, _ := out["f:data"].(map[string]any)
	out["f:data"] = mergeFields(data, text)
	return out
}

// mergeFields returns the union of two field sets. A place that one of them
// owns whole and the other in parts stays in parts.
func mergeFields(a, b map[string]any) map[string]any {
	if len(a) == 0 {
		return b
	}
	out := maps.Clone(a)
	for k, v := range b {
		bm, _ := v.(map[string]any)
		am, _ := out[k].(map[string]any)
		out[k] = mergeFields(am, bm)
	}
	return out
}

// ownerOf names the manager that owns the live value at p: the one that wrote
// last, when several do.
func ownerOf(live *unstructured.Unstructured, p path) string {
	var name, when string
	eachEntry(live, func(e managedEntry) {
		if len(e.fields) == 0 || e.time < when && name != "" {
			return
		}
		if covers(node{fields: e.fields, exists: true}, p) {
			name, when = e.manager, e.time
		}
	})
	return name
}

// covers reports whether a field set owns the value at p or a part of it.
func covers(n node, p path) bool {
	for _, s := range p {
		if n.leaf() {
			return true
		}
		switch s.kind {
		case stepField:
			n = n.field(s.name)
		case stepKeyed:
			n = n.keyed(s.elem, s.keys)
		case stepValue:
			n = n.value(s.value)
		case stepIndex:
			n = node{}
		}
		if !n.exists {
			return false
		}
	}
	return true
}
