package generate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

const cascade = "resources-finalizer.argocd.argoproj.io"

// keptSet is a set over time that preserves the objects of its Applications, or
// does so no more.
type keptSet struct {
	*waitRoom

	freeing bool
}

// evaluate decides, and carries out what is written.
func (k *keptSet) evaluate(preserves bool, generators string, change ...func(*v1alpha1.ApplicationSet)) {
	k.t.Helper()
	set := setOf(k.t, withTemplate(generators, "{{name}}", "{{path}}"))
	set.UID, set.Annotations = "u", k.notes
	set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{PreserveResourcesOnDeletion: preserves}
	for _, c := range change {
		c(set)
	}
	d := generate.Decide(set, generate.Generate(set, fleet()), k.live, k.policy)
	k.freeing = d.Freeing
	upkeep := map[string]*v1alpha1.Application{}
	for _, c := range d.Upkeep {
		upkeep[c.Name] = c.Application
		if at := slices.IndexFunc(k.live, func(app *v1alpha1.Application) bool { return app == c.Live }); at < 0 {
			k.t.Errorf("the upkeep of %s does not say what it was decided about", c.Name)
		}
	}
	k.carryOut(d)
	for i, app := range k.live {
		if up := upkeep[app.Name]; up != nil {
			k.live[i] = up
		}
	}
}

// finalizers are those of each Application, and what is noted of those taken off.
func (k *keptSet) finalizers() map[string]string {
	out := map[string]string{}
	for _, app := range k.live {
		out[app.Name] = strings.Join(app.Finalizers, ",")
		if freed, ok := app.Annotations[generate.AnnotationFreed]; ok {
			out[app.Name] += " freed of " + freed
		}
	}
	return out
}

func elementsOf(names ...string) string {
	var elements []string
	for _, n := range names {
		elements = append(elements, "{name: "+n+", path: x}")
	}
	return "- list: {elements: [" + strings.Join(elements, ", ") + "]}"
}

// TestPreservingFreesEveryApplication: no Application of a set that preserves
// objects would delete them, whether the set writes it or not, as long as it does.
func TestPreservingFreesEveryApplication(t *testing.T) {
	const freed = " freed of " + cascade
	all := []string{"a1", "a2", "a3", "a4", "a5", "a6"}
	missing := "- list: {elements: [{name: a1, path: x}, {name: a2}, {name: a3, path: x}, {name: a4, path: x}, {name: a5, path: x}, {name: a6, path: x}]}"
	down := elementsOf(all[:1]...) + "\n- git: {repoURL: 'https://nowhere', directories: [{path: '*'}]}"
	cases := map[string]struct {
		reason     string
		generators string
		change     func(k *keptSet, set *v1alpha1.ApplicationSet)
		want       map[string]string
		// freeing says that the first evaluation has to guard the set.
		freeing bool
		after   map[string]string
	}{
		"removals wait": {"what waits is freed too", elementsOf("a1", "a2"), nil,
			map[string]string{"a1": "", "a2": "", "a3": freed, "a4": freed, "a5": freed, "a6": freed}, true,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}},
		"an element has an error": {"its Application keeps its last state, without the finalizer", missing, nil,
			map[string]string{"a1": "", "a2": freed, "a3": "", "a4": "", "a5": "", "a6": ""}, true,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}},
		"a generator does not answer": {"nothing is known to be unwanted, and all are freed", down, nil,
			map[string]string{"a1": "", "a2": freed, "a3": freed, "a4": freed, "a5": freed, "a6": freed}, true,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}},
		"a person holds one": {"it is freed as well, and stays", elementsOf(all[1:]...), func(k *keptSet, _ *v1alpha1.ApplicationSet) { k.annotate("a1", aHold) },
			map[string]string{"a1": freed, "a2": "", "a3": "", "a4": "", "a5": "", "a6": ""}, true,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}},
		"a finalizer of another form": {"what is taken off comes back as it was", elementsOf("a1", "a2"), func(k *keptSet, _ *v1alpha1.ApplicationSet) {
			other := *k.live[5]
			other.Finalizers = []string{"mine.example.org/x", cascade + "/background"}
			k.live[5] = &other
		},
			map[string]string{"a1": "", "a2": "", "a3": freed, "a4": freed, "a5": freed, "a6": "mine.example.org/x freed of " + cascade + "/background"}, true,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": "mine.example.org/x," + cascade + "/background"}},
		"the policy deletes nothing": {"its Applications outlive it, as they are", elementsOf("a1", "a2"), func(_ *keptSet, set *v1alpha1.ApplicationSet) {
			only := v1alpha1.ApplicationsSyncPolicyCreateOnly
			set.Spec.SyncPolicy.ApplicationsSync = &only
		},
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}, false,
			map[string]string{"a1": cascade, "a2": cascade, "a3": cascade, "a4": cascade, "a5": cascade, "a6": cascade}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			k := &keptSet{waitRoom: newWaitRoom(t)}
			k.evaluate(false, elementsOf(all...))
			change := func(set *v1alpha1.ApplicationSet) {
				if tc.change != nil {
					tc.change(k, set)
				}
			}
			k.evaluate(true, tc.generators, change)
			if diff := cmp.Diff(tc.want, k.finalizers()); diff != "" || k.freeing != tc.freeing {
				t.Fatalf("%s: freeing %v, want %v\n%s", tc.reason, k.freeing, tc.freeing, diff)
			}
			tc.change = nil
			before := slices.Clone(k.live)
			if k.evaluate(true, tc.generators); k.freeing != (name == "the policy deletes nothing") {
				t.Errorf("the set is guarded longer than it has to be, or not at all: %v", k.freeing)
			}
			if name == "the policy deletes nothing" {
				return
			}
			if diff := cmp.Diff(before, k.live); diff != "" {
				t.Errorf("and it stays so:\n%s", diff)
			}
			// The finalizers come back when the set preserves no more, also on those
			// that it does not write.
			k.evaluate(false, tc.generators)
			if diff := cmp.Diff(tc.after, k.finalizers()); diff != "" || k.freeing {
				t.Errorf("withdrawn (guarded: %v):\n%s", k.freeing, diff)
			}
		})
	}
}

// TestPreservedRemovals: what goes from such a set goes without its objects, and a
// plan that leaves objects is another one than the plan that deletes them.
func TestPreservedRemovals(t *testing.T) {
	all := []string{"a1", "a2", "a3", "a4", "a5", "a6"}
	decide := func(r *waitRoom, preserves bool, names ...string) generate.Decision {
		set := setOf(t, withTemplate(listOf(names...), "{{name}}", "x"))
		set.UID, set.Annotations = "u", r.notes
		set.Spec.SyncPolicy = &v1alpha1.ApplicationSetSyncPolicy{PreserveResourcesOnDeletion: preserves}
		return generate.Decide(set, generate.Generate(set, fleet()), r.live, r.policy)
	}
	r := newWaitRoom(t, all...)
	orphan, deletes := decide(r, true, "a1").Held, decide(r, false, "a1").Held
	if orphan == nil || deletes == nil || orphan.Digest == deletes.Digest {
		t.Fatalf("one digest for both ends: %+v %+v", orphan, deletes)
	}
	if !strings.Contains(orphan.Reason(), "5 of 6 Applications would be deleted without their objects") || strings.Contains(deletes.Reason(), "without their") {
		t.Errorf("what becomes of the objects is not said: %s; %s", orphan.Reason(), deletes.Reason())
	}
	// Who approved that the objects stay has not approved that they go, also not
	// when the plan is half carried out.
	r.notes[generate.AnnotationApprove] = orphan.Digest
	if d := decide(r, false, "a1"); d.Held == nil || count(d.Changes, generate.Delete) > 0 {
		t.Errorf("another end is carried out: %v", verbs(d.Changes))
	}
	d := decide(r, true, "a1")
	if d.Held != nil || count(d.Changes, generate.Delete) != 5 || slices.ContainsFunc(d.Changes, func(c generate.Change) bool { return c.Verb == generate.Delete && !c.StripFinalizer }) {
		t.Fatalf("the approved plan leaves the objects: %v", verbs(d.Changes))
	}
	r.policy.Ticket = d.Ticket
	r.byHand("a2")
	r.byHand("a3")
	if d := decide(r, true, "a1"); d.Held != nil || count(d.Changes, generate.Delete) != 3 {
		t.Errorf("the rest of it waits: %v", verbs(d.Changes))
	}
	r.policy.Waiting = decide(newWaitRoom(t, all...), true, "a1").Waiting
	if d := decide(r, false, "a1"); d.Held == nil || count(d.Changes, generate.Delete) > 0 {
		t.Errorf("the rest is carried out with another end: %v", verbs(d.Changes))
	}
	// What is shown of it says so too.
	raw, err := orphan.Encode(1000)
	if err != nil {
		t.Fatal(err)
	}
	if shown, err := generate.DecodeHeld(raw); err != nil || !shown.Preserves || shown.Count != 5 {
		t.Errorf("%+v %v", shown, err)
	}
}
