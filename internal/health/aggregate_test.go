package health_test

import (
	"slices"
	"testing"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/health"
)

func item(kind, name string, state rutter.HealthState) health.Item {
	group := ""
	switch kind {
	case "Deployment":
		group = "apps"
	case "Application":
		group = "argoproj.io"
	}
	return health.Item{
		Ref: rutter.Ref{Group: group, Kind: kind, Namespace: "ns", Name: name}, Health: rutter.Health{Status: state}, Exists: true,
	}
}

func TestAggregate(t *testing.T) {
	t.Parallel()
	missing := item("Deployment", "gone", rutter.Missing)
	missing.Exists = false
	hook := item("Pod", "hook", rutter.Degraded)
	hook.Hook = true
	ignored := item("Pod", "ignored", rutter.Degraded)
	ignored.Ignore = true
	tests := []struct {
		reason string
		items  []health.Item
		want   rutter.Health
	}{
		{"nothing at all", nil, rutter.Health{Status: rutter.Healthy}},
		{"no health counts for nothing", []health.Item{item("ConfigMap", "a", "")}, rutter.Health{Status: rutter.Healthy}},
		{"the worst counts", []health.Item{item("Service", "a", rutter.Healthy), item("Pod", "b", rutter.Progressing), item("Deployment", "c", rutter.Degraded)},
			rutter.Health{Status: rutter.Degraded, Message: "Caused by apps/Deployment:ns/c"}},
		{"unknown is worst", []health.Item{item("Pod", "b", rutter.HealthUnknown), item("Deployment", "c", rutter.Degraded)},
			rutter.Health{Status: rutter.HealthUnknown, Message: "Caused by Pod:ns/b"}},
		{"suspended", []health.Item{item("Pod", "a", rutter.Healthy), item("Deployment", "c", rutter.Suspended)},
			rutter.Health{Status: rutter.Suspended, Message: "Caused by apps/Deployment:ns/c"}},
		{"three causes are named, in order", []health.Item{item("Pod", "e", rutter.Progressing), item("Pod", "d", rutter.Progressing), item("Pod", "b", rutter.Progressing), item("Pod", "a", rutter.Progressing), item("Pod", "c", rutter.Progressing)},
			rutter.Health{Status: rutter.Progressing, Message: "Caused by Pod:ns/a, Pod:ns/b, Pod:ns/c and 2 more"}},
		{"a missing object counts for nothing", []health.Item{missing, item("Service", "a", rutter.Healthy)}, rutter.Health{Status: rutter.Healthy}},
		{"none is live", []health.Item{missing}, rutter.Health{Status: rutter.Missing, Message: "None of 1 objects is live"}},
		{"only a hook is live", []health.Item{missing, hook}, rutter.Health{Status: rutter.Missing, Message: "None of 1 objects is live"}},
		{"hooks don't count", []health.Item{hook}, rutter.Health{Status: rutter.Healthy}},
		{"ignored ones don't count, but are there", []health.Item{ignored, missing}, rutter.Health{Status: rutter.Healthy}},
		{"a child that is unknown", []health.Item{item("Application", "a", rutter.HealthUnknown)}, rutter.Health{Status: rutter.HealthUnknown, Message: "Caused by argoproj.io/Application:ns/a"}},
		{"a child on its way", []health.Item{item("Application", "a", rutter.Progressing)},
			rutter.Health{Status: rutter.Progressing, Message: "Caused by argoproj.io/Application:ns/a"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			if got := health.Aggregate(tt.items); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			items := slices.Clone(tt.items)
			slices.Reverse(items)
			if got := health.Aggregate(items); got != tt.want {
				t.Errorf("the order of the objects counts: %v", got)
			}
		})
	}
}

func TestWorse(t *testing.T) {
	t.Parallel()
	order := []rutter.HealthState{
		"", rutter.Healthy, rutter.Suspended, rutter.Progressing, rutter.Missing, rutter.Degraded, rutter.HealthUnknown,
	}
	for i, a := range order {
		for j, b := range order {
			if health.Worse(a, b) != (i > j) {
				t.Errorf("Worse(%q, %q) = %v", a, b, i <= j)
			}
		}
	}
}
