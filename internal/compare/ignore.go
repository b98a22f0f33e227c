package compare

import (
	"slices"
	"strconv"
	"strings"

	"github.com/gobwas/glob"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/jq"
)

// maxSteps bounds one expression on one object: it may run for every event.
const maxSteps = 20_000

// Rules are ignoreDifferences, and what is set for all comparisons, made ready
// for use: patterns, pointers and jq are read once, and not for every event.
// Nil are no rules.
type Rules struct {
	list   []rule
	known  []known
	status rutter.StatusRule
}

// rule is one entry of ignoreDifferences.
type rule struct {
	group, kind     pattern
	namespace, name string
	pointers        pointers
	jq              []jq.Path
	managers        []string
}

// NewRules reads a unit's rules and what is set for all. The first that can't be
// read is an error of code invalid that names it: a rule that is quietly left
// out would show as drift that nobody can explain.
func NewRules(list []rutter.IgnoreRule, system rutter.CompareSettings) (*Rules, error) {
	all := slices.Concat(list, system.Ignore)
	if len(all) == 0 && len(system.Known) == 0 && system.Status == "" {
		return nil, nil //nolint:nilnil // nil are no rules
	}
	out := &Rules{list: make([]rule, len(all)), status: system.Status}
	for i, r := range all {
		if err := out.list[i].read(r); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "ignoreDifferences[%d].%w", i, err)
		}
	}
	for _, f := range system.Known {
		k, err := newKnown(f)
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "knownTypeFields of %s/%s: %w", f.Group, f.Kind, err)
		}
		out.known = append(out.known, k)
	}
	return out, nil
}

// Concern reports whether any rule is about an object.
func (r *Rules) Concern(ref rutter.Ref) bool {
	return r != nil && slices.ContainsFunc(r.list, func(rule rule) bool { return rule.matches(ref) })
}

// comparesStatus reports whether the status of an object is compared where Git
// declares one. The built-in kinds take none from an apply.
func (r *Rules) comparesStatus(u *unstructured.Unstructured) bool {
	if r == nil || u == nil || r.status != rutter.StatusCompared && r.status != rutter.StatusIgnoredOfCRD {
		return false
	}
	return !builtinGroup(u.GroupVersionKind().Group)
}

// CheckRule says what is wrong with a rule, beginning with the field that it is
// about.
func CheckRule(r rutter.IgnoreRule) error { return new(rule).read(r) }

// read takes over one rule; the error begins with the field it is about.
func (r *rule) read(from rutter.IgnoreRule) (err error) {
	r.namespace, r.name, r.managers = from.Namespace, from.Name, from.Managers
	if r.group, err = newPattern(from.Group); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "group: %w", err)
	}
	if r.kind, err = newPattern(from.Kind); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "kind: %w", err)
	}
	for i, p := range from.JSONPointers {
		tokens, err := parsePointer(p)
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "jsonPointers[%d]: %w", i, err)
		}
		r.pointers = append(r.pointers, tokens)
	}
	for i, text := range from.JQ {
		path, err := jq.Compile(text)
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "jqPathExpressions[%d]: %w", i, err)
		}
		r.jq = append(r.jq, path)
	}
	return nil
}

func (r *rule) matches(ref rutter.Ref) bool {
	return (r.name == "" || r.name == ref.Name) &&
		(r.namespace == "" || r.namespace == ref.Namespace) &&
		r.group.matches(ref.Group) && r.kind.matches(ref.Kind)
}

// pattern is a glob, compiled only when it is more than a name or a star.
type pattern struct {
	text string
	glob glob.Glob
}

func newPattern(text string) (pattern, error) {
	if text == "*" || !strings.ContainsAny(text, `*?[]{}\!`) {
		return pattern{text: text}, nil
	}
	g, err := glob.Compile(text)
	if err != nil {
		return pattern{}, rutter.Errorf(rutter.CodeInvalid, "%q is not a glob: %w", text, err)
	}
	return pattern{text: text, glob: g}, nil
}

func (p pattern) matches(s string) bool {
	if p.glob != nil {
		return p.glob.Match(s)
	}
	return p.text == "*" || p.text == s
}

// of returns what the rules leave out of an object; each side may be nil.
func (r *Rules) of(desired, live *unstructured.Unstructured) (s skips) {
	u := live
	if u == nil {
		u = desired
	}
	if u == nil {
		return s
	}
	own := controllers(desired, live)
	s.d, s.l, s.fixed = own, own, len(own)
	if r == nil {
		return s
	}
	ref := rutter.RefOf(u)
	var plainD, plainL any
	var found pointers
	for i := range r.list {
		rule := &r.list[i]
		if !rule.matches(ref) {
			continue
		}
		s.d = append(slices.Clip(s.d), rule.pointers...)
		s.l = append(slices.Clip(s.l), rule.pointers...)
		s.fixed = len(s.l)
		if len(rule.jq) > 0 {
			s.d = append(slices.Clip(s.d), expressed(rule.jq, desired, &plainD)...)
			found = append(found, expressed(rule.jq, live, &plainL)...)
		}
		if len(rule.managers) > 0 {
			found = append(found, managedBy(rule.managers, live)...)
		}
	}
	s.l = append(slices.Clip(s.l), found...)
	return s
}

// expressed returns the paths that expressions name in an object. One that
// fails there names nothing: ".spec.containers[]" has none to name where there
// are no containers. plain is the object in the library's form, made once.
func expressed(list []jq.Path, u *unstructured.Unstructured, plain *any) pointers {
	if u == nil {
		return nil
	}
	if *plain == nil {
		*plain = jq.Plain(u.DeepCopy().Object)
	}
	var out pointers
	for _, path := range list {
		found, _, err := path.In(*plain, maxSteps)
		if err != nil {
			continue
		}
		for _, p := range found {
			if tokens, ok := tokensOf(p); ok {
				out = append(out, tokens)
			}
		}
	}
	return out
}

// tokensOf is a jq path as a pointer; a slice of a list is none.
func tokensOf(path []any) (tokens []string, ok bool) {
	for _, step := range path {
		switch s := step.(type) {
		case string:
			tokens = append(tokens, s)
		case int:
			tokens = append(tokens, strconv.Itoa(s))
		default:
			return nil, false
		}
	}
	return tokens, len(tokens) > 0
}

// managedBy returns the live places that any of the managers owns.
func managedBy(managers []string, live *unstructured.Unstructured) (out pointers) {
	if live == nil {
		return nil
	}
	eachEntry(live, func(e managedEntry) {
		if len(e.fields) > 0 && slices.Contains(managers, e.manager) {
			out = appendOwned(out, node{fields: e.fields, exists: true}, live.Object, nil)
		}
	})
	return out
}

// appendOwned appends the live places below at that n owns.
func appendOwned(out pointers, n node, v any, at []string) pointers {
	if n.alone() && len(at) > 0 {
		return append(out, slices.Clone(at))
	}
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			if c := n.field(name); c.exists {
				out = appendOwned(out, c, child, append(at, name))
			}
		}
	case []any:
		keys := n.listKeys()
		for i, child := range v {
			c := n.value(child)
			if elem, ok := child.(map[string]any); ok && keys != nil {
				c = n.keyed(elem, keys)
			}
			if c.exists {
				out = appendOwned(out, c, child, append(at, strconv.Itoa(i)))
			}
		}
	}
	return out
}
