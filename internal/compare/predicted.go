package compare

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Predicted compares the server's answer to a dry run of our apply with the
// live object. Defaults, webhooks and conversions are in both, so what differs
// is what an apply would change. A change of a field that is not ours, before
// or after, is a webhook's business and no drift (reference 3.3).
func Predicted(predicted, live *unstructured.Unstructured, opts Options) Result {
	f := &findings{}
	if predicted == nil || live == nil {
		f.add(objectOf(predicted), predicted != nil, objectOf(live), live != nil)
		if live == nil {
			return f.result(predicted)
		}
		return f.result(live)
	}
	after, ok := owned(predicted, opts.manager())
	if !ok {
		// An answer without our entry can't tell ours from others': all counts.
		after = node{exists: true}
	}
	before, _ := owned(live, opts.manager())
	if opts.Webhooks {
		after, before = node{exists: true}, node{exists: true}
	}
	f.status = opts.Rules.comparesStatus(live)
	w := &predictedWalk{findings: f, secret: isSecret(live) || isSecret(predicted)}
	w.mapping(predicted.Object, live.Object, after, before, opts.Rules.of(predicted, live))
	return f.result(live)
}

// predictedWalk compares two answers of one server. In every method p is the
// predicted value, l the live one, and after and before what we own of them.
type predictedWalk struct {
	*findings

	secret bool
}

// place is one value on both sides.
type place struct {
	p, l          any
	hasP, hasL    bool
	after, before node
}

func (w *predictedWalk) compare(c place, skip skips) {
	if !c.after.exists && !c.before.exists {
		return // nothing here is or was ours
	}
	switch {
	case !c.hasP && !c.hasL:
		return
	case !c.hasP || !c.hasL:
		w.add(c.p, c.hasP, c.l, c.hasL)
		return
	}
	switch p := c.p.(type) {
	case map[string]any:
		if l, ok := c.l.(map[string]any); ok {
			w.mapping(p, l, c.after, c.before, skip)
			return
		}
	case []any:
		if l, ok := c.l.([]any); ok {
			w.list(p, l, c.after, c.before, skip)
			return
		}
	default:
		if sameScalar(c.p, c.l) {
			return
		}
	}
	w.add(c.p, true, c.l, true)
}

func (w *predictedWalk) mapping(p, l map[string]any, after, before node, skip skips) {
	visit := func(name string) {
		next, hit := skip.field(name)
		if hit || w.skipped(name) || w.lastApplied(name) {
			return
		}
		c := place{after: after.field(name), before: before.field(name)}
		c.p, c.hasP = p[name]
		c.l, c.hasL = l[name]
		w.push(step{kind: stepField, name: name})
		w.compare(c, next)
		w.pop()
	}
	for name := range p {
		visit(name)
	}
	for name := range l {
		if _, both := p[name]; !both {
			visit(name)
		}
	}
}

func (w *predictedWalk) list(p, l []any, after, before node, skip skips) {
	if w.secret && w.at[0].name != "metadata" {
		if !sameValue(p, l) {
			w.add(p, true, l, true)
		}
		return
	}
	keys := after.listKeys()
	if keys == nil {
		keys = before.listKeys()
	}
	switch {
	case keys != nil:
		w.keyed(p, l, keys, after, before, skip)
	case after.isSet() || before.isSet():
		w.set(p, l, after, before, skip)
	case after.leaf() || before.leaf():
		w.indexed(p, l, after, before, skip)
	}
}

func (w *predictedWalk) keyed(p, l []any, keys []string, after, before node, skip skips) {
	last := -1
	for i, v := range p {
		elem, ok := v.(map[string]any)
		if !ok {
			continue
		}
		at, _ := findElem(l, elem, keys)
		next, hit := skip.elem(i, at)
		if hit {
			continue
		}
		c := place{p: elem, hasP: true, hasL: at >= 0, after: after.keyed(elem, keys), before: before.keyed(elem, keys)}
		if at >= 0 {
			c.l = l[at]
		}
		w.push(step{kind: stepKeyed, elem: elem, keys: keys})
		w.compare(c, next)
		w.pop()
		if c.after.exists && at >= 0 {
			if at < last {
				w.add(p, true, l, true)
			}
			last = max(last, at)
		}
	}
	for i, v := range l {
		elem, ok := v.(map[string]any)
		if _, hit := skip.elem(-1, i); hit || !ok {
			continue
		}
		if at, _ := findElem(p, elem, keys); at >= 0 {
			continue
		}
		w.push(step{kind: stepKeyed, elem: elem, keys: keys})
		w.compare(place{l: elem, hasL: true, before: before.keyed(elem, keys)}, skips{})
		w.pop()
	}
}

func (w *predictedWalk) set(p, l []any, after, before node, skip skips) {
	last := -1
	for i, v := range p {
		at := indexOf(l, v)
		if _, hit := skip.elem(i, at); hit || !after.value(v).exists {
			continue
		}
		if at < 0 {
			w.push(step{kind: stepValue, value: v})
			w.add(v, true, nil, false)
			w.pop()
		} else if at < last {
			w.add(p, true, l, true)
		}
		last = max(last, at)
	}
	for i, v := range l {
		if _, hit := skip.elem(-1, i); hit || !before.value(v).exists || indexOf(p, v) >= 0 {
			continue
		}
		w.push(step{kind: stepValue, value: v})
		w.add(nil, false, v, true)
		w.pop()
	}
}

// indexed compares a list that is owned whole.
func (w *predictedWalk) indexed(p, l []any, after, before node, skip skips) {
	if skip.none() {
		if len(p) != len(l) {
			w.add(p, true, l, true)
			return
		}
		for i := range p {
			w.pair(p, l, i, i, after, before, skip)
		}
		return
	}
	pairs, ok := skip.pairs(p, l)
	if !ok {
		w.add(p, true, l, true)
		return
	}
	for _, at := range pairs {
		next, _ := skip.elem(at[0], at[1])
		w.pair(p, l, at[0], at[1], after, before, next)
	}
}

func (w *predictedWalk) pair(p, l []any, i, j int, after, before node, skip skips) {
	w.push(step{kind: stepIndex, index: i})
	w.compare(place{
		p: p[i], l: l[j], hasP: true, hasL: true, after: after.inside(), before: before.inside(),
	}, skip)
	w.pop()
}
