package generate

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// unsupportedRule is an error when a rule of the set concerns the Application
// and cannot be acted on: writing over what it protects would be worse than
// not writing at all.
func unsupportedRule(set *v1alpha1.ApplicationSet, name string) error {
	for i, rule := range set.Spec.IgnoreApplicationDifferences {
		if (rule.Name == "" || rule.Name == name) && len(rule.JQPathExpressions) > 0 {
			return rutter.Errorf(rutter.CodeUnsupported,
				"spec.ignoreApplicationDifferences[%d].jqPathExpressions: is not acted on yet; use jsonPointers. "+
					"Application %s is not updated until then", i, name)
		}
	}
	return nil
}

// keepIgnored puts the live values of ignored fields into an Application that
// is to be written.
func keepIgnored(set *v1alpha1.ApplicationSet, merged, live *v1alpha1.Application) (*v1alpha1.Application, error) {
	var pointers []string
	for i, rule := range set.Spec.IgnoreApplicationDifferences {
		if rule.Name != "" && rule.Name != merged.Name {
			continue
		}
		for j, p := range rule.JSONPointers {
			if !strings.HasPrefix(p, "/") {
				return nil, rutter.Errorf(rutter.CodeInvalid,
					"spec.ignoreApplicationDifferences[%d].jsonPointers[%d]: %q does not begin with /", i, j, p)
			}
			pointers = append(pointers, p)
		}
	}
	if len(pointers) == 0 {
		return merged, nil
	}
	to, err := treeOf(merged)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "Application %s: %w", merged.Name, err)
	}
	from, err := treeOf(live)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "Application %s: %w", merged.Name, err)
	}
	for _, p := range pointers {
		copyField(to, from, strings.Split(p[1:], "/"))
	}
	raw, err := json.Marshal(to)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "Application %s: %w", merged.Name, err)
	}
	out := &v1alpha1.Application{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid,
			"Application %s: spec.ignoreApplicationDifferences leaves it unreadable: %w", merged.Name, err)
	}
	return out, nil
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
	if !sameMap(live.Labels, merged.Labels) {
		parts = append(parts, "metadata.labels")
	}
	if !sameMap(live.Annotations, merged.Annotations) {
		parts = append(parts, "metadata.annotations")
	}
	if !slices.Equal(slices.Sorted(slices.Values(live.Finalizers)), slices.Sorted(slices.Values(merged.Finalizers))) {
		parts = append(parts, "metadata.finalizers")
	}
	if !reflect.DeepEqual(live.OwnerReferences, merged.OwnerReferences) {
		parts = append(parts, "metadata.ownerReferences")
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
