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
const maxElements = 200_000

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
	// a matrix that does not depend on the outer one is asked only once. complete
	// are those with their values, where these do not depend on it either.
	answers, complete map[string]outcome
	// questions are those of the leaves as they are written, by their path.
	questions map[string]*question
	// memory is what is known after this evaluation.
	memory     Memory
	precedence precedence
	// patches are rendered patches that were read.
	patches map[string]patchText
	// segments keeps * within a path segment in files patterns.
	segments bool
	// typed keeps the types of values in places that hold anything.
	typed    bool
	warnings []string
	warned   map[string]bool
}

// newEvaluator finds what makes all elements of a set impossible.
func newEvaluator(set *v1alpha1.ApplicationSet, facts Facts, opts Options, nodes []node) (*evaluator, error) {
	if err := checkSet(set, nodes); err != nil {
		return nil, err
	}
	declared, err := precedenceOf(set, opts)
	if err != nil {
		return nil, err
	}
	typed, err := typedOf(set, opts)
	if err != nil {
		return nil, err
	}
	segments, err := segmentsOf(set, opts)
	if err != nil {
		return nil, err
	}
	ev := &evaluator{
		typed: typed, segments: segments, set: set, facts: facts, opts: opts, goTemplate: set.Spec.GoTemplate, precedence: declared,
		answers: map[string]outcome{}, complete: map[string]outcome{}, questions: map[string]*question{}, warned: map[string]bool{},
		memory: Memory{answers: map[string][]map[string]any{}},
	}
	if ev.goTemplate {
		ev.engine = newGoEngine(set.Spec.GoTemplateOptions)
	} else {
		ev.engine = newFastEngine()
	}
	return ev, nil
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

// runWhole evaluates an item of the set. Mistakes in writing are looked for
// before anything is run: an inner item may not be reached.
func (ev *evaluator) runWhole(n node) outcome {
	if err := n.broken(); err != nil {
		return outcome{errs: []error{err}}
	}
	return ev.run(n, nil)
}

// run evaluates a generator. outer are the parameters of the generators before
// it in a matrix, nil outside of one.
func (ev *evaluator) run(n node, outer map[string]any) outcome {
	ev.warn(n.warnings...)
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

// leaf renders a generator with the parameters outside of it and asks it. Its
// values are added to what it answers, so that they are no part of the question.
func (ev *evaluator) leaf(n node, outer map[string]any) outcome {
	leaf, key, err := ev.interpolate(n, outer)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	n.leaf = leaf
	question := key
	key = n.producer() + " " + key
	values := valuesOf(n)
	local := outer == nil || !slices.ContainsFunc(slices.Collect(maps.Values(values)), isTemplate)
	if known, ok := ev.complete[key]; ok && local {
		return known
	}
	answer, ok := ev.answers[key]
	if !ok {
		answer = ev.recall(n, question, ev.ask(n))
		ev.answers[key] = answer
	}
	out := outcome{errs: answer.errs, sets: answer.sets}
	if len(values) > 0 {
		out.sets = make([]paramSet, len(answer.sets))
		for i, s := range answer.sets {
			out.sets[i] = ev.withValues(n, s, values, outer)
		}
	}
	if n.kind == kindClusters && leaf.Clusters.FlatList && (len(out.errs) == 0 || len(out.sets) > 0) {
		out.sets = []paramSet{flatList(n, out.sets)}
	}
	if local {
		ev.complete[key] = out
	}
	return out
}

// valuesOf are the extra parameters that a generator declares.
func valuesOf(n node) map[string]string {
	switch n.kind {
	case kindClusters:
		return n.leaf.Clusters.Values
	case kindGit:
		return n.leaf.Git.Values
	case kindSCM:
		return n.leaf.SCMProvider.Values
	case kindPull:
		return n.leaf.PullRequest.Values
	case kindDecision:
		return n.leaf.ClusterDecisionResource.Values
	case kindPlugin:
		return n.leaf.Plugin.Values
	default:
		return nil
	}
}

// ask puts the question of a generator to the facts.
func (ev *evaluator) ask(n node) outcome {
	switch n.kind {
	case kindList:
		return ev.list(n)
	case kindClusters:
		return ev.clusters(n)
	case kindGit:
		return ev.git(n)
	case kindSCM:
		return ev.scmProvider(n)
	case kindPull:
		return ev.pullRequest(n)
	case kindDecision:
		return ev.clusterDecision(n)
	case kindPlugin:
		return ev.plugin(n)
	default:
		return failure(rutter.CodeUnsupported, "%s: is not a known generator", n.producer())
	}
}

// question is what a leaf asks, as it is written in the set.
type question struct {
	// key is the question itself, where no outer parameters are rendered into it:
	// the mode, which decides the shape of the answer, and the fields.
	key, mode string
	// fields are what outer parameters are rendered into; nil when they hold no template.
	fields map[string]any
	// later are the fields that are not rendered with outer parameters alone.
	later map[string]any
}

// question reads what a leaf asks, once for each leaf of the set.
func (ev *evaluator) question(n node) (*question, error) {
	if q, ok := ev.questions[n.producer()]; ok {
		return q, nil
	}
	tree, err := treeOf(n.leaf)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	q := &question{later: map[string]any{}}
	fields, _ := tree[n.kind].(map[string]any)
	for _, k := range []string{"values", "template", "requeueAfterSeconds", "flatList"} {
		if v, ok := fields[k]; ok {
			q.later[k] = v
			delete(fields, k)
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	q.mode = n.kind + " "
	if ev.goTemplate {
		q.mode += "go "
	}
	q.key = q.mode + string(raw)
	if isTemplate(string(raw)) {
		q.fields = fields
	}
	ev.questions[n.producer()] = q
	return q, nil
}

// interpolate renders the fields of a generator with outer parameters. Its
// values wait: they are rendered with its own parameters as well. The key
// names the answer: equal keys have equal answers, wherever they are asked.
func (ev *evaluator) interpolate(n node, outer map[string]any) (v1alpha1.ApplicationSetLeafGenerators, string, error) {
	q, err := ev.question(n)
	if err != nil {
		return n.leaf, "", err
	}
	if outer == nil || q.fields == nil {
		return n.leaf, q.key, nil
	}
	r := renderer{engine: ev.engine, params: outer}
	rendered := make(map[string]any, len(q.fields)+len(q.later))
	for _, k := range sortedKeys(q.fields) {
		r.typed = ev.typed && (k == "elements" || k == "input")
		if rendered[k], err = r.tree(join(n.producer(), k), q.fields[k]); err != nil {
			return n.leaf, "", err
		}
	}
	ev.warn(r.warnings(n.path)...)
	asked, err := json.Marshal(rendered)
	if err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	maps.Copy(rendered, q.later)
	raw, err := json.Marshal(map[string]any{n.kind: rendered})
	if err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: %w", n.producer(), err)
	}
	var leaf v1alpha1.ApplicationSetLeafGenerators
	if err := json.Unmarshal(raw, &leaf); err != nil {
		return n.leaf, "", rutter.Errorf(rutter.CodeInvalid, "%s: after rendering: %w", n.producer(), err)
	}
	return leaf, q.mode + string(asked), nil
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
	out.warnings, out.stale = s.warnings, s.stale
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
