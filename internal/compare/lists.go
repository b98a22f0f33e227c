package compare

import "maps"

// shape finds out what kind of list is at the current place: associative by
// keys, a set, or (neither) one that is replaced as a whole. What we own says
// it best; the names of the built-in lists are the fallback, and a list of a
// custom resource that we never applied is taken as whole, which is stricter.
func (w *localWalk) shape(d []any, n node) (keys []string, set bool) {
	if w.hidden() {
		return nil, false
	}
	if n.leaf() {
		return nil, false
	}
	if keys = n.listKeys(); keys != nil {
		return keys, false
	}
	if n.isSet() {
		return nil, true
	}
	if t := w.typ(); t.Known() {
		return t.Keys, t.Set
	}
	field, parent := w.field()
	if parent == "metadata" && field == "finalizers" && len(w.at) == 2 {
		return nil, true
	}
	if w.builtin || len(w.at) == 2 && parent == "metadata" {
		return builtinKeys(w.kind, field, parent, d), false
	}
	if w.final {
		known := w.recorded()
		return known.listKeys(), known.isSet()
	}
	return nil, false
}

// recorded is what is recorded of the current place by anybody who owns a part
// of it: how a list is told apart does not depend on who owns it.
func (w *localWalk) recorded() node {
	var all map[string]any
	eachEntry(w.live, func(e managedEntry) { all = mergeFields(all, e.fields) })
	n := node{fields: all, exists: len(all) > 0}
	for _, s := range w.at {
		switch s.kind {
		case stepField:
			n = n.field(s.name)
		case stepKeyed:
			n = n.keyed(s.elem, s.keys)
		default:
			return node{}
		}
	}
	return n
}

// hidden reports whether values at the current place must not become a part of
// a path, because they are those of a Secret.
func (w *localWalk) hidden() bool {
	return w.secret && (len(w.at) == 0 || w.at[0].name != "metadata")
}

func (w *localWalk) list(d, l []any, n node, skip skips) {
	if len(d) == 0 {
		if len(l) > 0 {
			w.add(d, true, l, true)
		}
		return
	}
	keys, set := w.shape(d, n)
	switch {
	case keys != nil:
		w.keyed(d, l, keys, n, skip)
	case set:
		w.set(d, l, n, skip)
	default:
		w.indexed(d, l, n, skip)
	}
}

// keyed compares the declared elements with those that have the same keys.
// More live elements are allowed; another order of ours is not, because an
// apply would restore it. Keys that don't identify are left to the server.
func (w *localWalk) keyed(d, l []any, keys []string, n node, skip skips) {
	places := make([]int, len(d))
	for i, v := range d {
		elem, ok := v.(map[string]any)
		if !ok {
			w.add(d, true, l, true)
			return
		}
		elem = w.withKeys(elem, keys)
		once := w.once(d, elem, keys)
		at, unique := findElem(l, elem, keys)
		if !once || !unique {
			w.add(d, true, l, true)
			return
		}
		places[i] = at
	}
	last := -1
	for i, at := range places {
		next, hit := skip.elem(i, at)
		if hit {
			continue
		}
		elem, _ := d[i].(map[string]any)
		w.push(step{kind: stepKeyed, elem: elem, keys: keys})
		if at < 0 {
			w.value(elem, nil, false, node{}, next)
		} else {
			w.value(elem, l[at], true, n.keyed(elem, keys), next)
		}
		w.pop()
		if at >= 0 && at < last {
			w.add(d, true, l, true)
		}
		last = max(last, at)
	}
}

// once reports whether no other declared element has the keys of elem.
func (w *localWalk) once(d []any, elem map[string]any, keys []string) bool {
	n := 0
	for _, v := range d {
		if other, ok := v.(map[string]any); ok && sameKeys(w.withKeys(other, keys), elem, keys) {
			n++
		}
	}
	return n == 1
}

// withKeys is an element with the keys that the server fills in.
func (w *localWalk) withKeys(elem map[string]any, keys []string) map[string]any {
	item, cloned := w.typ().Item(), false
	if item == nil {
		return elem
	}
	for _, k := range keys {
		v, declared := elem[k]
		if _, empty := v.(dropped); declared && !empty {
			continue
		}
		if t := item.Field(k); t != nil && t.HasDefault {
			if !cloned {
				elem, cloned = maps.Clone(elem), true
			}
			elem[k] = t.Default
		}
	}
	return elem
}

// set compares the elements of a set, which have no parts.
func (w *localWalk) set(d, l []any, n node, skip skips) {
	last := -1
	for i, v := range d {
		at := indexOf(l, v)
		if _, hit := skip.elem(i, at); hit {
			continue
		}
		w.unowned = w.unowned || !n.value(v).exists
		if at < 0 {
			w.push(step{kind: stepValue, value: v})
			w.add(v, true, nil, false)
			w.pop()
		} else if at < last {
			w.add(d, true, l, true)
		}
		last = max(last, at)
	}
}

func indexOf(list []any, v any) int {
	for i := range list {
		if sameValue(list[i], v) {
			return i
		}
	}
	return -1
}

// indexed compares a list that an apply replaces. What is left out may have
// moved the rest.
func (w *localWalk) indexed(d, l []any, n node, skip skips) {
	if skip.none() {
		if len(d) != len(l) {
			w.add(d, true, l, true)
			return
		}
		for i := range d {
			w.pair(d, l, i, i, n, skip)
		}
		return
	}
	pairs, ok := skip.pairs(d, l)
	if !ok {
		w.add(d, true, l, true)
		return
	}
	for _, p := range pairs {
		next, _ := skip.elem(p[0], p[1])
		w.pair(d, l, p[0], p[1], n, next)
	}
}

// pair compares an element of d with the one of l that it has to be equal to.
func (w *localWalk) pair(d, l []any, i, j int, n node, skip skips) {
	w.push(step{kind: stepIndex, index: i})
	w.value(d[i], l[j], l[j] != nil, n.inside(), skip)
	w.pop()
}
