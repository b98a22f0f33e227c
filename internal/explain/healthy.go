package explain

import (
	"cmp"
	"slices"

	"github.com/rutterhq/rutter"
)

// mostAiling bounds the objects that are listed for an Application's health.
const mostAiling = 20

// Ailment is an object that is not healthy.
type Ailment struct {
	Group     string        `json:"group,omitempty"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`
	Health    rutter.Health `json:"health"`
	// Because is what was found below it: its pods' messages, events.
	Because []string `json:"because,omitempty"`
}

// Ailing are the objects that are not healthy, the worst first; at most 20.
func Ailing(report rutter.Report) []rutter.ResourceReport {
	out := slices.DeleteFunc(slices.Clone(report.Resources), func(r rutter.ResourceReport) bool { return r.Hook || severity(r.Health.Status) == 0 })
	slices.SortStableFunc(out, func(a, b rutter.ResourceReport) int {
		return cmp.Or(cmp.Compare(severity(b.Health.Status), severity(a.Health.Status)), a.Compare(b.Ref))
	})
	return out[:min(len(out), mostAiling)]
}

// severity is how much a state asks for somebody; 0 when it does not.
func severity(s rutter.HealthState) int {
	return 1 + slices.Index([]rutter.HealthState{rutter.Suspended, rutter.Progressing, rutter.Missing, rutter.HealthUnknown, rutter.Degraded}, s)
}

func notHealthy(s Situation) []Ailment {
	out := []Ailment{}
	for _, r := range Ailing(s.Report) {
		out = append(out, Ailment{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Health: r.Health, Because: s.Causes[r.Ref]})
	}
	return out
}
