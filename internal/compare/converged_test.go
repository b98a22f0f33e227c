package compare_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/schema"
)

// doubts are where Local can't know without the schema and leaves the answer
// to the server's dry run: defaults inside lists that are replaced as a whole.
var doubts = map[string][]string{
	"widget":     {".spec.items[0].b"},
	"limitrange": {".spec.limits[0].defaultRequest.cpu"},
}

// What was applied and read back is equal in every way that we can ask
// (scenarios B22 and B23): defaults, allocated fields, quantities, dropped
// empties, folded Secrets and claim templates are no drift.
func TestConverged(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want, doubt := doubts[s.name]
			if got := paths(compare.Local(s.desired, s.live, ours)); !cmp.Equal(got, append([]string{}, want...)) {
				t.Errorf("Local (doubt %v): %v, want %v", doubt, got, want)
			}
			if r := compare.Predicted(s.predicted, s.live, ours); !r.Equal {
				t.Errorf("Predicted: %+v", r.Diffs)
			}
			if r := compare.Local(s.live, s.live, ours); !r.Equal {
				t.Errorf("Local of the live object with itself: %+v", r.Diffs)
			}
			live, ok := compare.OwnedHash(s.live, rutter.FieldManager, nil)
			predicted, ok2 := compare.OwnedHash(s.predicted, rutter.FieldManager, nil)
			if !ok || !ok2 || live != predicted {
				t.Errorf("OwnedHash: live %q %v, predicted %q %v", live, ok, predicted, ok2)
			}
		})
	}
}

// undecided is what takes the server's own code to know, with all its types.
var undecided = map[string][]string{
	"limitrange": {".spec.limits[0].defaultRequest.cpu"},
}

// With the types of the kinds the doubts are gone, also where nobody's
// ownership is recorded and no server can be asked.
func TestConvergedByTypes(t *testing.T) {
	t.Parallel()
	list := samples(t)
	types, err := compare.NewTypes(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if s.desired.GetKind() != "CustomResourceDefinition" {
			continue
		}
		more, err := schema.FromDefinition(s.desired)
		if err != nil {
			t.Fatal(err)
		}
		types = types.With(more)
	}
	for _, s := range list {
		if got := paths(compare.Local(s.desired, s.live, compare.Options{Types: types})); !cmp.Equal(got, append([]string{}, undecided[s.name]...)) {
			t.Errorf("%s: Local: %v", s.name, got)
		}
		bare := s.live.DeepCopy()
		bare.SetManagedFields(nil)
		final := compare.Options{Types: types, Final: true}
		if got := paths(compare.Local(s.desired, bare, final)); !cmp.Equal(got, append([]string{}, undecided[s.name]...)) {
			t.Errorf("%s: without owners: %v", s.name, got)
		}
		if r := compare.Local(s.live, bare, final); !r.Equal {
			t.Errorf("%s: with itself: %+v", s.name, r.Diffs)
		}
	}
}
