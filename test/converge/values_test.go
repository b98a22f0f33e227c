package converge

import (
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/value"
)

type fieldNameValue = value.Field

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// scalars calls yield for every scalar of a tree, and for what is empty.
func scalars(v any, at []any, yield func(at []any, v any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if len(at) == 1 && at[0] == "metadata" && k == "managedFields" {
				continue
			}
			scalars(child, append(slices.Clip(at), k), yield)
		}
	case []any:
		for i, child := range v {
			scalars(child, append(slices.Clip(at), i), yield)
		}
	default:
		yield(at, v)
	}
}

// elements calls yield for every list of objects, with its first element.
func elements(v any, at []any, yield func(at []any, elem map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			if len(at) == 0 && k == "metadata" {
				continue
			}
			elements(child, append(slices.Clip(at), k), yield)
		}
	case []any:
		if len(v) == 0 {
			return
		}
		if m, ok := v[0].(map[string]any); ok {
			yield(at, m)
		}
		for i, child := range v {
			elements(child, append(slices.Clip(at), i), yield)
		}
	}
}

// valueAt is what is at a place, nil where nothing is.
func valueAt(v any, at []any) any {
	for _, step := range at {
		switch s := step.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[s]
		case int:
			l := list(v)
			if s >= len(l) {
				return nil
			}
			v = l[s]
		}
	}
	return v
}

// null reports whether a field is declared as null, which declares nothing where
// no server can be asked.
func null(object any, at []any) bool {
	m, _ := valueAt(object, at[:len(at)-1]).(map[string]any)
	name, _ := at[len(at)-1].(string)
	v, declared := m[name]
	return declared && v == nil
}

// put writes a value, or takes it away when it is gone.
func put(v any, at []any, to any) {
	parent := valueAt(v, at[:len(at)-1])
	switch s := at[len(at)-1].(type) {
	case string:
		if m, ok := parent.(map[string]any); ok {
			if to == gone {
				delete(m, s)
			} else {
				m[s] = to
			}
		}
	case int:
		l := list(parent)
		switch {
		case s < len(l) && to != gone:
			l[s] = to
		case s < len(l):
			put(v, at[:len(at)-1], slices.Delete(slices.Clone(l), s, s+1))
		}
	}
}

// absent is the value that takes a field away.
type absent struct{}

var gone = absent{}

// formats are values for fields that take only what has a certain form.
var formats = []string{
	"2", "3Gi", "50%", "3m0s", "192.0.2.77", "10.77.0.0/16", "YQ==", "https://example.com/other", "2027-01-02T03:04:05Z", "2027-01-02T03:04:05.000000Z", "true", "false",
	"Exists", "UDP", "Delete", "get", "DELETE",
}

// candidates are values that an editor might put in place of v.
func candidates(v any) (out []any) {
	switch v := v.(type) {
	case string:
		out = append(out, v+"x", "x", strings.TrimRight(v, "/")+"/x")
		for _, f := range formats {
			if f != v {
				out = append(out, f)
			}
		}
	case bool:
		out = append(out, !v)
	case int64:
		out = append(out, v+1, v-1, v+1000, int64(1))
	case float64:
		out = append(out, v+1)
	case nil:
		out = append(out, "x", int64(1), map[string]any{"a": "b"})
	}
	return append(out, gone)
}

// supported are the values that an error says a field takes.
func supported(err error) (out []any) {
	_, text, ok := strings.Cut(err.Error(), "supported values: ")
	if !ok {
		return nil
	}
	for part := range strings.SplitSeq(text, ", ") {
		if len(part) > 2 && part[0] == '"' {
			out = append(out, strings.Trim(part, "\"]"))
		}
	}
	return out
}

// final reports whether an error says that no other value will do either.
func final(err error) bool {
	return strings.Contains(err.Error(), "immutable") || strings.Contains(err.Error(), "may not change") || strings.Contains(err.Error(), "updates to")
}
