package argo

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// TestMemoryIsKept: what must not be forgotten is read again after a restart, and
// what is shown of a held plan stays while it is not known whether it still waits.
func TestMemoryIsKept(t *testing.T) {
	r := newWriter(t)
	set, _ := r.declared(t, "fleet", true)
	evaluation := func(o outcome) memory {
		t.Helper()
		before, err := r.recall(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.keep(t.Context(), set, before, &o); err != nil {
			t.Fatal(err)
		}
		r.memories.drop(client.ObjectKeyFromObject(set)) // as by a restart
		after, err := r.recall(t.Context(), set)
		if err != nil {
			t.Fatal(err)
		}
		return after
	}
	held := &generate.Held{Digest: "0123456789abcdef", Names: []string{"a", "b"}}
	if m := evaluation(outcome{}); m.stored {
		t.Error("nothing is kept of nothing")
	}
	m := evaluation(outcome{decision: generate.Decision{Held: held, Waiting: "w", Removed: "1:AA"}})
	if m.held != held.Digest || m.waiting != "w" || m.removed != "1:AA" || m.ticket != "" {
		t.Errorf("%+v", m)
	}
	m = evaluation(outcome{unsure: true, decision: generate.Decision{Waiting: "w", Removed: "2:AA"}})
	shown, err := generate.DecodeHeld(m.shown)
	if err != nil || shown == nil || len(shown.Names) != 2 || m.held != held.Digest || m.removed != "2:AA" {
		t.Errorf("what waits is not known for a moment, and forgotten: %+v %+v %v", m, shown, err)
	}
	if m = evaluation(outcome{decision: generate.Decision{Ticket: "t"}}); m.held != "" || len(m.shown) != 0 || m.ticket != "t" || m.removed != "" {
		t.Errorf("approved, it does not wait: %+v", m)
	}
	evaluation(outcome{})
	var stored corev1.ConfigMap
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(memoryOf(set)), &stored); err != nil || len(stored.Data) != 0 {
		t.Errorf("what is over is kept: %v %v", stored.Data, err)
	}
}

// TestWhatIsShownOfHeldStays: after a restart, and during an outage, the condition
// is not taken back before it is known that nothing waits.
func TestWhatIsShownOfHeldStays(t *testing.T) {
	s := &applicationSets{Controllers: &Controllers{opts: Options{Now: time.Now}}}
	set := &v1alpha1.ApplicationSet{}
	set.Name, set.Namespace = "fleet", "argocd"
	complete := generate.Result{Completeness: generate.Complete}
	held := &generate.Held{Digest: "0123456789abcdef", Names: []string{"a"}, Of: 1, Empties: true}
	for i, step := range []struct {
		o    outcome
		held string
		// why is the reason of ResourcesUpToDate.
		why string
	}{
		{outcome{result: complete, decision: generate.Decision{Held: held}}, held.Digest, v1alpha1.ApplicationSetReasonHeldOverBudget},
		{outcome{result: complete, unsure: true}, held.Digest, v1alpha1.ApplicationSetReasonHeldOverBudget},
		{outcome{result: complete}, "", v1alpha1.ApplicationSetReasonUpToDate},
	} {
		s.conditions(set, &step.o)
		why := ""
		for _, c := range set.Status.Conditions {
			if c.Type == v1alpha1.ApplicationSetConditionResourcesUpToDate {
				why = c.Reason
			}
		}
		if got := generate.HeldDigest(set); got != step.held || why != step.why {
			t.Errorf("step %d: %q waits, %s; want %q, %s", i, got, why, step.held, step.why)
		}
	}
}
