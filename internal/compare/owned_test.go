package compare_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter/internal/compare"

	rutter "github.com/rutterhq/rutter"
)

// TestOwned: an object as we applied it is ours in all that is declared, so that
// the hash may stand for the comparison; a declared field that somebody else wrote,
// though with the same value, is not, and the hash would not show its next edit.
func TestOwned(t *testing.T) {
	t.Parallel()
	types, err := compare.NewTypes(nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := compare.Options{Types: types}
	owned, lost := 0, 0
	for _, s := range samples(t) {
		r := compare.Local(s.desired, s.live, opts)
		if !r.Equal {
			if r.Owned {
				t.Errorf("%s: owned though it differs", s.name)
			}
			continue
		}
		switch {
		case r.Owned:
			owned++
		case strings.HasPrefix(s.name, "adopt"):
			continue
		default:
			t.Logf("%s: equal, and not all of it ours", s.name)
		}
		for path := range ownedLeaves(s.live) {
			live := s.live.DeepCopy()
			if takeAway(live, path); len(fieldsOf(live)) == 0 {
				continue // then there is no entry
			}
			before, _ := compare.OwnedHash(live, rutter.FieldManager, nil)
			again := compare.Local(s.desired, live, opts)
			lost++
			if again.Equal && again.Owned {
				t.Errorf("%s: without %v it counts as all ours, with the hash %s", s.name, path, before)
			}
		}
	}
	if owned < 5 || lost < 50 {
		t.Fatalf("%d samples were ours, %d fields taken away: this shows nothing", owned, lost)
	}
}

// ownedLeaves are the places in our field set that have no parts, as joined keys.
func ownedLeaves(live *unstructured.Unstructured) map[string]bool {
	out := map[string]bool{}
	var walk func(m map[string]any, at []string)
	walk = func(m map[string]any, at []string) {
		for k, v := range m {
			sub, _ := v.(map[string]any)
			if k == "." || strings.HasPrefix(k, "k:") { // an element is found by its keys
				walk(sub, append(slices.Clip(at), k))
				continue
			}
			if len(sub) == 0 {
				out[strings.Join(append(slices.Clip(at), k), "\n")] = true
				continue
			}
			walk(sub, append(slices.Clip(at), k))
		}
	}
	walk(fieldsOf(live), nil)
	return out
}

// fieldsOf is our field set of a live object, to be changed in place.
func fieldsOf(live *unstructured.Unstructured) map[string]any {
	entries, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m["manager"] == rutter.FieldManager && m["operation"] == "Apply" {
			fields, _ := m["fieldsV1"].(map[string]any)
			return fields
		}
	}
	return nil
}

// takeAway takes a place out of our field set, as the server does when somebody
// else writes it.
func takeAway(live *unstructured.Unstructured, path string) {
	var take func(m map[string]any, steps []string)
	take = func(m map[string]any, steps []string) {
		sub, _ := m[steps[0]].(map[string]any)
		if len(steps) > 1 {
			take(sub, steps[1:])
		}
		if len(steps) == 1 || len(sub) == 0 {
			delete(m, steps[0])
		}
	}
	take(fieldsOf(live), strings.Split(path, "\n"))
}
