package generate

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// AnnotationHold on an Application is a person's word that its automated sync
// is to be left as they set it, until a time:
// "who=…; why=…; until=2026-08-01T12:00:00Z".
const AnnotationHold = "rutter.dev/hold"

// ApplicationHold is such a word.
type ApplicationHold struct { //nolint:recvcheck // decoding needs a pointer, reading does not
	// Application is the name of the Application.
	Application string
	Who, Why    string
	// Until is when the hold ends by itself; it is zero only when it cannot be read.
	Until time.Time
}

// ParseHold reads the annotation.
func ParseHold(text string) (ApplicationHold, error) {
	var h ApplicationHold
	for part := range strings.SplitSeq(text, ";") {
		key, value, ok := strings.Cut(part, "=")
		value = strings.TrimSpace(value)
		if !ok {
			if strings.TrimSpace(part) == "" {
				continue
			}
			return h, rutter.Errorf(rutter.CodeInvalid, "%q is not key=value; write who=…; why=…; until=2026-08-01T12:00:00Z", strings.TrimSpace(part))
		}
		switch strings.TrimSpace(key) {
		case "who":
			h.Who = value
		case "why":
			h.Why = value
		case "until":
			until, err := time.Parse(time.RFC3339, value)
			if err != nil {
				return h, rutter.Errorf(rutter.CodeInvalid, "until=%s is not a time such as 2026-08-01T12:00:00Z", value)
			}
			h.Until = until
		default:
			return h, rutter.Errorf(rutter.CodeInvalid, "%q is not known; write who, why and until", strings.TrimSpace(key))
		}
	}
	if h.Until.IsZero() {
		return h, rutter.Errorf(rutter.CodeInvalid, "has no until: a hold ends by itself; write until=2026-08-01T12:00:00Z")
	}
	return h, nil
}

// String is how the annotation is written.
func (h ApplicationHold) String() string {
	clean := strings.NewReplacer(";", ",", "\n", " ").Replace
	return "who=" + clean(h.Who) + "; why=" + clean(h.Why) + "; until=" + h.Until.UTC().Format(time.RFC3339)
}

// reason says that the Application is left alone.
func (h *ApplicationHold) reason() string {
	until := "somebody takes the hold off"
	if !h.Until.IsZero() {
		until = h.Until.UTC().Format(time.RFC3339)
	}
	return cmp.Or(h.Who, "somebody") + " holds it until " + until
}

// HoldOf is the hold on an Application at a time; nil when there is none, or
// when it has ended. One that cannot be read is in force, with an error: not
// to heed a person in an incident would be worse than to heed them too long.
func HoldOf(app *v1alpha1.Application, now time.Time) (*ApplicationHold, error) {
	text, ok := app.Annotations[AnnotationHold]
	if !ok {
		return nil, nil
	}
	h, err := ParseHold(text)
	h.Application = app.Name
	if err != nil {
		return &h, rutter.Errorf(rutter.CodeInvalid, "Application %s: metadata.annotations[%s]: %w", app.Name, AnnotationHold, err)
	}
	if !now.IsZero() && !now.Before(h.Until) {
		return nil, nil
	}
	return &h, nil
}

// keepHeld leaves the automated sync of a held Application as it is, and the
// hold with it.
func keepHeld(merged, live *v1alpha1.Application) {
	var automated *v1alpha1.SyncPolicyAutomated
	if live.Spec.SyncPolicy != nil {
		automated = live.Spec.SyncPolicy.Automated
	}
	policy := v1alpha1.SyncPolicy{}
	if merged.Spec.SyncPolicy != nil {
		policy = *merged.Spec.SyncPolicy
	}
	policy.Automated = automated
	merged.Spec.SyncPolicy = &policy
	annotations := make(map[string]string, len(merged.Annotations)+1)
	maps.Copy(annotations, merged.Annotations)
	annotations[AnnotationHold] = live.Annotations[AnnotationHold]
	merged.Annotations = annotations
}

// passHolds gives the hold on an Application that no element generates any more to
// the one that is made with the same objects: another name must not undo what a
// person decided in an incident.
func (rc *reconciliation) passHolds() {
	if len(rc.paused) == 0 {
		return
	}
	rough, made := map[string]bool{}, map[string]int{}
	for _, app := range rc.paused {
		rough[rc.members.roughKey(app)] = true
	}
	for i, c := range rc.decision.Changes {
		if c.Verb != Create || !rough[rc.members.roughKey(c.Application)] {
			continue
		}
		if key := rc.members.contentKey(c.Application); made[key] == 0 {
			made[key] = i + 1
		}
	}
	for _, app := range rc.paused {
		i := made[rc.members.contentKey(app)] - 1
		if i < 0 {
			continue
		}
		held := *rc.decision.Changes[i].Application
		held.Annotations = maps.Clone(held.Annotations)
		if held.Annotations == nil {
			held.Annotations = map[string]string{}
		}
		held.Annotations[AnnotationHold] = app.Annotations[AnnotationHold]
		rc.decision.Changes[i].Application = &held
	}
}
