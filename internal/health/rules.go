package health

import (
	"slices"
	"strings"

	rutter "github.com/rutterhq/rutter"
)

// The rules of custom resources are made of a few shapes: a condition that sums
// up, a phase, counted replicas. table*.go says which kind has which.

// ready is the shape of kinds that sum up in one condition: True is healthy,
// False is degraded unless its reason says that it is only not done yet.
func ready(kind string, underway ...string) check {
	return summedUp(kind, func(c condition) bool { return slices.Contains(underway, c.reason) })
}

// becoming is ready for kinds whose condition is False for as long as they are
// being made; a failure has a condition of its own (failing).
func becoming(kind string) check {
	return summedUp(kind, func(condition) bool { return true })
}

func summedUp(kind string, underway func(c condition) bool) check {
	return func(o object) rutter.Health {
		conditions := o.conditions()
		c, ok := find(conditions, kind)
		if h, stale := unobserved(o, c); stale {
			return h
		}
		if h, said := reconcilingOrStalled(conditions); said {
			return h
		}
		switch {
		case !ok:
			return progressing("Waiting for the condition %s", kind)
		case c.status == "True":
			return from(rutter.Healthy, c)
		case c.status == "False" && !underway(c):
			return from(rutter.Degraded, c)
		}
		return from(rutter.Progressing, c)
	}
}

// all is for kinds of which every condition must be True; those in underway may
// be False while the object is being made.
func all(underway ...string) check {
	return func(o object) rutter.Health {
		conditions := o.conditions()
		if h, stale := unobserved(o, condition{}); stale {
			return h
		}
		if len(conditions) == 0 {
			return progressing("Waiting for the first conditions")
		}
		for _, c := range conditions {
			if c.status == "False" && !slices.Contains(underway, c.reason) {
				return degraded("%s: %s", c.kind, c.words())
			}
		}
		for _, c := range conditions {
			if c.status != "True" {
				return progressing("%s: %s", c.kind, c.words())
			}
		}
		return healthy("All of %d conditions are True", len(conditions))
	}
}

// phases says what the values of a text in the status mean, each list by itself
// separated by spaces, in whatever letters; "" stands for none.
type phases struct {
	path                                      string
	healthy, progressing, degraded, suspended string
}

// phase is the shape of kinds that sum up in a text, by default status.phase.
// What no list has is progressing: newer versions have newer words.
func phase(p phases) check {
	path := strings.Split(p.path, ".")
	if p.path == "" {
		path = []string{"phase"}
	}
	lists := []struct {
		state rutter.HealthState
		words []string
	}{
		{rutter.Healthy, words(p.healthy)}, {rutter.Degraded, words(p.degraded)}, {rutter.Suspended, words(p.suspended)}, {rutter.Progressing, words(p.progressing)},
	}
	return func(o object) rutter.Health {
		if h, stale := unobserved(o, condition{}); stale {
			return h
		}
		in := o.status
		for _, field := range path[:len(path)-1] {
			in = dict(in, field)
		}
		value := text(in, path[len(path)-1])
		message := "The " + path[len(path)-1] + " is " + value + suffix(firstText(in, "message", "reason", "error", "errorMessage", "statusMessage"))
		if value == "" {
			message = "Waiting for a " + path[len(path)-1]
		}
		for _, l := range lists {
			if slices.Contains(l.words, strings.ToLower(strings.ReplaceAll(value, " ", "-"))) {
				return rutter.Health{Status: l.state, Message: message}
			}
		}
		return progressing("%s", message)
	}
}

func words(text string) []string { return strings.Fields(strings.ToLower(text)) }

func firstText(m map[string]any, fields ...string) string {
	for _, f := range fields {
		if s := text(m, f); s != "" {
			return s
		}
	}
	return ""
}

// paused suspends what has a truth at a path of its spec.
func paused(path string, otherwise check) check {
	fields := strings.Split(path, ".")
	return func(o object) rutter.Health {
		in := o.spec
		for _, f := range fields[:len(fields)-1] {
			in = dict(in, f)
		}
		if truth(in, fields[len(fields)-1]) {
			return suspended("spec.%s is true", path)
		}
		return otherwise(o)
	}
}

// annotated suspends what has an annotation of some value; "" is any.
func annotated(name, value string, otherwise check) check {
	return func(o object) rutter.Health {
		if v := o.annotation(name); v != "" && (value == "" || v == value) {
			return suspended("the annotation %s is %q", name, v)
		}
		return otherwise(o)
	}
}

// failing is degraded by a condition that is True, and else what otherwise says.
func failing(kinds string, otherwise check) check {
	list := strings.Fields(kinds)
	return func(o object) rutter.Health {
		conditions := o.conditions()
		for _, k := range list {
			if c, ok := find(conditions, k); ok && c.status == "True" {
				return from(rutter.Degraded, c)
			}
		}
		return otherwise(o)
	}
}

// filled is healthy as soon as the status has a field, such as an address.
func filled(field string) check {
	return func(o object) rutter.Health {
		switch v := o.status[field].(type) {
		case nil:
		case string:
			if v != "" {
				return healthy("status.%s is %s", field, v)
			}
		default:
			return healthy("status.%s is set", field)
		}
		return progressing("Waiting for status.%s", field)
	}
}

// running counts replicas: those of want in the spec that are ready by the status.
func running(want, got string) check {
	return func(o object) rutter.Health {
		if h, ok := o.behind(); ok && o.status["observedGeneration"] != nil {
			return h
		}
		n, ok := number(o.spec, want)
		if !ok {
			n = 1
		}
		have := count(o.status, got)
		if have < n {
			return progressing("%d of %d replicas are ready", have, n)
		}
		return healthy("%d of %d replicas are ready", have, n)
	}
}

// quiet is for kinds that have nothing to say of themselves until something is
// wrong: without conditions they are healthy.
func quiet(otherwise check) check {
	return func(o object) rutter.Health {
		if len(o.conditions()) == 0 {
			return healthy("")
		}
		return otherwise(o)
	}
}
