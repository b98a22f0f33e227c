package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// maxElements bounds what one set may produce; products grow quickly.
const maxElements = 50_000

// outcome is the answer of one generator. Without errs it is complete.
type outcome struct {
	sets []paramSet
	errs []error
}

// failure is an outcome of which nothing is known.
func failure(code rutter.Code, format string, args ...any) outcome {
	return outcome{errs: []error{rutter.Errorf(code, format, args...)}}
}

// evaluator runs the generators of one set.
type evaluator struct {
	set    *v1alpha1.ApplicationSet
	facts  Facts
	opts   Options
	engine engine
	// goTemplate decides the shape of parameters: nested, or flat strings.
	goTemplate bool
	// answers are those of leaves that were asked before: an inner generator of
	// a matrix that does not depend on the outer one is asked only once.
	answers  map[string]outcome
	warnings []string
	warned   map[string]bool
}

func newEvaluator(set *v1alpha1.ApplicationSet, facts Facts, opts Options) *evaluator {
	ev := &evaluator{
		set: set, facts: facts, opts: opts, goTemplate: set.Spec.GoTemplate,
		answers: map[string]outcome{}, warned: map[string]bool{},
	}
	if ev.goTemplate {
		ev.engine = newGoEngine(set.Spec.GoTemplateOptions)
	} else {
		ev.engine = fastEngine{}
	}
	return ev
}

// warn notes what the user should know about the set, each once.
func (ev *evaluator) warn(warnings ...string) {
	for _, w := range warnings {
		if !ev.warned[w] {
			ev.warned[w] = true
			ev.warnings = append(ev.warnings, w)
		}
	}
}

// run evaluates a generator. outer are the parameters of the generators before
// it in a matrix, nil outside of one.
func (ev *evaluator) run(n node, outer map[string]any) outcome {
	ev.warn(n.warnings...)
	if err := n.broken(); err != nil {
		return outcome{errs: []error{err}}
	}
	var out outcome
	switch n.kind {
	case kindMatrix:
		out = ev.matrix(n, outer)
	case kindMerge:
		out = ev.merge(n, outer)
	default:
		out = ev.leaf(n, outer)
	}
	out = ev.selected(n, outer, out)
	if len(out.sets) > maxElements {
		return failure(rutter.CodeInvalid, "%s: produces more than %d elements; narrow it", n.producer(), maxElements)
	}
	return out
}

// leaf renders a generator with the parameters outside of it and asks it.
func (ev *evaluator) leaf(n node, outer map[string]any) outcome {
	leaf, key, err := ev.interpolate(n, outer)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	if known, ok := ev.answers[key]; ok {
		return known
	}
	n.leaf = leaf
	var out outcome
	switch n.kind {
	case kindList:
		out = ev.list(n)
	case kindClusters:
		out = ev.clusters(n, outer)
	case kindGit:
		out = ev.git(n, outer)
	default:
		out = failure(rutter.CodeUnsupported, "%s: is not acted on yet; nothing that it made before is removed", n.producer())
	}
	ev.answers[key] = out
	return out
}

// interpolate renders the fields of a generator with outer parameters. Its
// values wait: they are rendered with its own parameters as well. The key
// names the answer: equal keys have equal answers.
func (ev *evaluator) interpolate(n node, outer map[string]any) (v1alpha1.ApplicationSetLeafGenerators, string, error) {
	raw, err := json.Marshal(n.leaf)
	if err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	key := n.path + " " + string(raw)
	if outer == nil || !isTemplate(string(raw)) {
		return n.leaf, key, nil
	}
	tree, err := treeOf(n.leaf)
	if err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	fields, _ := tree[n.kind].(map[string]any)
	later := map[string]any{}
	for _, k := range []string{"values", "template"} {
		if v, ok := fields[k]; ok {
			later[k] = v
			delete(fields, k)
		}
	}
	r := renderer{engine: ev.engine, params: outer}
	rendered, err := r.object(n.producer(), fields)
	if err != nil {
		return n.leaf, "", err
	}
	ev.warn(r.warnings(n.path)...)
	maps.Copy(rendered, later)
	raw, err = json.Marshal(map[string]any{n.kind: rendered})
	if err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	var leaf v1alpha1.ApplicationSetLeafGenerators
	if err := json.Unmarshal(raw, &leaf); err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: after rendering: %w", n.producer(), err)
	}
	key = n.path + " " + string(raw)
	if later["values"] != nil {
		outerKey, _ := json.Marshal(outer) //nolint:errchkjson // parameters came out of JSON
		key += " " + string(outerKey)
	}
	return leaf, key, nil
}

// withValues adds a generator's values to a set, rendered once with the set's
// own parameters and those outside of it.
func (ev *evaluator) withValues(n node, s paramSet, values map[string]string, outer map[string]any) paramSet {
	if len(values) == 0 || s.err != nil {
		return s
	}
	scope := maps.Clone(outer)
	if scope == nil {
		scope = map[string]any{}
	}
	maps.Copy(scope, s.params)
	r := renderer{engine: ev.engine, params: scope}
	rendered := make(map[string]any, len(values))
	for _, k := range sortedKeys(values) {
		text, err := r.text(n.producer()+".values."+k, values[k])
		if err != nil {
			s.err = err
			return s
		}
		rendered[k] = text
	}
	s.warnings = append(s.warnings, r.warnings(n.producer())...)
	params := maps.Clone(s.params)
	if ev.goTemplate {
		params["values"] = rendered
	} else {
		for k, v := range rendered {
			params["values."+k] = v
		}
	}
	out := newSet(params, n.producer())
	out.warnings = s.warnings
	return out
}

// selected drops the sets that the item's selector does not match.
func (ev *evaluator) selected(n node, outer map[string]any, out outcome) outcome {
	if n.selector == nil {
		return out
	}
	selector, err := ev.selector(n, outer)
	if err != nil {
		return outcome{errs: append(slices.Clip(out.errs), err)}
	}
	kept := make([]paramSet, 0, len(out.sets))
	for _, s := range out.sets {
		flat := map[string]string{}
		flatten(flat, "", s.params)
		if s.err != nil || selector.matches(flat) {
			kept = append(kept, s)
		}
	}
	return outcome{sets: kept, errs: out.errs}
}

// distinguish is a short text that tells a set of parameters from its siblings.
func distinguish(params map[string]any) string {
	flat := map[string]string{}
	flatten(flat, "", params)
	var parts []string
	add := func(key string) {
		value, ok := flat[key]
		if !ok || len(parts) == 3 || len(value) > 80 || slices.ContainsFunc(parts, func(p string) bool {
			return strings.HasPrefix(p, key+"=")
		}) {
			return
		}
		parts = append(parts, fmt.Sprintf("%s=%q", key, value))
	}
	for _, key := range []string{"name", "path", "path.path", "path.filename", "cluster", "server"} {
		add(key)
	}
	for _, key := range sortedKeys(flat) {
		if !strings.HasPrefix(key, "metadata.annotations.") && !strings.HasPrefix(key, "path") {
			add(key)
		}
	}
	return strings.Join(parts, " ")
}
