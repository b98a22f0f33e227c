package compare

import "strings"

// removed finds what our manager owns in the live object and Git no longer
// declares: an apply would take it away.
func (w *localWalk) removed(d, l any, n node, skip skips) {
	if n.leaf() {
		return // declared, or it would have been found one level up
	}
	for key := range n.fields {
		switch {
		case strings.HasPrefix(key, prefixField):
			w.removedField(key[len(prefixField):], d, l, n, skip)
		case strings.HasPrefix(key, prefixKeyed):
			w.removedElem(key, d, l, n, skip)
		case strings.HasPrefix(key, prefixValue):
			w.removedValue(key[len(prefixValue):], d, l, skip)
		}
	}
}

func (w *localWalk) removedField(name string, d, l any, n node, skip skips) {
	if w.skipped(name) {
		return
	}
	next, hit := skip.field(name)
	lm, _ := l.(map[string]any)
	lv, live := lm[name]
	if hit || !live || lv == nil {
		return
	}
	dm, _ := d.(map[string]any)
	dv, declared := dm[name]
	child := n.field(name)
	if !declared && w.mark(name) {
		return
	}
	w.push(step{kind: stepField, name: name})
	defer w.pop()
	if !declared && child.alone() {
		w.add(nil, false, lv, true)
		return
	}
	w.removed(dv, lv, child, next)
}

// alone says that a place is owned as such and no part of it by name, so that
// the difference is the place and not one of its parts.
func (n node) alone() bool {
	if n.leaf() {
		return true
	}
	_, self := n.fields[fieldSelf]
	return self && len(n.fields) == 1
}

func (w *localWalk) removedElem(key string, d, l any, n node, skip skips) {
	want := parseKey(key)
	ll, _ := l.([]any)
	at := findKeyed(ll, want)
	if want == nil || at < 0 {
		return
	}
	dl, _ := d.([]any)
	declared := findKeyed(dl, want)
	next, hit := skip.elem(declared, at)
	if hit {
		return
	}
	elem, _ := ll[at].(map[string]any)
	if w.hidden() {
		w.push(step{kind: stepIndex, index: at})
	} else {
		w.push(step{kind: stepKeyed, elem: elem, keys: keyNames(key)})
	}
	defer w.pop()
	if declared < 0 {
		w.add(nil, false, elem, true)
		return
	}
	w.removed(dl[declared], elem, n.of(key), next)
}

func findKeyed(list []any, want map[string]any) int {
	for i, v := range list {
		if m, ok := v.(map[string]any); ok && hasKeys(m, want) {
			return i
		}
	}
	return -1
}

func (w *localWalk) removedValue(text string, d, l any, skip skips) {
	dl, _ := d.([]any)
	ll, _ := l.([]any)
	for i, v := range ll {
		if inline(v) != text {
			continue
		}
		if _, hit := skip.elem(-1, i); hit || indexOf(dl, v) >= 0 {
			return
		}
		if w.hidden() {
			w.push(step{kind: stepIndex, index: i})
		} else {
			w.push(step{kind: stepValue, value: v})
		}
		w.add(nil, false, v, true)
		w.pop()
		return
	}
}
