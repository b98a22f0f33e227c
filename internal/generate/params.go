package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// paramSet is one set of parameters on its way through the generators.
// Parameters are flat strings ("metadata.labels.env") for {{key}} templates
// and nested values for Go templates. They are shared and never written to.
type paramSet struct {
	params map[string]any
	// origins say which generator gave which parameters, for errors about
	// collisions; the first that has a key is the one it came from.
	origins  []origin
	warnings []string
	// stale says that the parameters, or some of them, are those of the last
	// good answer.
	stale bool
	// err is why this set has no usable parameters; it travels through
	// combinations, so that its element is reported and no other is lost.
	err error
}

// origin is what one generator gave.
type origin struct {
	producer string
	params   map[string]any
}

// newSet is a set whose keys all come from producer.
func newSet(params map[string]any, producer string) paramSet {
	return paramSet{params: params, origins: []origin{{producer, params}}}
}

// origin is the generator that a parameter came from; key may be one within values.
func (s paramSet) origin(key string) string {
	for _, o := range s.origins {
		if _, ok := o.params[key]; ok {
			return o.producer
		}
		if values, ok := o.params["values"].(map[string]any); ok {
			if inner, isValue := strings.CutPrefix(key, "values."); isValue {
				if _, ok := values[inner]; ok {
					return o.producer
				}
			}
		}
	}
	return "an earlier generator"
}

// joinSlices is one after the other, without a copy where one is empty.
func joinSlices[T any](a, b []T) []T {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	default:
		return slices.Concat(a, b)
	}
}

// isPath reports whether a key is one of the path parameters of {{key}}
// templates, or the map of them.
func isPath(key string) bool {
	return key == "path" || strings.HasPrefix(key, "path.") || strings.HasPrefix(key, "path[")
}

// toTree decodes JSON into maps, lists, strings, bools, int64 and float64.
func toTree(raw []byte) (any, error) {
	var tree any
	err := utiljson.Unmarshal(raw, &tree)
	return tree, err //nolint:wrapcheck // callers name the field
}

// treeOf is the JSON form of any value.
func treeOf(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err //nolint:wrapcheck // callers name the field
	}
	var tree map[string]any
	err = utiljson.Unmarshal(raw, &tree)
	return tree, err //nolint:wrapcheck // callers name the field
}

// flatten writes the leaves of value into out under dotted keys, as strings.
func flatten(out map[string]string, prefix string, value any) {
	join := func(key string) string {
		if prefix == "" {
			return key
		}
		return prefix + "." + key
	}
	switch v := value.(type) {
	case map[string]any:
		for k, item := range v {
			flatten(out, join(k), item)
		}
	case map[string]string:
		for k, item := range v {
			out[join(k)] = item
		}
	case []string:
		for i, item := range v {
			out[join(strconv.Itoa(i))] = item
		}
	case []any:
		for i, item := range v {
			flatten(out, join(strconv.Itoa(i)), item)
		}
	default:
		out[prefix] = scalar(value)
	}
}

// flatParams flattens an object for {{key}} templates.
func flatParams(object map[string]any) map[string]any {
	flat := map[string]string{}
	flatten(flat, "", object)
	params := make(map[string]any, len(flat))
	for k, v := range flat {
		params[k] = v
	}
	return params
}

// scalar is a leaf as a text; whole numbers are never written with an exponent.
func scalar(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// fill returns a with what it lacks taken from b, map by map; a nil in a counts
// as lacking. Neither is changed.
func fill(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = make(map[string]any, len(b))
	}
	for k, bv := range b {
		av, ok := out[k]
		am, aMap := av.(map[string]any)
		bm, bMap := bv.(map[string]any)
		switch {
		case !ok || av == nil:
			out[k] = bv
		case aMap && bMap:
			out[k] = fill(am, bm)
		}
	}
	return out
}

// overlay returns base with the values of over in it, map by map. An empty
// text, list, map or nil in over does not erase anything; false and 0 do.
func overlay(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = make(map[string]any, len(over))
	}
	for k, ov := range over {
		bv, ok := out[k]
		bm, bMap := bv.(map[string]any)
		om, oMap := ov.(map[string]any)
		switch {
		case bMap && oMap:
			out[k] = overlay(bm, om)
		case !ok || !isEmpty(ov):
			out[k] = ov
		}
	}
	return out
}

// isEmpty reports whether a value says nothing.
func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	}
	rv := reflect.ValueOf(value)
	return (rv.Kind() == reflect.Map || rv.Kind() == reflect.Slice) && rv.Len() == 0
}

// normalize makes a text fit for a name: lower case, only a-z, 0-9, '-' and
// '.', at most 253 long, no '-' or '.' at the ends.
func normalize(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '-'
	}, strings.ToLower(text))
	if len(clean) > maxNameLength {
		clean = clean[:maxNameLength]
	}
	return strings.Trim(clean, "-.")
}

// sortedKeys are the keys of a map in order, for deterministic answers.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
