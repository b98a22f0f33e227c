package compare_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// leaves calls visit with the path of every scalar below v.
func leaves(v any, at []any, visit func(at []any, v any)) {
	next := func(s any) []any { return append(slices.Clip(at), s) }
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			leaves(child, next(k), visit)
		}
	case []any:
		for i, child := range v {
			leaves(child, next(i), visit)
		}
	default:
		visit(at, v)
	}
}

// ownedPath reports whether a path is one of the content, not of the identity
// of the object and not the server's.
func ownedPath(at []any) bool {
	switch at[0] {
	case "apiVersion", "kind", "status":
		return false
	case "metadata":
		return at[1] == "labels" || at[1] == "annotations" || at[1] == "finalizers"
	}
	return true
}

// other returns a value of the same type that isn't v.
func other(v any) any {
	switch v := v.(type) {
	case string:
		return v + "x"
	case bool:
		return !v
	case int64:
		return v + 1
	case float64:
		return v + 1
	}
	return "x"
}

func lookup(u *unstructured.Unstructured, at []any) (any, bool) {
	var v any = u.Object
	for _, s := range at {
		switch s := s.(type) {
		case string:
			m, _ := v.(map[string]any)
			child, ok := m[s]
			if !ok {
				return nil, false
			}
			v = child
		case int:
			l, _ := v.([]any)
			if s >= len(l) {
				return nil, false
			}
			v = l[s]
		}
	}
	return v, true
}

// Every declared value that is live is changed in the live object, one at a
// time: each change is found by all three comparisons (missed drift: 0).
func TestEveryLiveChangeIsFound(t *testing.T) {
	t.Parallel()
	changes := 0
	for _, s := range samples(t) {
		hash, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
		leaves(s.desired.Object, nil, func(at []any, _ any) {
			v, live := lookup(s.live, at)
			if !live || v == nil || !ownedPath(at) {
				return
			}
			changes++
			edited := s.live.DeepCopy()
			set(t, edited, other(v), at...)
			name := fmt.Sprintf("%s %v: %v → %v", s.name, at, v, other(v))
			if r := compare.Local(s.desired, edited, ours); r.Equal {
				t.Errorf("%s: Local says equal", name)
			}
			if r := compare.Predicted(s.predicted, edited, ours); r.Equal {
				t.Errorf("%s: Predicted says equal", name)
			}
			if h, _ := compare.OwnedHash(edited, rutter.FieldManager, nil); h == hash {
				t.Errorf("%s: OwnedHash is the same", name)
			}
		})
	}
	t.Logf("%d changes of live values, all found", changes)
	if changes < 200 {
		t.Errorf("only %d changes were tried", changes)
	}
}

// Every live value that was declared is taken away.
func TestEveryLiveRemovalIsFound(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		hash, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
		leaves(s.desired.Object, nil, func(at []any, v any) {
			if _, live := lookup(s.live, at); !live || !ownedPath(at) {
				return
			}
			if _, isIndex := at[len(at)-1].(int); isIndex {
				return
			}
			edited := s.live.DeepCopy()
			set(t, edited, nil, at...)
			name := fmt.Sprintf("%s %v", s.name, at)
			if r := compare.Predicted(s.predicted, edited, ours); r.Equal {
				t.Errorf("%s: Predicted says equal", name)
			}
			if h, _ := compare.OwnedHash(edited, rutter.FieldManager, nil); h == hash {
				t.Errorf("%s: OwnedHash is the same", name)
			}
			if v == "" || v == false || v == nil {
				return // ours, declared empty, and absent: the server drops such values itself
			}
			if r := compare.Local(s.desired, edited, ours); r.Equal {
				t.Errorf("%s: Local says equal", name)
			}
		})
	}
}

// Every declared value that is live is taken out of Git: the next apply would
// remove it or fall back to a default, so none may count as equal.
func TestEveryRemovalFromGitIsFound(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		leaves(s.desired.Object, nil, func(at []any, _ any) {
			if _, live := lookup(s.live, at); !live || !ownedPath(at) || foldedAway(at) {
				return
			}
			if _, isIndex := at[len(at)-1].(int); isIndex {
				return
			}
			edited := s.desired.DeepCopy()
			set(t, edited, nil, at...)
			if r := compare.Local(edited, s.live, ours); r.Equal {
				t.Errorf("%s %v: Local says equal", s.name, at)
			}
		})
	}
}

// foldedAway are declared values that are a default too: without them the
// declaration means the same.
func foldedAway(at []any) bool { return at[len(at)-1] == "protocol" }

// What others add is theirs: no declared object becomes different by it.
func TestForeignFieldsAreNoDrift(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		if len(doubts[s.name]) > 0 {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			edited, predicted := s.live.DeepCopy(), s.predicted.DeepCopy()
			annotations := edited.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["someone.example.com/note"] = "mine"
			edited.SetAnnotations(annotations)
			predicted.SetAnnotations(annotations) // an apply leaves what is not ours
			set(t, edited, map[string]any{"phase": "Other"}, "status")
			edited.SetResourceVersion("999999")
			edited.SetGeneration(77)
			edited.SetFinalizers(append([]string{"someone.example.com/hold"}, edited.GetFinalizers()...))
			foreign(t, edited, "someone", "Update", "", `{"f:metadata":{"f:annotations":{"f:someone.example.com/note":{}},"f:finalizers":{".":{},"v:\"someone.example.com/hold\"":{}}}}`)
			foreign(t, edited, "controller", "Update", "status", `{"f:status":{"f:phase":{}}}`)

			if r := compare.Local(s.desired, edited, ours); !r.Equal {
				t.Errorf("Local: %+v", r.Diffs)
			}
			if r := compare.Predicted(predicted, edited, ours); !r.Equal {
				t.Errorf("Predicted: %+v", r.Diffs)
			}
			if s.desired.GetAnnotations() != nil && len(s.desired.GetAnnotations()) == 0 {
				return // "annotations: {}" is owned whole; more of them cost one local comparison
			}
			before, _ := compare.OwnedHash(s.live, rutter.FieldManager, nil)
			after, _ := compare.OwnedHash(edited, rutter.FieldManager, nil)
			if before != after {
				t.Error("OwnedHash changed")
			}
		})
	}
}

// foreign adds an entry to managedFields.
func foreign(t testing.TB, u *unstructured.Unstructured, manager, operation, subresource, fields string) {
	t.Helper()
	var f map[string]any
	if err := json.Unmarshal([]byte(fields), &f); err != nil {
		t.Fatal(err)
	}
	entry := map[string]any{
		"manager": manager, "operation": operation, "apiVersion": u.GetAPIVersion(),
		"time": "2027-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": f,
	}
	if subresource != "" {
		entry["subresource"] = subresource
	}
	meta, _ := u.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	meta["managedFields"] = append(entries, entry)
}

// disown takes a field out of our entry, as an update by another manager does.
func disown(t testing.TB, u *unstructured.Unstructured, at ...string) {
	t.Helper()
	meta, _ := u.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		m, _ := e.(map[string]any)
		if m["manager"] != rutter.FieldManager {
			continue
		}
		fields, _ := m["fieldsV1"].(map[string]any)
		for _, s := range at[:len(at)-1] {
			fields, _ = fields[s].(map[string]any)
		}
		if _, ok := fields[at[len(at)-1]]; !ok {
			t.Fatalf("%s is not ours", strings.Join(at, " "))
		}
		delete(fields, at[len(at)-1])
	}
}
