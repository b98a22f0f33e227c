package helm

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/rutterhq/rutter"
)

// token is one step into a tree of values: a key, or an index of a list.
type token struct {
	name string
	list bool
}

// tokens are a path into a tree of values.
type tokens []token

func (t tokens) copy() tokens        { return slices.Clone(t) }
func (t tokens) key(k string) tokens { return append(t.copy(), token{name: k}) }
func (t tokens) index(i int) tokens {
	return append(t.copy(), token{name: strconv.Itoa(i), list: true})
}
func (t tokens) under(top tokens) bool { return len(t) >= len(top) && slices.Equal(t[:len(top)], top) }

// String writes the path as a parameter would name it.
func (t tokens) String() string {
	var b strings.Builder
	for i, tok := range t {
		switch {
		case tok.list:
			b.WriteString("[" + tok.name + "]")
		case i > 0:
			b.WriteString(".")
			fallthrough
		default:
			b.WriteString(strings.ReplaceAll(tok.name, ".", `\.`))
		}
	}
	return b.String()
}

// layer is where values come from.
type layer struct {
	kind   string
	file   string
	source int
	lines  lineIndex
	// base is where the layer's values lie, for a chart's the chart's place.
	base tokens
	// ofChart says that a null only means that there is no default.
	ofChart bool
}

// entry is the layer's part in one value.
func (l layer) entry(at tokens, v any, removed bool) note {
	e := rutter.ValueLayer{Path: at.String(), Layer: l.kind, File: l.file, Source: l.source, Line: l.line(at), Value: v, Removed: removed || v == nil}
	if e.Removed {
		e.Value = nil
	}
	if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		e.Value = int64(f) // as it is written
	}
	return note{ValueLayer: e, ofChart: l.ofChart}
}

// line is where the layer says something about a value.
func (l layer) line(at tokens) int {
	if !at.under(l.base) {
		return 0
	}
	return l.lines.nearest(at[len(l.base):])
}

type note struct {
	rutter.ValueLayer

	ofChart bool
}

// maxTraced bounds the single values of a trace.
const maxTraced = 200_000

// traced is a place in the tree of values, with what happened there.
type traced struct {
	path  tokens
	kids  map[token]*traced
	set   bool
	value any
	notes []note
	count *int
}

func (n *traced) child(tok token) *traced {
	if n.kids == nil {
		n.kids = map[token]*traced{}
	}
	k := n.kids[tok]
	if k == nil {
		if n.count == nil {
			n.count = new(int)
		}
		*n.count++
		k = &traced{path: append(n.path.copy(), tok), count: n.count}
		n.kids[tok] = k
	}
	return k
}

// at returns the place of a path; a single value that is in the way is removed by the layer.
func (n *traced) at(p tokens, from layer) *traced {
	for _, tok := range p {
		n.single(from)
		n = n.child(tok)
	}
	return n
}

// single takes a single value off that gives way to a mapping or a list.
func (n *traced) single(from layer) {
	if !n.set {
		return
	}
	n.set = false
	if v := reflect.ValueOf(n.value); v.IsValid() && (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) {
		return // an empty one is filled
	}
	n.notes = append(n.notes, from.entry(n.path, nil, true))
}

// lay puts a tree of values over what is there: mappings are merged, anything
// else is replaced. With only, a part that is as it was before is not noted
// unless it lies under that path.
func (n *traced) lay(v any, from layer, only tokens) error {
	return n.put(v, from, only, false)
}

func (n *traced) put(v any, from layer, only tokens, replace bool) error {
	if n.count != nil && *n.count > maxTraced {
		return rutter.Errorf(rutter.CodeInvalid, "there are more than %d values", maxTraced)
	}
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && len(n.path) == 0 {
			return nil
		}
		if len(v) > 0 {
			return n.putMap(v, from, only, replace)
		}
		n.drop(from, func(t token) bool { return t.list || replace })
	case []any:
		if len(v) > 0 {
			return n.putList(v, from, only)
		}
		n.drop(from, func(token) bool { return true })
	case nil:
		if filler := only != nil && !n.path.under(only); len(n.path) == 0 || (filler || from.ofChart) && !n.live() {
			return nil // there is nothing to remove
		} else if filler {
			n.gone(from)
			return nil
		}
		n.drop(from, func(token) bool { return true })
	default:
		n.drop(from, func(token) bool { return true })
	}
	n.note(v, from, only)
	return nil
}

func (n *traced) note(v any, from layer, only tokens) {
	if only == nil || n.path.under(only) || !n.set || !reflect.DeepEqual(n.value, v) {
		n.notes = append(n.notes, from.entry(n.path, v, false))
	}
	n.set, n.value = v != nil, v
}

func (n *traced) putMap(v map[string]any, from layer, only tokens, replace bool) error {
	n.single(from)
	n.drop(from, func(t token) bool {
		_, stays := v[t.name]
		return t.list || replace && !stays
	})
	for _, k := range slices.Sorted(maps.Keys(v)) {
		if err := n.child(token{name: k}).put(v[k], from, only, replace); err != nil {
			return err
		}
	}
	return nil
}

func (n *traced) putList(v []any, from layer, only tokens) error {
	n.single(from)
	n.drop(from, func(t token) bool {
		i, err := strconv.Atoi(t.name)
		return !t.list || err != nil || i >= len(v)
	})
	for i, each := range v {
		if err := n.child(token{name: strconv.Itoa(i), list: true}).put(each, from, only, true); err != nil {
			return err
		}
	}
	return nil
}

// drop notes that the layer removes everything below some of the children.
func (n *traced) drop(from layer, gone func(token) bool) {
	for tok, k := range n.kids {
		if gone(tok) {
			k.gone(from)
		}
	}
}

func (n *traced) gone(from layer) {
	if n.set {
		n.set = false
		n.notes = append(n.notes, from.entry(n.path, nil, true))
	}
	for _, k := range n.kids {
		k.gone(from)
	}
}

// live reports whether there is a value here or below.
func (n *traced) live() bool {
	if n.set {
		return true
	}
	for _, k := range n.kids {
		if k.live() {
			return true
		}
	}
	return false
}

// mention notes values that have no effect because other is used instead, where
// other says something itself.
func (n *traced) mention(v, other any, at tokens, from layer) {
	switch v := v.(type) {
	case map[string]any:
		o, ok := other.(map[string]any)
		if !ok {
			return
		}
		for k, each := range v {
			if val, ok := o[k]; ok {
				n.child(token{name: k}).mention(each, val, at.key(k), from)
			}
		}
	case []any:
		o, ok := other.([]any)
		if !ok {
			return
		}
		for i, each := range v[:min(len(v), len(o))] {
			n.child(token{name: strconv.Itoa(i), list: true}).mention(each, o[i], at.index(i), from)
		}
	default:
		n.notes = append(n.notes, from.entry(at, v, false))
	}
}

// layers lists all notes by path. That a chart's own null removes a default of
// its dependency is listed only where it does: Helm does not always let it.
func (n *traced) layers(final map[string]any) []rutter.ValueLayer {
	var out []rutter.ValueLayer
	for i, e := range n.notes {
		last := i == len(n.notes)-1
		if e.ofChart && e.Removed && last && lookUp(final, n.path) != nil {
			continue
		}
		out = append(out, e.ValueLayer)
	}
	kids := slices.Collect(maps.Keys(n.kids))
	slices.SortFunc(kids, func(a, b token) int {
		x, errX := strconv.Atoi(a.name)
		y, errY := strconv.Atoi(b.name)
		if a.list && b.list && errX == nil && errY == nil {
			return x - y
		}
		return strings.Compare(a.name, b.name)
	})
	for _, k := range kids {
		out = append(out, n.kids[k].layers(final)...)
	}
	return out
}

// lookUp returns what lies at a path, nil when there is nothing.
func lookUp(v any, p tokens) any {
	for _, tok := range p {
		switch in := v.(type) {
		case map[string]any:
			v = in[tok.name]
		case []any:
			i, err := strconv.Atoi(tok.name)
			if err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func mergeLayers(a, b map[string]any) map[string]any { return loader.MergeMaps(a, b) }
