package health

import (
	"fmt"
	"slices"
	"strings"

	rutter "github.com/rutterhq/rutter"
)

// maxCauses is how many objects a message names.
const maxCauses = 3

// Item is one object of a unit.
type Item struct {
	Ref    rutter.Ref
	Health rutter.Health
	// Hook says that the object is a hook, which never counts.
	Hook bool
	// Ignore says that the object asks not to be counted.
	Ignore bool
	// Exists is false when the object isn't live.
	Exists bool
}

// rank orders the states from best to worst. No health is no worse than Healthy.
func rank(s rutter.HealthState) int {
	switch s {
	case "":
		return -1
	case rutter.Healthy:
		return 0
	case rutter.Suspended:
		return 1
	case rutter.Progressing:
		return 2
	case rutter.Missing:
		return 3
	case rutter.Degraded:
		return 4
	}
	return 5
}

// Worse reports whether a is worse than b.
func Worse(a, b rutter.HealthState) bool { return rank(a) > rank(b) }

// Aggregate returns the health of a unit: the worst of its objects. A missing
// object counts for nothing, because its absence is a matter of sync, unless
// none at all is live. A child application that doesn't know its own health makes its
// parent Unknown: the reference (4.4) leaves it out, and shows the parent green.
func Aggregate(items []Item) rutter.Health {
	worst := rutter.Healthy
	var objects, live int
	var causes []rutter.Ref
	for _, it := range items {
		if it.Hook {
			continue
		}
		objects++
		if !it.Exists {
			continue
		}
		live++
		state := it.Health.Status
		if it.Ignore || !counts(state) {
			continue
		}
		if Worse(state, worst) {
			worst, causes = state, causes[:0]
		}
		if state == worst {
			causes = append(causes, it.Ref)
		}
	}
	if objects > 0 && live == 0 && Worse(rutter.Missing, worst) {
		return rutter.Health{Status: rutter.Missing, Message: fmt.Sprintf("None of %d objects is live", objects)}
	}
	if worst == rutter.Healthy {
		return rutter.Health{Status: worst}
	}
	return rutter.Health{Status: worst, Message: "Caused by " + names(causes)}
}

func counts(s rutter.HealthState) bool { return s != "" && s != rutter.Healthy }

// names lists the causes in a stable order, so that a message doesn't change
// while nothing does.
func names(refs []rutter.Ref) string {
	slices.SortFunc(refs, rutter.Ref.Compare)
	shown := refs[:min(len(refs), maxCauses)]
	parts := make([]string, 0, len(shown))
	for _, r := range shown {
		parts = append(parts, name(r))
	}
	s := strings.Join(parts, ", ")
	if more := len(refs) - len(shown); more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// name writes group/Kind:namespace/name without empty parts.
func name(r rutter.Ref) string {
	kind, object := r.Kind, r.Name
	if r.Group != "" {
		kind = r.Group + "/" + kind
	}
	if r.Namespace != "" {
		object = r.Namespace + "/" + object
	}
	return kind + ":" + object
}
