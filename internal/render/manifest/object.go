package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// maxListDepth bounds lists of lists.
const maxListDepth = 8

// Objects returns the objects that a decoded document stands for: none for an
// empty one, the items of a list kind, else itself. Each must say what it is.
func Objects(v any, origin rutter.Origin) ([]rutter.Object, error) {
	return objects(v, origin, "", maxListDepth)
}

// Objects is Objects for what the document was decoded to: origins and errors
// name its place in the file.
func (d Document) Objects(v any, file string) ([]rutter.Object, error) {
	objs, err := Objects(v, rutter.Origin{File: file, Line: d.Line})
	return objs, d.numbered(err)
}

// IsObject reports whether a decoded document looks like a Kubernetes object.
func IsObject(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	kind, _ := m["kind"].(string)
	return kind != ""
}

func objects(v any, origin rutter.Origin, where string, depth int) ([]rutter.Object, error) {
	if v == nil {
		return nil, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, invalid(origin, "%sa Kubernetes object must be a mapping, this is %s", where, describe(v))
	}
	if items, ok := listItems(m); ok {
		return expand(m, items, origin, where, depth)
	}
	if err := cmp.Or(notAList(m, origin, where), check(m, origin, where)); err != nil {
		return nil, err //nolint:wrapcheck // one of these two, which name the object
	}
	return []rutter.Object{{Unstructured: &unstructured.Unstructured{Object: m}, Origin: origin}}, nil
}

// listItems recognises list kinds: the kind ends in List and there are items.
func listItems(m map[string]any) ([]any, bool) {
	kind, _ := m["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	items, has := m["items"]
	if !has {
		return nil, kind == "List"
	}
	if items == nil {
		return nil, true
	}
	list, ok := items.([]any)
	return list, ok
}

// notAList refuses the kind List whose items are none: it is no object either.
func notAList(m map[string]any, origin rutter.Origin, where string) error {
	if m["kind"] == "List" && m["items"] != nil {
		return invalid(origin, "%sitems of a List must be a list, it is %s", where, describe(m["items"]))
	}
	return nil
}

func expand(list map[string]any, items []any, origin rutter.Origin, where string, depth int) ([]rutter.Object, error) {
	if depth == 0 {
		return nil, invalid(origin, "%slists are nested too deeply", where)
	}
	kind, _ := list["kind"].(string)
	version, _ := list["apiVersion"].(string)
	var out []rutter.Object
	for i, item := range items {
		if m, ok := item.(map[string]any); ok && kind != "List" {
			// The items of a typed list may leave out what the list says already.
			if m["kind"] == nil {
				m["kind"] = strings.TrimSuffix(kind, "List")
			}
			if m["apiVersion"] == nil {
				m["apiVersion"] = version
			}
		}
		objs, err := objects(item, origin, fmt.Sprintf("%sitems[%d]: ", where, i), depth-1)
		if err != nil {
			return nil, err
		}
		out = append(out, objs...)
	}
	return out, nil
}

// check refuses an object without identity, and metadata that a typed reader
// would lose in silence.
func check(m map[string]any, origin rutter.Origin, where string) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if s, ok := m[field].(string); !ok || s == "" {
			return invalid(origin, "%s%s has no %s: every Kubernetes object needs apiVersion, kind and metadata.name", where, name(m), field)
		}
	}
	meta, ok := m["metadata"].(map[string]any)
	if !ok {
		if m["metadata"] != nil {
			return invalid(origin, "%s%s: metadata must be a mapping, it is %s", where, name(m), describe(m["metadata"]))
		}
		return invalid(origin, "%s%s has no metadata.name", where, name(m))
	}
	for _, field := range []string{"name", "generateName", "namespace"} {
		if v, has := meta[field]; has && v != nil {
			if _, ok := v.(string); !ok {
				return invalid(origin, "%s%s: metadata.%s must be a string, it is %s: put it in quotes", where, name(m), field, describe(v))
			}
		}
	}
	if str(meta["name"]) == "" && str(meta["generateName"]) == "" {
		return invalid(origin, "%s%s has no metadata.name", where, name(m))
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkStrings(m, meta, field, origin, where); err != nil {
			return err
		}
	}
	return nil
}

func checkStrings(m, meta map[string]any, field string, origin rutter.Origin, where string) error {
	v := meta[field]
	if v == nil {
		delete(meta, field)
		return nil
	}
	pairs, ok := v.(map[string]any)
	if !ok {
		return invalid(origin, "%s%s: metadata.%s must be a mapping, it is %s", where, name(m), field, describe(v))
	}
	for _, k := range slices.Sorted(maps.Keys(pairs)) {
		switch x := pairs[k].(type) {
		case string:
		case nil:
			pairs[k] = ""
		default:
			return invalid(origin, "%s%s: metadata.%s[%q] must be a string, it is %s: put it in quotes", where, name(m), field, k, describe(x))
		}
	}
	return nil
}

// name says what is known of an object, for errors.
func name(m map[string]any) string {
	kind := str(m["kind"])
	if kind == "" {
		kind = "an object"
	}
	meta, _ := m["metadata"].(map[string]any)
	if n := str(meta["name"]); n != "" {
		return kind + " " + strconv.Quote(n)
	}
	return kind
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "a mapping"
}

func invalid(origin rutter.Origin, format string, args ...any) error {
	return invalidAt(origin.File, origin.Line, format, args...)
}
