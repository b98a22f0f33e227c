package health

import (
	"reflect"

	rutter "github.com/rutterhq/rutter"
)

// application is the health that the application reports of itself, as long as
// the report is of its present spec and the application is at rest and equal
// to it: a parent must not take yesterday's green for today's.
func application(o object) rutter.Health {
	if why := staleApplication(o); why != "" {
		return progressing("%s", why)
	}
	reported := dict(o.status, "health")
	own := rutter.Health{Status: rutter.HealthState(text(reported, "status")), Message: text(reported, "message")}
	sync := text(dict(o.status, "sync"), "status")
	switch own.Status {
	case rutter.Degraded, rutter.HealthUnknown, rutter.Progressing:
		return own
	case rutter.Missing:
		return progressing("Nothing of the application is live yet") // a parent that counts nothing for it would be Healthy (B39)
	case rutter.Healthy, rutter.Suspended:
	case "":
		return progressing("The application has no health yet")
	default:
		return unknown("The application reports the health %q, which is none", own.Status)
	}
	if sync != string(rutter.Synced) {
		return progressing("The application is %s, its sync status is %q", own.Status, sync)
	}
	return own
}

// staleApplication says why the status may be about something else than the
// present spec, empty when it is not.
func staleApplication(o object) string {
	if len(o.status) == 0 {
		return "The application has no status yet"
	}
	if observed, ok := number(o.status, "observedGeneration"); ok && observed != count(o.meta, "generation") {
		return say("The controller has not observed the newest spec: generation %d, observed %d",
			[]any{count(o.meta, "generation"), observed})
	}
	if o.root["operation"] != nil {
		return "An operation is waiting to start"
	}
	if phase := text(dict(o.status, "operationState"), "phase"); phase == "Running" || phase == "Terminating" {
		return "An operation is " + phase + suffix(text(dict(o.status, "operationState"), "message"))
	}
	compared := dict(dict(o.status, "sync"), "comparedTo")
	if compared == nil {
		return ""
	}
	if !sameSources(o.spec, compared) ||
		!agree(dict(o.spec, "destination"), dict(compared, "destination"), "server", "name", "namespace") {
		return "The application was compared with another source or destination than its present one"
	}
	return ""
}

// sameSources reports whether the status is about the sources of the spec, in all that
// they say: other values of a chart are another source too.
func sameSources(spec, compared map[string]any) bool {
	if many := list(spec, "sources"); len(many) > 0 {
		return reflect.DeepEqual(said(many), said(list(compared, "sources")))
	}
	return reflect.DeepEqual(said(dict(spec, "source")), said(dict(compared, "source")))
}

// said is a value without what is empty, which statuses leave out.
func said(v any) any {
	switch x := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range x {
			if e = said(e); e != nil {
				out[k] = e
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		out := make([]any, 0, len(x))
		for _, e := range x {
			out = append(out, said(e))
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case string, bool, int64, float64:
		if x == "" || x == false || x == int64(0) || x == float64(0) {
			return nil
		}
	}
	return v
}

// agree reports whether the texts that a declares are the same in b; what a
// leaves out, the controller may have filled in.
func agree(a, b map[string]any, fields ...string) bool {
	for _, f := range fields {
		if want := text(a, f); want != "" && want != text(b, f) {
			return false
		}
	}
	return true
}

// applicationSet follows the conditions (reference 4.5).
func applicationSet(o object) rutter.Health {
	conditions := o.conditions()
	if len(conditions) == 0 {
		return progressing("The application set has no conditions yet")
	}
	if c, ok := find(conditions, "ErrorOccurred"); ok && c.status == "True" {
		return from(rutter.Degraded, c)
	}
	if c, ok := find(conditions, "RolloutProgressing"); ok && c.status == "True" {
		return from(rutter.Progressing, c)
	}
	if c, ok := find(conditions, "ResourcesUpToDate"); ok && c.status == "True" {
		return from(rutter.Healthy, c)
	}
	return unknown("The conditions of the application set don't say how it does")
}

func workflow(o object) rutter.Health {
	phase, message := text(o.status, "phase"), text(o.status, "message")
	switch phase {
	case "", "Pending", "Running":
		return progressing("The workflow is not finished%s", suffix(message))
	case "Succeeded":
		return healthy("The workflow has succeeded%s", suffix(message))
	case "Failed", "Error":
		return degraded("The workflow ended with %s%s", phase, suffix(message))
	}
	return unknown("The workflow is in the phase %q", phase)
}

// flux reads the conditions of Flux's kinds, all of which report Ready.
func flux(o object) rutter.Health {
	if truth(o.spec, "suspend") {
		return suspended("Reconciliation is suspended")
	}
	if text(o.spec, "type") == "oci" && o.kind == "HelmRepository" {
		return healthy("An OCI Helm repository has no state of its own")
	}
	conditions := o.conditions()
	ready, ok := find(conditions, "Ready")
	if !ok {
		return progressing("Waiting for the controller to observe the object")
	}
	if h, stale := unobserved(o, ready); stale {
		return h
	}
	if h, said := reconcilingOrStalled(conditions); said {
		return h
	}
	switch ready.status {
	case "True":
		return from(rutter.Healthy, ready)
	case "False":
		return from(rutter.Degraded, ready)
	}
	return from(rutter.Progressing, ready)
}
