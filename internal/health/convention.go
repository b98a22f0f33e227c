package health

import (
	rutter "github.com/rutterhq/rutter"
)

// conventional reports whether an object of a kind without a check of its own
// is judged by the conventions: custom resources are, and the built-in groups
// are not, whose conditions mean other things.
func conventional(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return false
	}
	return true
}

// byConvention assesses a custom resource by what kstatus expects of one:
// observedGeneration, Reconciling, Stalled, and one condition that sums up.
// A resource that has none of them has no health.
func byConvention(o object) rutter.Health {
	conditions := o.conditions()
	summary, summed := summing(conditions)
	if h, stale := unobserved(o, summary); stale {
		return h
	}
	if h, said := reconcilingOrStalled(conditions); said {
		return h
	}
	if !summed {
		return rutter.Health{}
	}
	if summary.status == "True" {
		return from(rutter.Healthy, summary)
	}
	return from(rutter.Progressing, summary)
}

// summing returns the condition that sums a resource up.
func summing(conditions []condition) (condition, bool) {
	for _, kind := range []string{"Ready", "Available", "Programmed", "Accepted"} {
		if c, ok := find(conditions, kind); ok {
			return c, true
		}
	}
	return condition{}, false
}

// unobserved reports whether the status, or the condition that sums it up, is
// of another generation than the present one.
func unobserved(o object, summary condition) (rutter.Health, bool) {
	generation := count(o.meta, "generation")
	observed, ok := number(o.status, "observedGeneration")
	if !ok || observed == generation {
		observed, ok = summary.observed, summary.hasObserved
	}
	if !ok || observed == generation {
		return rutter.Health{}, false
	}
	return because(notObserved, progressing("Waiting for the controller to observe the newest spec: generation %d, observed %d",
		generation, observed)), true
}

func reconcilingOrStalled(conditions []condition) (rutter.Health, bool) {
	if c, ok := find(conditions, "Reconciling"); ok && c.status == "True" {
		return from(rutter.Progressing, c), true
	}
	if c, ok := find(conditions, "Stalled"); ok && c.status == "True" {
		return from(rutter.Degraded, c), true
	}
	return rutter.Health{}, false
}
