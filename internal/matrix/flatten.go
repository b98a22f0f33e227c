package matrix

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// listKeys are the names by which elements of lists are known, in the order in which
// they are tried.
var listKeys = []string{"name", "mountPath", "containerPort", "port", "key", "ip", "type"}

// flatten gives every value of an object by its path, written as rutter.FieldDiff
// writes it.
func flatten(object map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range object {
		flattenInto(out, field(k), v)
	}
	return out
}

// plain are names that need no quotes in a path.
var plain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func field(name string) string {
	if plain.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func flattenInto(out map[string]string, path string, v any) {
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			out[path] = "{}"
		}
		for k, e := range x {
			flattenInto(out, path+field(k), e)
		}
	case []any:
		flattenList(out, path, x)
	default:
		out[path] = encode(x)
	}
}

func flattenList(out map[string]string, path string, list []any) {
	if len(list) == 0 {
		out[path] = "[]"
		return
	}
	for _, key := range listKeys {
		if names, ok := keyed(list, key); ok {
			for i, e := range list {
				flattenInto(out, fmt.Sprintf("%s[%s=%s]", path, key, names[i]), e)
			}
			return
		}
	}
	for i, e := range list {
		if _, object := e.(map[string]any); !object {
			out[path] = encode(list) // a list of values is one value
			return
		}
		flattenInto(out, fmt.Sprintf("%s[%d]", path, i), e)
	}
}

// keyed are the values of a key that all elements have, if no two are the same.
func keyed(list []any, key string) ([]string, bool) {
	var names []string
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, false
		}
		v, ok := m[key]
		if !ok {
			return nil, false
		}
		n := encode(v)
		if slices.Contains(names, n) {
			return nil, false
		}
		names = append(names, n)
	}
	return names, true
}

func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// secretField reports whether a field of a Secret is one of its values.
func secretField(path string) bool {
	return strings.HasPrefix(path, ".data") || strings.HasPrefix(path, ".stringData") ||
		strings.HasPrefix(path, `.metadata.annotations["kubectl.kubernetes.io/last-applied-configuration"]`)
}
