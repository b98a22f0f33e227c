package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// object is a live object taken apart once. A part that is missing or has
// another type reads as empty: a half-written status is no reason to fail.
type object struct {
	group, version, kind string
	root                 map[string]any
	meta, spec, status   map[string]any
}

func newObject(u *unstructured.Unstructured) object {
	o := object{
		root: u.Object, meta: dict(u.Object, "metadata"), spec: dict(u.Object, "spec"), status: dict(u.Object, "status"),
		kind: text(u.Object, "kind"),
	}
	o.version = text(u.Object, "apiVersion")
	if group, version, ok := strings.Cut(o.version, "/"); ok {
		o.group, o.version = group, version
	}
	return o
}

func dict(m map[string]any, field string) map[string]any {
	v, _ := m[field].(map[string]any)
	return v
}

func list(m map[string]any, field string) []any {
	v, _ := m[field].([]any)
	return v
}

func text(m map[string]any, field string) string {
	v, _ := m[field].(string)
	return v
}

func truth(m map[string]any, field string) bool {
	v, _ := m[field].(bool)
	return v
}

// number reads an integer in either form that decoders leave it in.
func number(m map[string]any, field string) (n int64, ok bool) {
	switch v := m[field].(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	}
	return 0, false
}

// count is number with absent as 0, as the API leaves zero counts out.
func count(m map[string]any, field string) int64 {
	n, _ := number(m, field)
	return n
}

// replicas is spec.replicas, which the API defaults to one.
func (o object) replicas() int64 {
	if n, ok := number(o.spec, "replicas"); ok {
		return n
	}
	return 1
}

func (o object) annotation(name string) string { return text(dict(o.meta, "annotations"), name) }

func (o object) finalizers() []string {
	var out []string
	for _, f := range list(o.meta, "finalizers") {
		if s, ok := f.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// waitingFor names the finalizers that hold a deletion up.
func (o object) waitingFor() string {
	if f := o.finalizers(); len(f) > 0 {
		return ", held by " + strings.Join(f, ", ")
	}
	return ""
}

// behind reports whether the controller has not yet seen the newest spec.
func (o object) behind() (rutter.Health, bool) {
	generation, observed := count(o.meta, "generation"), count(o.status, "observedGeneration")
	if generation <= observed {
		return rutter.Health{}, false
	}
	return because(notObserved, progressing("Waiting for the controller to observe the newest spec: generation %d, observed %d",
		generation, observed)), true
}

// The reasons that are not those of a condition.
const (
	notObserved     = "GenerationNotObserved"
	pendingDeletion = "PendingDeletion"
)

// condition is one entry of status.conditions.
type condition struct {
	kind, status, reason, message string
	observed                      int64
	hasObserved                   bool
}

func (o object) conditions() []condition { return conditionsOf(list(o.status, "conditions")) }

func conditionsOf(entries []any) []condition {
	out := make([]condition, 0, len(entries))
	for _, e := range entries {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		c := condition{
			kind: text(m, "type"), status: text(m, "status"), reason: text(m, "reason"), message: text(m, "message"),
		}
		c.observed, c.hasObserved = number(m, "observedGeneration")
		out = append(out, c)
	}
	return out
}

// find returns the condition of a type.
func find(conditions []condition, kind string) (condition, bool) {
	for _, c := range conditions {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{}, false
}

// words says what a condition says, with its reason.
func (c condition) words() string {
	switch {
	case c.reason != "" && c.message != "":
		return c.reason + ": " + c.message
	case c.message != "":
		return c.message
	case c.reason != "":
		return c.kind + " is " + c.status + ": " + c.reason
	}
	return c.kind + " is " + c.status
}

// from is a state that a condition says, with its reason.
func from(state rutter.HealthState, c condition) rutter.Health {
	return rutter.Health{Status: state, Message: c.words(), Reason: c.reason}
}

// because gives a health a reason, in a word that can be searched for.
func because(reason string, h rutter.Health) rutter.Health {
	h.Reason = reason
	return h
}

func healthy(format string, args ...any) rutter.Health {
	return rutter.Health{Status: rutter.Healthy, Message: say(format, args)}
}

func progressing(format string, args ...any) rutter.Health {
	return rutter.Health{Status: rutter.Progressing, Message: say(format, args)}
}

func degraded(format string, args ...any) rutter.Health {
	return rutter.Health{Status: rutter.Degraded, Message: say(format, args)}
}

func suspended(format string, args ...any) rutter.Health {
	return rutter.Health{Status: rutter.Suspended, Message: say(format, args)}
}

func unknown(format string, args ...any) rutter.Health {
	return rutter.Health{Status: rutter.HealthUnknown, Message: say(format, args)}
}

// say formats only what needs it: this runs for every event.
func say(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}
