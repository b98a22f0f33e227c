package cli

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// drifted was synced an hour before noon, and is not in sync any more.
func drifted(name string, edit func(a *v1alpha1.Application)) v1alpha1.Application {
	at := metav1.NewTime(time.Date(2026, 8, 1, 11, 0, 0, 0, time.UTC))
	src := &v1alpha1.ApplicationSource{RepoURL: "https://git/x", Path: "app"}
	a := v1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: name}}
	a.Spec.Source, a.Spec.Destination.Name = src, "alpha"
	a.Status.Sync = v1alpha1.SyncStatus{Status: "OutOfSync", Revision: "r1"}
	a.Status.History = []v1alpha1.RevisionHistory{{Revision: "r0"}, {Revision: "r1", DeployedAt: at, Source: src.DeepCopy()}}
	a.Status.Resources = []v1alpha1.ResourceStatus{
		{Kind: "ConfigMap", Name: "c", Status: "OutOfSync"}, {Kind: "ConfigMap", Name: "same", Status: "Synced"},
		{Kind: "Secret", Name: "gone", Status: "OutOfSync", Health: &v1alpha1.HealthStatus{Status: "Missing"}},
		{Kind: "Service", Name: "old", Status: "OutOfSync", RequiresPruning: true}, {Kind: "Job", Name: "hook", Hook: true},
	}
	if edit != nil {
		edit(&a)
	}
	return a
}

func operated(phase string, minutes int, sync v1alpha1.SyncOperation) func(*v1alpha1.Application) {
	return func(a *v1alpha1.Application) {
		end := metav1.NewTime(time.Date(2026, 8, 1, 11, minutes, 0, 0, time.UTC))
		a.Status.OperationState = &v1alpha1.OperationState{Phase: phase, FinishedAt: &end, Operation: v1alpha1.Operation{Sync: &sync}}
	}
}

func TestDrift(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	heal := &v1alpha1.SyncPolicy{Automated: &v1alpha1.SyncPolicyAutomated{SelfHeal: true}}
	rows := driftOf([]v1alpha1.Application{
		drifted("healed-since", operated("Succeeded", 30, v1alpha1.SyncOperation{})),
		drifted("plain", nil),
		drifted("failed-since", operated("Failed", 40, v1alpha1.SyncOperation{})),
		drifted("a-part-since", operated("Succeeded", 40, v1alpha1.SyncOperation{Resources: []v1alpha1.SyncOperationResource{{Kind: "ConfigMap", Name: "c"}}})),
		drifted("rehearsed-since", operated("Succeeded", 40, v1alpha1.SyncOperation{DryRun: true})),
		drifted("heals", func(a *v1alpha1.Application) { a.Spec.SyncPolicy = heal }),
		drifted("held", func(a *v1alpha1.Application) {
			a.Spec.SyncPolicy = heal
			a.Annotations = map[string]string{generate.AnnotationHold: "who=ada; why=x; until=2026-08-01T14:00:00Z"}
		}),
		drifted("in-sync", func(a *v1alpha1.Application) { a.Status.Sync.Status = "Synced" }),
		drifted("unknown", func(a *v1alpha1.Application) { a.Status.Sync.Status = "Unknown" }),
		drifted("a-new-revision-waits", func(a *v1alpha1.Application) { a.Status.Sync.Revision = "r2" }),
		drifted("another-path-waits", func(a *v1alpha1.Application) { a.Spec.Source.Path = "other" }),
		drifted("never-synced", func(a *v1alpha1.Application) { a.Status.History = nil }),
	}, now)
	sortDrift(rows)
	var got []string
	for _, r := range rows {
		got = append(got, fmt.Sprintf("%s %dm %t", r.Application, r.MaxAgeSeconds/60, r.Heals))
	}
	want := []string{"a-part-since 60m false", "failed-since 60m false", "heals 60m true", "held 60m false", "plain 60m false", "rehearsed-since 60m false", "healed-since 30m false"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	objects := []DriftObject{{Kind: "ConfigMap", Name: "c", What: "differs"}, {Kind: "Secret", Name: "gone", What: "missing"}, {Kind: "Service", Name: "old", What: "extra"}}
	if d := cmp.Diff(objects, rows[0].Objects); d != "" {
		t.Error(d)
	}
}

func TestDriftTable(t *testing.T) {
	app := drifted("many", func(a *v1alpha1.Application) {
		for i := range 150 {
			a.Status.Resources = append(a.Status.Resources, v1alpha1.ResourceStatus{Kind: "ConfigMap", Name: fmt.Sprint(i), Status: "OutOfSync"})
		}
	})
	cut := drifted("cut", func(a *v1alpha1.Application) { a.Status.Resources = nil })
	rows := driftTable(driftOf([]v1alpha1.Application{app, cut}, time.Date(2026, 8, 1, 14, 0, 0, 0, time.UTC))).rows
	if len(rows) != 102 || rows[0][0] != "<3h" || rows[100][3] != "and 53 more" || rows[101][1] != "cut" {
		t.Errorf("%d rows: %q … %q", len(rows), rows[0], rows[len(rows)-2:])
	}
}

// TestDriftSince: what the controller has recorded is the age, and who contests.
func TestDriftSince(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(-minutes) * time.Minute)) }
	until := at(-5)
	app := drifted("fought", func(a *v1alpha1.Application) {
		a.Status.Resources[0].Drift = &v1alpha1.ResourceDrift{Since: at(10), Fields: []v1alpha1.FieldDrift{
			{Path: ".spec.replicas", Since: at(10), Returned: 6, Manager: "rival", ContestedUntil: &until}, {Path: ".data.a", Since: at(2)},
		}}
	})
	rows := driftOf([]v1alpha1.Application{drifted("bound", nil), app}, now)
	sortDrift(rows)
	if len(rows) != 2 || rows[0].Application != "bound" || rows[1].AgeSeconds != 600 || rows[1].Since == nil {
		t.Fatalf("%+v", rows)
	}
	since := now.Add(-10 * time.Minute)
	want := DriftObject{Kind: "ConfigMap", Name: "c", What: "differs", Since: &since, Fields: []string{".spec.replicas", ".data.a"},
		Contested: []string{".spec.replicas"}, Rivals: []string{"rival"}}
	if d := cmp.Diff(want, rows[1].Objects[0]); d != "" {
		t.Error(d)
	}
	if table := driftTable(rows[1:]).rows; table[0][0] != "10m" || table[0][4] != "differs, contested by rival" {
		t.Errorf("%q", table[0])
	}
}
