package compare

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rutter "github.com/rutterhq/rutter"
)

// Respect returns what to apply so that every ignored field keeps its live
// value: an object is applied for another reason, and the ignore rule must not
// lose what a scaler or a person wrote (scenario B27).
//
// Leaving the field out is not enough. The server deletes a field that we own
// alone and don't send any more; so a field that is ours is sent with its live
// value, and only what others own, or nobody, is left out. An object that
// doesn't exist yet is sent as it is declared.
func Respect(desired, live *unstructured.Unstructured, rules *Rules) *unstructured.Unstructured {
	if desired == nil || live == nil {
		return desired
	}
	skip := rules.of(desired, live)
	if len(skip.d) == 0 && len(skip.l) == 0 {
		return desired
	}
	ours, _ := owned(live, rutter.FieldManager)
	r := respecting{kind: live.GetKind(), builtin: builtinGroup(live.GroupVersionKind().Group)}
	who := owners{ours: ours, others: othersOf(live, rutter.FieldManager)}
	fromLive := r
	fromLive.live = true
	out := FoldSecret(desired).DeepCopy()
	for _, tokens := range skip.d.backwards() {
		v, _ := r.at(side{out.Object, true}, side{live.Object, true}, tokens, who)
		out.Object, _ = v.(map[string]any)
	}
	// What was only found in the live object: forwards, so that what is put into
	// a list comes to stand where it is live.
	for _, tokens := range slices.Backward(skip.l[skip.fixed:].backwards()) {
		if slices.ContainsFunc(skip.d, func(p []string) bool { return slices.Equal(p, tokens) }) {
			continue
		}
		v, _ := fromLive.at(side{out.Object, true}, side{live.Object, true}, tokens, who)
		out.Object, _ = v.(map[string]any)
	}
	return out
}

// othersOf returns what each other manager owns.
func othersOf(live *unstructured.Unstructured, manager string) []node {
	var out []node
	eachEntry(live, func(e managedEntry) {
		if len(e.fields) > 0 && (e.manager != manager || e.operation != "Apply") {
			out = append(out, node{fields: e.fields, exists: true})
		}
	})
	return out
}

// side is a value that may be absent.
type side struct {
	v  any
	ok bool
}

func (s side) field(name string) side {
	m, _ := s.v.(map[string]any)
	v, ok := m[name]
	return side{v, ok}
}

// owners is who owns a place.
type owners struct {
	ours   node
	others []node
}

func (o owners) down(to func(node) node) owners {
	out := owners{ours: to(o.ours)}
	for _, n := range o.others {
		if n = to(n); n.exists {
			out.others = append(out.others, n)
		}
	}
	return out
}

// within says that the place is a part of something that is replaced whole.
func (o owners) within() bool {
	return o.ours.within || slices.ContainsFunc(o.others, func(n node) bool { return n.within })
}

func (o owners) listKeys() []string {
	for _, n := range append([]node{o.ours}, o.others...) {
		if keys := n.listKeys(); keys != nil {
			return keys
		}
	}
	return nil
}

func (o owners) isSet() bool {
	return o.ours.isSet() || slices.ContainsFunc(o.others, node.isSet)
}

type respecting struct {
	kind    string
	builtin bool
	// live says that indices are those of the live lists.
	live bool
	// field and parent are the innermost names on the way down.
	field, parent string
}

// at rewrites the declared value d on the way to what tokens names; keep false
// means that nothing is to be sent there.
func (r respecting) at(d, l side, tokens []string, who owners) (v any, keep bool) {
	if len(tokens) == 0 {
		if !l.ok {
			return nil, false
		}
		return keepOurs(l.v, who)
	}
	if list, ok := d.v.([]any); ok {
		return r.elem(list, l, tokens, who), true
	}
	m, isMap := d.v.(map[string]any)
	if d.ok && !isMap {
		return d.v, true // the declaration has another shape; the server will say so
	}
	name := tokens[0]
	r.parent, r.field = r.field, name
	child, kept := r.at(side{v: m[name], ok: m != nil && hasField(m, name)}, l.field(name), tokens[1:],
		who.down(func(n node) node { return n.field(name) }))
	switch {
	case kept && m == nil:
		return map[string]any{name: child}, true
	case kept:
		m[name] = child
	default:
		delete(m, name)
	}
	return d.v, d.ok
}

func hasField(m map[string]any, name string) bool {
	_, ok := m[name]
	return ok
}

// elem goes on into one element of a declared list and finds the live element
// that it stands for, or the other way round.
func (r respecting) elem(list []any, l side, tokens []string, who owners) []any {
	i, err := strconv.Atoi(tokens[0])
	live, _ := l.v.([]any)
	named := list
	if r.live {
		named = live
	}
	if err != nil || i < 0 || i >= len(named) {
		return list
	}
	keys := who.listKeys()
	if keys == nil && r.builtin {
		keys = builtinKeys(r.kind, r.field, r.parent, named)
	}
	d, at, down := i, i, func(n node) node { return n.inside() }
	if elem, isMap := named[i].(map[string]any); isMap && keys != nil {
		d, _ = findElem(list, elem, keys)
		at, _ = findElem(live, elem, keys)
		down = func(n node) node { return n.keyed(elem, keys) }
	} else if who.isSet() {
		d, at = indexOf(list, named[i]), indexOf(live, named[i])
		down = func(n node) node { return n.value(named[i]) }
	}
	if r.live && keys == nil && !who.isSet() && len(tokens) == 1 {
		return slices.Insert(list, min(i, len(list)), runtime.DeepCopyJSONValue(live[i]))
	}
	var ls, ds side
	if at >= 0 && at < len(live) {
		ls = side{live[at], true}
	}
	if d >= 0 && d < len(list) {
		ds = side{list[d], true}
	} else if len(tokens) > 1 {
		return list // Git has no such element: what is left of it goes
	}
	child, kept := r.at(ds, ls, tokens[1:], who.down(down))
	switch {
	case !ds.ok && kept:
		return append(list, child)
	case !ds.ok:
		return list
	case !kept:
		return slices.Delete(list, d, d+1)
	}
	list[d] = child
	return list
}

// keepOurs returns the part of a live value that would vanish if we did not
// send it: what we own alone, and all of what is replaced as a whole.
func keepOurs(l any, who owners) (v any, keep bool) {
	if who.within() {
		return runtime.DeepCopyJSONValue(l), true
	}
	if !who.ours.exists {
		return nil, false
	}
	if who.ours.leaf() {
		if len(who.others) > 0 {
			return nil, false
		}
		return runtime.DeepCopyJSONValue(l), true
	}
	switch l := l.(type) {
	case map[string]any:
		return keepFields(l, who)
	case []any:
		return keepElems(l, who)
	}
	return nil, false
}

func keepFields(l map[string]any, who owners) (any, bool) {
	out := map[string]any{}
	for name, v := range l {
		if child, ok := keepOurs(v, who.down(func(n node) node { return n.field(name) })); ok {
			out[name] = child
		}
	}
	return out, len(out) > 0 || len(who.others) == 0
}

func keepElems(l []any, who owners) (any, bool) {
	keys := who.listKeys()
	var out []any
	for _, v := range l {
		elem, ok := v.(map[string]any)
		if keys == nil || !ok {
			at := who.down(func(n node) node { return n.value(v) })
			if at.ours.exists && len(at.others) == 0 {
				out = append(out, v)
			}
			continue
		}
		at := who.down(func(n node) node { return n.keyed(elem, keys) })
		if !at.ours.exists {
			continue
		}
		kept, ok := keepOurs(elem, at)
		m, isMap := kept.(map[string]any)
		if !ok || !isMap || len(m) == 0 && len(at.others) > 0 {
			continue
		}
		for _, k := range keys { // an element without its keys is nobody's
			if kv, ok := elem[k]; ok {
				m[k] = kv
			}
		}
		out = append(out, m)
	}
	return out, len(out) > 0
}
