package actions

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/lua"
)

// runScript runs action.lua, which returns the object as it should become, or a list
// of what to create and to patch.
func runScript(script *lua.Script, obj *unstructured.Unstructured, name string, params Params, now time.Time) ([]Change, error) {
	out, err := script.Action(obj.Object, params, now)
	if err != nil {
		return nil, err
	}
	wrong := func(what string) error {
		return rutter.Errorf(rutter.CodeInvalid, "the action %q of %s: %s", name, words(obj), what)
	}
	if whole, ok := out.(map[string]any); ok {
		out = []any{map[string]any{"operation": "patch", "resource": whole}}
	}
	list, ok := out.([]any)
	if !ok {
		return nil, wrong("action.lua returns neither an object nor a list of operations")
	}
	var changes []Change
	for _, entry := range list {
		m, _ := entry.(map[string]any)
		resource, _ := m["resource"].(map[string]any)
		u := &unstructured.Unstructured{Object: resource}
		if resource == nil || u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, wrong("action.lua returns no whole object: a resource has apiVersion, kind and metadata")
		}
		switch m["operation"] {
		case "create":
			if u.GetName() == "" && u.GetGenerateName() == "" {
				return nil, wrong("a resource to create has metadata.name or metadata.generateName")
			}
			changes = append(changes, creation(obj, u))
		case "patch":
			if !same(obj, u) {
				return nil, wrong("action.lua may patch the object that it is given only, not " + words(u))
			}
			changes = append(changes, amendment(plain(obj.Object), resource))
		default:
			return nil, wrong(`an operation is "create" or "patch"`)
		}
	}
	return changes, nil
}

func same(a, b *unstructured.Unstructured) bool {
	return keyOf(a) == keyOf(b) && a.GetName() == b.GetName() && a.GetNamespace() == b.GetNamespace()
}

// creation lies beside the object unless it says otherwise.
func creation(obj, made *unstructured.Unstructured) Change {
	if made.GetNamespace() == "" {
		made.SetNamespace(obj.GetNamespace())
	}
	return Change{Create: true, Object: made}
}

// amendment is what makes before into after.
func amendment(before, after map[string]any) Change {
	return Change{Object: &unstructured.Unstructured{Object: after}, Patch: difference(before, after)}
}

// plain is an object as a script gives it back when it changes nothing: Lua has no
// null and no large integers.
func plain(obj map[string]any) map[string]any {
	m, _ := plainly(obj).(map[string]any)
	return m
}

func plainly(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, item := range x {
			if item != nil {
				out[k] = plainly(item)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(x))
		for _, item := range x {
			if item != nil {
				out = append(out, plainly(item))
			}
		}
		return out
	case int64:
		return plainly(float64(x))
	case float64:
		if n := int64(x); float64(n) == x {
			return n
		}
		return x
	}
	return v
}
