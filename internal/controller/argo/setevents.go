package argo

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// eventSink records events about sets and Applications, of which those that are equal are
// counted and not repeated.
type eventSink struct{ recorder events.EventRecorder }

// eventBytes is as long as the note of an event may be.
const eventBytes = 1000

// tell records what an evaluation did, a few events for each, however many
// Applications there are.
func (s *applicationSets) tell(set *v1alpha1.ApplicationSet, before memory, o *outcome) {
	for _, kind := range []struct {
		reason, did string
		verbs       []generate.Verb
	}{
		{"ApplicationsCreated", "created", []generate.Verb{generate.Create}},
		{"ApplicationsUpdated", "updated", []generate.Verb{generate.Update}},
		{"ApplicationsDeleted", "deleted", []generate.Verb{generate.Delete, generate.Release}},
	} {
		var names []string
		for _, verb := range kind.verbs {
			for _, c := range o.written {
				if c.Verb == verb {
					names = append(names, c.Name)
				}
			}
		}
		if len(names) > 0 {
			s.events.note(set, corev1.EventTypeNormal, kind.reason, fmt.Sprintf("%s %d Applications: %s", kind.did, len(names), few(names, shownNames, ", ")))
		}
	}
	if h := o.decision.Held; h != nil && h.Digest != before.held {
		s.events.note(set, corev1.EventTypeWarning, v1alpha1.ApplicationSetReasonHeldOverBudget, h.Reason()+"; or: "+h.Approval(set))
	}
}

// note records one event.
func (e eventSink) note(about runtime.Object, kind, reason, text string) {
	if len(text) > eventBytes {
		text = strings.ToValidUTF8(text[:eventBytes-3], "") + "..."
	}
	e.recorder.Eventf(about, nil, kind, reason, "Reconcile", "%s", text)
}
