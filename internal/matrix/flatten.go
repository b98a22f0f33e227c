package matrix

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter/internal/fieldpath"
)

// listKeys are the names by which elements of lists are known, in the order in which
// they are tried; portKeys those of lists of ports, as the API server knows them.
var (
	listKeys = [][]string{{"name"}, {"mountPath"}, {"devicePath"}, {"topologyKey", "whenUnsatisfiable"}, {"key"}, {"ip"}, {"type"}}
	portKeys = [][]string{{"containerPort", "protocol"}, {"port", "protocol"}}
)

// orderOf marks the path of a list's order: elements that are known by a key are
// compared each by itself, and their order would be lost.
const orderOf = " (order)"

// flattener gives every value of an object by its path, written as rutter.FieldDiff
// writes it.
type flattener struct {
	out map[string]string
	// secret keeps values from becoming a part of a path.
	secret bool
}

func flatten(object map[string]any, secret bool) map[string]string {
	f := flattener{out: map[string]string{}}
	for k, v := range object {
		f.secret = secret && k != "metadata"
		f.value(field(k), k, v)
	}
	return f.out
}

// plain are names that need no quotes in a path.
var plain = regexp.MustCompile(`^[A-Za-z0-9_$-]+$`)

func field(name string) string {
	if plain.MatchString(name) {
		return "." + name
	}
	return "[" + strconv.Quote(name) + "]"
}

func (f *flattener) value(path, name string, v any) {
	switch x := v.(type) {
	case map[string]any:
		if len(x) == 0 {
			f.out[path] = "{}"
		}
		for k, e := range x {
			f.value(path+field(k), k, e)
		}
	case []any:
		f.list(path, name, x)
	default:
		f.out[path] = encode(x)
	}
}

func (f *flattener) list(path, name string, list []any) {
	if len(list) == 0 || f.secret {
		f.out[path] = encode(list)
		return
	}
	tried := listKeys
	if name == "ports" {
		tried = slices.Concat(portKeys, listKeys)
	}
	for _, keys := range tried {
		names, ok := keyed(list, keys)
		if !ok {
			continue
		}
		for i, e := range list {
			f.value(path+"["+names[i]+"]", "", e)
		}
		f.out[path+orderOf] = encode(names)
		return
	}
	if slices.ContainsFunc(list, func(e any) bool { _, object := e.(map[string]any); return !object }) {
		f.out[path] = encode(list) // a list of values is one value
		return
	}
	for i, e := range list {
		f.value(fmt.Sprintf("%s[%d]", path, i), "", e)
	}
}

// keyed are the elements of a list by keys that all of them have, if no two are the same.
func keyed(list []any, keys []string) ([]string, bool) {
	names := make([]string, 0, len(list))
	seen := map[string]bool{}
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, false
		}
		parts := make([]string, len(keys))
		for i, key := range keys {
			v, ok := m[key]
			if !ok && key == "protocol" {
				v, ok = "TCP", true // what the server fills in
			}
			if !ok {
				return nil, false
			}
			parts[i] = key + "=" + encode(v)
		}
		name := strings.Join(parts, ",")
		if seen[name] {
			return nil, false
		}
		seen[name] = true
		names = append(names, name)
	}
	return names, true
}

// sameElements reports whether two orders are of the same elements.
func sameElements(a, b string) bool {
	var x, y []string
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return false
	}
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// at is the value at a path that need not be one of a leaf: what has drifted may be
// a list, or a part that has more below it. It is empty when there is none.
func at(object map[string]any, path string) string {
	segments, ok := fieldpath.Parse(path)
	if !ok {
		return ""
	}
	var v any = object
	for _, s := range segments {
		if v = step(v, s); v == nil {
			return ""
		}
	}
	return encode(v)
}

// step goes one step down; nil when there is nothing.
func step(v any, s fieldpath.Segment) any {
	if s.Field != "" {
		m, _ := v.(map[string]any)
		return m[s.Field]
	}
	list, _ := v.([]any)
	if s.Index >= 0 {
		if s.Index < len(list) {
			return list[s.Index]
		}
		return nil
	}
	for _, e := range list {
		if s.Value != "" {
			if encode(e) == s.Value {
				return e
			}
			continue
		}
		m, _ := e.(map[string]any)
		if m != nil && !slices.ContainsFunc(s.Keys, func(k fieldpath.Key) bool {
			have, ok := m[k.Name]
			if ok {
				return encode(have) != k.Value
			}
			return k.Name != "protocol" || k.Value != `"TCP"`
		}) {
			return e
		}
	}
	return nil
}

// encode writes a value as JSON, for people: without the escapes that only HTML needs.
func encode(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return `"a value that has no JSON form"`
	}
	return strings.TrimSpace(b.String())
}
