package generate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// waitRoom is a set over time: what is decided is carried out, and what is to be
// kept is given back.
type waitRoom struct {
	t      *testing.T
	live   []*v1alpha1.Application
	policy generate.Policy
	notes  map[string]string
}

const aHold = "who=ada; why=incident 7; until=2026-08-01T13:00:00Z"

func newWaitRoom(t *testing.T, names ...string) *waitRoom {
	r := &waitRoom{t: t, policy: generate.Policy{Now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}, notes: map[string]string{}}
	r.decide(names...)
	return r
}

// decide evaluates a set with those elements, and answers with who is deleted and
// the plan that waits, if any.
func (r *waitRoom) decide(names ...string) (deleted []string, held *generate.Held) {
	r.t.Helper()
	set := setOf(r.t, withTemplate(listOf(names...), "{{name}}", "x"))
	set.UID, set.Annotations = "u", r.notes
	return r.carryOut(generate.Decide(set, generate.Generate(set, fleet()), r.live, r.policy))
}

// outage evaluates the set while a generator of it does not answer.
func (r *waitRoom) outage() {
	r.t.Helper()
	set := setOf(r.t, withTemplate("- git: {repoURL: 'https://nowhere', directories: [{path: '*'}]}", "{{path}}", "x"))
	set.UID, set.Annotations = "u", r.notes
	if deleted, _ := r.carryOut(generate.Decide(set, generate.Generate(set, fleet()), r.live, r.policy)); len(deleted) > 0 {
		r.t.Errorf("an outage deletes %v", deleted)
	}
}

func (r *waitRoom) carryOut(d generate.Decision) (deleted []string, held *generate.Held) {
	var live []*v1alpha1.Application
	for _, c := range d.Changes {
		if c.Verb == generate.Delete {
			deleted = append(deleted, c.Name)
			continue
		}
		app := *c.Application
		if app.UID == "" {
			app.UID = types.UID("uid-" + app.Name)
		}
		live = append(live, &app)
	}
	r.live, r.policy.Waiting, r.policy.Ticket, r.policy.Removed = live, d.Waiting, d.Ticket, d.Removed
	return deleted, d.Held
}

// annotate holds an Application, or lets it go with "".
func (r *waitRoom) annotate(name, hold string) {
	for i, app := range r.live {
		if app.Name == name {
			other := *app
			other.Annotations = nil
			if hold != "" {
				other.Annotations = map[string]string{generate.AnnotationHold: hold}
			}
			r.live[i] = &other
		}
	}
}

// byHand deletes an Application as a person does.
func (r *waitRoom) byHand(name string) {
	r.live = slices.DeleteFunc(r.live, func(app *v1alpha1.Application) bool { return app.Name == name })
}

// TestWhatWaitsStaysUntilApprovedOrWithdrawn: nothing that a person does to save
// an Application lets the others of its plan go.
func TestWhatWaitsStaysUntilApprovedOrWithdrawn(t *testing.T) {
	all := []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"}
	first := all[:4]
	for name, tc := range map[string]struct {
		reason string
		act    func(r *waitRoom)
		// elements, first where they are nil, and who is waited for then.
		elements []string
		held     []string
		say      string
		deleted  []string
	}{
		"one is held":            {"it counts as unwanted", func(r *waitRoom) { r.annotate("a5", aHold) }, nil, []string{"a6", "a7", "a8"}, "3 of 8 Applications would be deleted, and 1 more that are held, at most 3", nil},
		"and let go again":       {"it is of the plan that it was in", func(r *waitRoom) { r.annotate("a5", aHold); r.decide(first...); r.annotate("a5", "") }, nil, []string{"a5", "a6", "a7", "a8"}, "4 of 8", nil},
		"one is deleted by hand": {"the others were not meant", func(r *waitRoom) { r.byHand("a5") }, nil, []string{"a6", "a7", "a8"}, "3 of 7 Applications would be deleted, what is left of a plan that waits, at most 3", nil},
		"all but one":            {"nor was the last one", func(r *waitRoom) { r.byHand("a5"); r.byHand("a6"); r.byHand("a7") }, nil, []string{"a8"}, "1 of 5", nil},
		"one is wanted again":    {"which says nothing of the others", func(*waitRoom) {}, all[:5], []string{"a6", "a7", "a8"}, "3 of 8", nil},
		"the set grows":          {"and its share with it", func(*waitRoom) {}, append(slices.Clone(first), strings.Split("b1 b2 b3 b4 b5 b6 b7 b8 b9 c1 c2 c3 c4", " ")...), []string{"a5", "a6", "a7", "a8"}, "", nil},
		"an outage between":      {"during which nothing is known to be unwanted", func(r *waitRoom) { r.annotate("a5", aHold); r.outage(); r.byHand("a5") }, nil, []string{"a6", "a7", "a8"}, "", nil},
		"another one goes":       {"with those that wait, or not at all", func(r *waitRoom) { r.byHand("a5"); r.byHand("a6") }, all[:3], []string{"a4", "a7", "a8"}, "3 of 6", nil},
		"another budget":         {"is a person's word", func(r *waitRoom) { r.notes[generate.AnnotationBudget] = "4" }, nil, nil, "", []string{"a5", "a6", "a7", "a8"}},
		"a lower one":            {"lets nothing go", func(r *waitRoom) { r.byHand("a5"); r.notes[generate.AnnotationBudget] = "2" }, nil, []string{"a6", "a7", "a8"}, "at most 2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWaitRoom(t, all...)
			if deleted, held := r.decide(first...); held == nil || len(deleted) > 0 || len(held.Names) != 4 {
				t.Fatalf("four of eight wait: %v %+v", deleted, held)
			}
			tc.act(r)
			if tc.elements == nil {
				tc.elements = first
			}
			for range 3 { // and it stays so
				deleted, held := r.decide(tc.elements...)
				var names []string
				say := ""
				if held != nil {
					names, say = held.Names, held.Reason()
				}
				if !slices.Equal(deleted, tc.deleted) || !slices.Equal(names, tc.held) || !strings.Contains(say, tc.say) {
					t.Fatalf("%s: deleted %v, want %v; %v waits, want %v: %q, want %q", tc.reason, deleted, tc.deleted, names, tc.held, say, tc.say)
				}
				tc.deleted = nil
			}
		})
	}
}

// TestAHeldOneIsNotOfAnApproval: what a person held while the rest of its plan was
// approved waits for an approval of its own, also when the hold ends by itself.
func TestAHeldOneIsNotOfAnApproval(t *testing.T) {
	r := newWaitRoom(t, "a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8")
	r.decide("a1", "a2", "a3", "a4")
	r.annotate("a5", aHold)
	_, held := r.decide("a1", "a2", "a3", "a4")
	r.notes[generate.AnnotationApprove] = held.Digest
	deleted, held := r.decide("a1", "a2", "a3", "a4")
	if diff := cmp.Diff([]string{"a6", "a7", "a8"}, deleted); diff != "" || held != nil {
		t.Fatalf("what was approved goes: %s", diff)
	}
	r.policy.Now = r.policy.Now.Add(2 * time.Hour)
	deleted, held = r.decide("a1", "a2", "a3", "a4")
	if len(deleted) > 0 || held == nil || !slices.Equal(held.Names, []string{"a5"}) {
		t.Fatalf("a5 was not approved: %v %+v", deleted, held)
	}
	r.notes[generate.AnnotationApprove] = held.Digest
	if deleted, _ = r.decide("a1", "a2", "a3", "a4"); !slices.Equal(deleted, []string{"a5"}) {
		t.Errorf("and goes once it is: %v", deleted)
	}
	if r.policy.Waiting != "" {
		r.decide("a1", "a2", "a3", "a4")
	}
	if r.policy.Waiting != "" {
		t.Errorf("nothing is remembered of what is gone: %s", r.policy.Waiting)
	}
	if deleted, held = r.decide("a1"); len(deleted) != 3 || held != nil {
		t.Errorf("and the budget is as it was: %v %+v", deleted, held)
	}
}

// TestWithdrawnRemovals: what is wanted again is forgotten, so that it can be
// removed later like any other.
func TestWithdrawnRemovals(t *testing.T) {
	all := []string{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"}
	r := newWaitRoom(t, all...)
	r.decide(all[:4]...)
	r.decide(all...)
	if deleted, held := r.decide(all[:6]...); len(deleted) != 2 || held != nil {
		t.Errorf("two of eight go without asking: %v %+v", deleted, held)
	}
}

// TestAnEmptySetWaitsWhateverIsHeld: the last ones of a set wait, however few a
// person leaves of them.
func TestAnEmptySetWaitsWhateverIsHeld(t *testing.T) {
	r := newWaitRoom(t, "a1", "a2")
	r.annotate("a1", aHold)
	for _, act := range []func(){func() {}, func() { r.annotate("a1", "") }, func() { r.byHand("a2") }} {
		act()
		if deleted, held := r.decide(); len(deleted) > 0 || held == nil || !held.Empties {
			t.Fatalf("a set that falls to zero waits: %v %+v", deleted, held)
		}
	}
	if deleted, held := r.decide("b"); len(deleted) > 0 || held == nil {
		t.Errorf("what waited then waits on, though the set is not empty any more: %v %+v", deleted, held)
	}
}
