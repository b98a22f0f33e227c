package argo

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// TestSetMetrics: the figures of sets are those of their statuses, and those of
// sets that are gone go.
func TestSetMetrics(t *testing.T) {
	m := newSetMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m)
	shown := func() []string {
		t.Helper()
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				line := f.GetName()
				for _, l := range metric.GetLabel() {
					line += " " + l.GetName() + "=" + l.GetValue()
				}
				if metric.GetGauge() != nil {
					line += fmt.Sprint(" ", metric.GetGauge().GetValue())
				} else {
					line += fmt.Sprint(" ", metric.GetHistogram().GetSampleCount())
				}
				out = append(out, line)
			}
		}
		slices.Sort(out)
		return out
	}
	set := &v1alpha1.ApplicationSet{}
	set.Namespace, set.Name = "argocd", "fleet"
	set.Status.ResourcesCount = 40
	set.Status.Conditions = []v1alpha1.ApplicationSetCondition{{Type: v1alpha1.ApplicationSetConditionResourcesUpToDate, Reason: "HeldOverBudget"}}
	key := types.NamespacedName{Namespace: "argocd", Name: "fleet"}
	m.evaluated(key, time.Second)
	m.wait(key, &generate.Held{Names: []string{"a", "b"}})
	m.note(set)
	want := []string{
		"argocd_appset_info name=fleet namespace=argocd resource_update_status=HeldOverBudget 1",
		"argocd_appset_owned_applications name=fleet namespace=argocd 40",
		"argocd_appset_reconcile name=fleet namespace=argocd 1",
		"rutter_appset_held_deletions name=fleet namespace=argocd 2",
	}
	if diff := cmp.Diff(want, shown()); diff != "" {
		t.Error(diff)
	}
	m.wait(key, nil)
	if got := shown()[3]; got != "rutter_appset_held_deletions name=fleet namespace=argocd 0" {
		t.Errorf("nothing waits any more: %s", got)
	}
	m.drop(key)
	if got := shown(); len(got) != 0 {
		t.Errorf("a set that is gone is not shown: %q", got)
	}
}
