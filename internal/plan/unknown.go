package plan

import (
	"encoding/json"
	"reflect"
	"regexp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter/internal/fieldpath"
)

// undeclared finds the fields in the words with which a server refuses an apply
// that names fields it does not know.
var undeclared = regexp.MustCompile(`(\.\S(?:[^"]|"(?:[^"\\]|\\.)*")*?): field not declared in schema`)

// WithoutUnknown is obj without the fields that, by the server's refusal, its kind
// does not have; false when the refusal names none that obj has. A server-side
// apply is refused for them whatever validation is asked for, where the create and
// the update that Validate=false was made for drop them.
func WithoutUnknown(obj *unstructured.Unstructured, refusal string) (*unstructured.Unstructured, bool) {
	less, any := obj.DeepCopy(), false
	for _, m := range undeclared.FindAllStringSubmatch(refusal, -1) {
		if path, ok := fieldpath.Parse(m[1]); ok {
			any = removeAt(less.Object, path) || any
		}
	}
	return less, any
}

// removeAt takes the field at a path out of v.
func removeAt(v any, path []fieldpath.Segment) bool {
	step, last := path[0], len(path) == 1
	switch v := v.(type) {
	case map[string]any:
		child, ok := v[step.Field]
		if !ok || step.Field == "" {
			return false
		}
		if last {
			delete(v, step.Field)
			return true
		}
		return removeAt(child, path[1:])
	case []any:
		for i, item := range v {
			if !last && (step.Index == i || hasKeys(item, step.Keys)) {
				return removeAt(item, path[1:])
			}
		}
	}
	return false
}

// hasKeys reports whether an element of a list is the one with these keys. A key
// that is not written has its default, which is not known here.
func hasKeys(item any, keys []fieldpath.Key) bool {
	m, ok := item.(map[string]any)
	if !ok || len(keys) == 0 {
		return false
	}
	for _, k := range keys {
		has, written := m[k.Name]
		var want any
		if !written {
			continue
		}
		raw, err := json.Marshal(has)
		if err != nil || json.Unmarshal([]byte(k.Value), &want) != nil {
			return false
		}
		var same any
		if json.Unmarshal(raw, &same) != nil || !reflect.DeepEqual(same, want) {
			return false
		}
	}
	return true
}
