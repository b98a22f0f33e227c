package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// ignoreRule is one item of ignoreApplicationDifferences.
type ignoreRule struct {
	// name limits the rule to one Application; empty means all.
	name     string
	pointers [][]string
	fields   []fieldRule
	// err says that the rule cannot be read: writing over what it protects would
	// be worse than not writing at all.
	err error
}

// newIgnoreRules reads the rules of a set.
func newIgnoreRules(set *v1alpha1.ApplicationSet) []ignoreRule {
	var rules []ignoreRule
	for i, item := range set.Spec.IgnoreApplicationDifferences {
		rule := ignoreRule{name: item.Name}
		for j, p := range item.JSONPointers {
			if !strings.HasPrefix(p, "/") {
				rule.err = rutter.Errorf(rutter.CodeInvalid,
					"spec.ignoreApplicationDifferences[%d].jsonPointers[%d]: %q does not begin with /", i, j, p)
				continue
			}
			rule.pointers = append(rule.pointers, strings.Split(p[1:], "/"))
		}
		for j, text := range item.JQPathExpressions {
			field, err := newFieldRule(fmt.Sprintf("spec.ignoreApplicationDifferences[%d].jqPathExpressions[%d]", i, j), text)
			if err != nil {
				rule.err = err
				continue
			}
			rule.fields = append(rule.fields, field)
		}
		rules = append(rules, rule)
	}
	return rules
}

// badRule is the error of a rule that concerns an Application.
func (rc *reconciliation) badRule(name string) error {
	for _, rule := range rc.rules {
		if rule.err != nil && (rule.name == "" || rule.name == name) {
			return rule.err
		}
	}
	return nil
}

// keepIgnored puts the live values of ignored fields into an Application that
// is to be written. It reports whether any rule concerns it.
func (rc *reconciliation) keepIgnored(merged, live *v1alpha1.Application) (*v1alpha1.Application, bool, error) {
	concerns := func(rule ignoreRule) bool { return rule.name == "" || rule.name == merged.Name }
	if !slices.ContainsFunc(rc.rules, concerns) {
		return merged, false, nil
	}
	to, err := ruledTree(merged)
	if err != nil {
		return nil, false, err
	}
	from, err := ruledTree(live)
	if err != nil {
		return nil, false, err
	}
	for _, rule := range rc.rules {
		if !concerns(rule) {
			continue
		}
		for _, path := range rule.pointers {
			copyField(to, from, path)
		}
		for _, field := range rule.fields {
			if err := field.keep(to, from); err != nil {
				return nil, false, err
			}
		}
	}
	raw, err := json.Marshal(to)
	if err != nil {
		return nil, false, rutter.Errorf(rutter.CodeInternal, "Application %s: %w", merged.Name, err)
	}
	var kept v1alpha1.Application
	if err := json.Unmarshal(raw, &kept); err != nil {
		return nil, false, rutter.Errorf(rutter.CodeInvalid,
			"Application %s: spec.ignoreApplicationDifferences leaves it unreadable: %w", merged.Name, err)
	}
	out := *merged
	out.Spec, out.Labels, out.Annotations, out.Finalizers = kept.Spec, kept.Labels, kept.Annotations, kept.Finalizers
	return &out, true, nil
}

// ruledTree is what rules can name: all but the status.
func ruledTree(app *v1alpha1.Application) (map[string]any, error) {
	part := *app
	part.Status = v1alpha1.ApplicationStatus{}
	part.ManagedFields = nil
	tree, err := treeOf(&part)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "Application %s: %w", app.Name, err)
	}
	return tree, nil
}

// copyField makes the field at path equal in both trees, by absence too. Where
// the ways part before the field, to stays as it is.
func copyField(to, from any, path []string) {
	key := strings.NewReplacer("~1", "/", "~0", "~").Replace(path[0])
	switch t := to.(type) {
	case map[string]any:
		f, _ := from.(map[string]any)
		value, ok := f[key]
		switch {
		case len(path) > 1:
			if t[key] == nil && ok {
				t[key] = emptyLike(value)
			}
			copyField(t[key], value, path[1:])
		case ok:
			t[key] = value
		default:
			delete(t, key)
		}
	case []any:
		f, _ := from.([]any)
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(t) || i >= len(f) {
			return
		}
		if len(path) > 1 {
			copyField(t[i], f[i], path[1:])
		} else {
			t[i] = f[i]
		}
	}
}

// emptyLike is an empty map where value is a map, so that a field in it can be kept.
func emptyLike(value any) any {
	if _, ok := value.(map[string]any); ok {
		return map[string]any{}
	}
	return nil
}

// differences names the parts in which two Applications differ, when fields
// that are empty, or that have their default, count as absent.
func differences(live, merged *v1alpha1.Application) ([]string, error) {
	parts, err := specDifferences(live, merged)
	if err != nil {
		return nil, err
	}
	if !sameMap(live.Labels, merged.Labels) {
		parts = append(parts, "metadata.labels")
	}
	if !sameMap(live.Annotations, merged.Annotations) {
		parts = append(parts, "metadata.annotations")
	}
	if !slices.Equal(live.Finalizers, merged.Finalizers) &&
		!slices.Equal(slices.Sorted(slices.Values(live.Finalizers)), slices.Sorted(slices.Values(merged.Finalizers))) {
		parts = append(parts, "metadata.finalizers")
	}
	if !reflect.DeepEqual(live.OwnerReferences, merged.OwnerReferences) {
		parts = append(parts, "metadata.ownerReferences")
	}
	return parts, nil
}

// specDifferences names the fields of the spec that differ. Most specs are
// equal as they are, and those need no second look.
func specDifferences(live, merged *v1alpha1.Application) ([]string, error) {
	if reflect.DeepEqual(&live.Spec, &merged.Spec) {
		return nil, nil
	}
	a, err := normalSpec(live.Spec)
	if err != nil {
		return nil, err
	}
	b, err := normalSpec(merged.Spec)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, k := range sortedKeys(union(a, b)) {
		if !reflect.DeepEqual(a[k], b[k]) {
			parts = append(parts, "spec."+k)
		}
	}
	return parts, nil
}

// normalSpec is a spec without what says nothing.
func normalSpec(spec v1alpha1.ApplicationSpec) (map[string]any, error) {
	tree, err := treeOf(spec)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "spec: %w", err)
	}
	out, _ := prune(tree).(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	if _, ok := out["project"]; !ok {
		out["project"] = "default"
	}
	return out, nil
}

// prune drops empty values. Two fields are kept as they are: an empty
// "automated" turns automated sync on, and a chart's values belong to the chart.
func prune(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, item := range v {
			if k != "automated" && k != "valuesObject" {
				item = prune(item)
			}
			if item != nil {
				out[k] = item
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = prune(item)
		}
		return out
	case string:
		if v == "" {
			return nil
		}
	}
	return value
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func sameMap(a, b map[string]string) bool {
	return len(a) == len(b) && (len(a) == 0 || maps.Equal(a, b))
}
