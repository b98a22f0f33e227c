package argo_test

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

var update = flag.Bool("update", false, "write the golden files")

var t0 = time.Date(2026, 12, 1, 10, 0, 0, 123456789, time.UTC)

const commit, commit2 = "1111111111111111111111111111111111111111", "2222222222222222222222222222222222222222"

func after(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

var deployment = rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "web", Name: "web"}

// synced is the report of an application after its first automated sync.
func synced() rutter.Report {
	return rutter.Report{
		Revisions: []string{commit}, SourceTypes: []string{"Kustomize"}, Sync: rutter.Synced, Health: rutter.Health{Status: rutter.Healthy},
		Resources: []rutter.ResourceReport{
			{Ref: deployment, Version: "v1", State: rutter.Synced, Health: rutter.Health{Status: rutter.Healthy}, Wave: 1},
			{Ref: rutter.Ref{Kind: "Service", Namespace: "web", Name: "web"}, Version: "v1", State: rutter.Synced},
		},
		Images: []string{"nginx:2", "nginx:1", "nginx:2"}, ComparedAt: after(1),
		Operation: &rutter.OperationReport{
			Request: rutter.SyncRequest{Automated: true, Prune: true, Retry: rutter.Retry{Limit: 5, Duration: 5 * time.Second, Factor: 2}},
			Phase:   rutter.OperationSucceeded, Message: "successfully synced (all tasks run)",
			StartedAt: after(2), FinishedAt: after(4), Revisions: []string{commit},
			Results: []rutter.StepResult{
				{Step: rutter.Step{Ref: rutter.Ref{Group: "batch", Kind: "Job", Namespace: "web", Name: "migrate"}, Version: "v1", Phase: rutter.PhasePreSync, Hook: true},
					Status: "Synced", HookPhase: "Succeeded"},
				{Step: rutter.Step{Ref: deployment, Version: "v1", Phase: rutter.PhaseSync}, Status: "Synced", Message: "deployment.apps/web configured"},
			},
		},
	}
}

func TestStatusGolden(t *testing.T) {
	one := "spec: {" + plain + ", syncPolicy: {automated: {prune: true}, syncOptions: [PruneLast=true]}}"
	for _, tc := range []struct {
		name   string
		spec   string
		report func(r *rutter.Report)
	}{
		{"synced", one, func(*rutter.Report) {}},
		{"several-sources", "spec: {sources: [{repoURL: https://x/a, path: a}, {repoURL: https://x/b, ref: b}], destination: {name: prod}}", func(r *rutter.Report) {
			r.Revisions, r.SourceTypes = []string{commit, commit2}, []string{"Helm", "Directory"}
			r.Operation.Revisions = r.Revisions
		}},
		{"out-of-sync", one, func(r *rutter.Report) {
			r.Sync, r.Health = rutter.OutOfSync, rutter.Health{Status: rutter.Degraded, Message: "Deployment web: crashing"}
			r.Resources[0].State, r.Resources[1].RequiresPruning = rutter.OutOfSync, true
			r.Operation.Phase, r.Operation.Message, r.Operation.RetryCount = rutter.OperationFailed, "one or more objects failed to apply", 2
			r.Operation.Results[1].Status = "SyncFailed"
			r.Conditions = []rutter.Condition{{Type: rutter.CondSync, Message: "Failed last sync attempt"}}
		}},
		{"unknown", one, func(r *rutter.Report) {
			r.Sync, r.Health, r.Operation = rutter.SyncUnknown, rutter.Health{Status: rutter.HealthUnknown}, nil
			for i := range r.Resources {
				r.Resources[i].State, r.Resources[i].Reason = rutter.SyncUnknown, "the cluster does not answer"
			}
			r.Conditions = []rutter.Condition{{Type: rutter.CondUnsupported, Message: "b"}, {Type: rutter.CondComparison, Message: "z"}, {Type: rutter.CondUnsupported, Message: "a"}, {Type: rutter.CondUnsupported, Message: "a"}}
		}},
		{"running-by-hand", one + "\noperation: {initiatedBy: {username: ann}, info: [{name: why, value: test}], sync: {prune: true, syncStrategy: {hook: {force: true}}}}", func(r *rutter.Report) {
			r.Operation.Phase, r.Operation.FinishedAt, r.Operation.Message = rutter.OperationRunning, time.Time{}, "waiting for PreSync"
			r.Operation.Request = rutter.SyncRequest{InitiatedBy: "ann", Prune: true, Force: true}
		}},
		{"self-heal", one, func(r *rutter.Report) {
			r.Operation.Partial, r.Operation.Request.SelfHeal = true, true
			r.Operation.Request.Resources = []rutter.Ref{deployment}
		}},
		{"app-of-apps", one, func(r *rutter.Report) {
			r.Operation = nil
			r.Resources = []rutter.ResourceReport{{Ref: rutter.Ref{Group: "argoproj.io", Kind: "Application", Namespace: "argocd", Name: "child"}, Version: "v1alpha1", State: rutter.Synced}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, r := app(t, tc.spec), synced()
			tc.report(&r)
			got, err := yaml.Marshal(argo.Status(r, a, after(5)))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", "status", tc.name+".yaml"), got)
			stable(t, a, r)
		})
	}
}

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
	}
}

// stored is a as the API server gives it back with this status.
func stored(t *testing.T, a *v1alpha1.Application, s v1alpha1.ApplicationStatus) *v1alpha1.Application {
	t.Helper()
	next := a.DeepCopy()
	next.Status = s
	raw, err := json.Marshal(next)
	if err != nil {
		t.Fatal(err)
	}
	back := &v1alpha1.Application{}
	if err := json.Unmarshal(raw, back); err != nil {
		t.Fatal(err)
	}
	return back
}

// stable: the same report later, over the status it made, changes nothing, in
// this process and in the next one, whose last operation is read from the status.
func stable(t *testing.T, a *v1alpha1.Application, r rutter.Report) {
	t.Helper()
	for range 3 {
		a = stored(t, a, argo.Status(r, a, after(5)))
		if again := argo.Status(r, a, after(500)); !reflect.DeepEqual(again, a.Status) {
			t.Fatalf("the same report changes the status:\n%s", cmp.Diff(a.Status, again))
		}
	}
	u, _ := argo.ToUnit(a, config, nil)
	if (u.Last != nil) != (r.Operation != nil) {
		t.Fatalf("last operation %+v", u.Last)
	}
	if r.Operation = u.Last; u.Last != nil {
		if again := argo.Status(r, a, after(500)); !reflect.DeepEqual(again, a.Status) {
			t.Fatalf("the operation read from the status changes it:\n%s", cmp.Diff(a.Status, again))
		}
	}
}

func TestStatusKeepsTimes(t *testing.T) {
	a, r := app(t, "spec: {"+plain+"}"), synced()
	r.Conditions = []rutter.Condition{{Type: "A", Message: "stays"}, {Type: "A", Message: "goes"}}
	a = stored(t, a, argo.Status(r, a, after(5)))
	r.Conditions = []rutter.Condition{{Type: "A", Message: "comes"}, {Type: "A", Message: "stays"}}
	r.Health.Status, r.ComparedAt = rutter.Progressing, after(20)
	s := argo.Status(r, a, after(30))
	if c := s.Conditions; len(c) != 2 || !c[0].LastTransitionTime.Time.Equal(after(30).Truncate(time.Second)) || !c[1].LastTransitionTime.Time.Equal(after(5).Truncate(time.Second)) {
		t.Errorf("conditions %+v", c)
	}
	if !s.Health.LastTransitionTime.Time.Equal(after(30).Truncate(time.Second)) {
		t.Errorf("health %+v has another status since", s.Health)
	}
	a = stored(t, a, s)
	r.Health.Message = "still"
	if s := argo.Status(r, a, after(40)); !s.Health.LastTransitionTime.Time.Equal(after(30).Truncate(time.Second)) {
		t.Errorf("health %+v has the same status since", s.Health)
	}
}

func TestReconciledAt(t *testing.T) {
	a, r := app(t, "spec: {"+plain+"}"), synced()
	a = stored(t, a, argo.Status(r, a, after(5)))
	r.ComparedAt = after(180)
	if s := argo.Status(r, a, after(181)); !reflect.DeepEqual(s, a.Status) {
		t.Errorf("a comparison that found nothing new is not worth a write:\n%s", cmp.Diff(a.Status, s))
	}
	a.Annotations = map[string]string{"argocd.argoproj.io/refresh": "normal"}
	if s := argo.Status(r, a, after(181)); !s.ReconciledAt.Time.Equal(after(180).Truncate(time.Second)) {
		t.Errorf("a comparison that was asked for shows: %v", s.ReconciledAt)
	}
	a.Annotations = nil
	r.Sync = rutter.OutOfSync
	if s := argo.Status(r, a, after(181)); !s.ReconciledAt.Time.Equal(after(180).Truncate(time.Second)) {
		t.Errorf("a comparison that found something new shows: %v", s.ReconciledAt)
	}
	r.ComparedAt = time.Time{}
	if s := argo.Status(r, a, after(181)); !s.ReconciledAt.Time.Equal(after(1).Truncate(time.Second)) {
		t.Errorf("without a comparison it stays: %v", s.ReconciledAt)
	}
}

func TestHistory(t *testing.T) {
	limit := int64(3)
	a := app(t, "spec: {"+plain+"}")
	a.Spec.RevisionHistoryLimit = &limit
	sync := func(n int, edit func(*rutter.OperationReport)) {
		r := synced()
		r.Operation.StartedAt, r.Operation.FinishedAt = after(10*n), after(10*n+5)
		edit(r.Operation)
		a = stored(t, a, argo.Status(r, a, after(10*n+6)))
		a = stored(t, a, argo.Status(r, a, after(10*n+7)))
	}
	ids := func() string {
		var out []string
		for _, h := range a.Status.History {
			out = append(out, time.Duration(h.ID).String())
		}
		return strings.Join(out, " ")
	}
	for n := range 5 {
		sync(n, func(*rutter.OperationReport) {})
	}
	if got := ids(); got != "2ns 3ns 4ns" {
		t.Errorf("ids %s: five syncs, three kept, each once", got)
	}
	sync(6, func(o *rutter.OperationReport) { o.Partial = true })
	sync(7, func(o *rutter.OperationReport) { o.Request.DryRun = true })
	sync(8, func(o *rutter.OperationReport) { o.Phase = rutter.OperationFailed })
	sync(9, func(o *rutter.OperationReport) { o.Request.Resources = []rutter.Ref{deployment} })
	if got := ids(); got != "2ns 3ns 4ns" {
		t.Errorf("ids %s: only full and real syncs that succeeded are recorded", got)
	}
	sync(3, func(*rutter.OperationReport) {})
	if got := ids(); got != "2ns 3ns 4ns" {
		t.Errorf("ids %s: an old sync that is reported late is no new one", got)
	}
	sync(4, func(o *rutter.OperationReport) { o.Revisions = []string{commit2} })
	if got := ids(); got != "3ns 4ns 5ns" {
		t.Errorf("ids %s: another sync that ended in the same second is one", got)
	}
	a.Spec.Source.Path = "elsewhere"
	sync(4, func(o *rutter.OperationReport) { o.Revisions = []string{commit2} })
	if h := a.Status.History[2]; ids() != "3ns 4ns 5ns" || h.Source.Path != "web" || a.Status.OperationState.SyncResult.Source.Path != "web" {
		t.Errorf("history %+v: what was deployed does not change with the spec", h)
	}
	a.Spec.RevisionHistoryLimit = new(int64)
	sync(20, func(*rutter.OperationReport) {})
	if len(a.Status.History) != 0 {
		t.Errorf("a limit of 0 keeps none: %s", ids())
	}
}

// TestStatusIsAFunction: whatever the order in which a report lists things,
// the status is the same, and reporting it again changes nothing.
func TestStatusIsAFunction(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	states := []rutter.SyncState{rutter.Synced, rutter.OutOfSync, rutter.SyncUnknown}
	for range 200 {
		a, r := app(t, "spec: {"+plain+"}"), synced()
		for range rnd.IntN(6) {
			r.Resources = append(r.Resources, rutter.ResourceReport{Ref: rutter.Ref{Kind: "ConfigMap", Name: string(rune('a' + rnd.IntN(26)))},
				Version: "v1", State: states[rnd.IntN(3)], Reason: []string{"", "x", "y"}[rnd.IntN(3)]})
			r.Conditions = append(r.Conditions, rutter.Condition{Type: "T", Message: string(rune('a' + rnd.IntN(5)))})
		}
		seen := map[rutter.Ref]bool{}
		r.Resources = filter(r.Resources, func(x rutter.ResourceReport) bool { dup := seen[x.Ref]; seen[x.Ref] = true; return !dup })
		want := argo.Status(r, a, after(5))
		rnd.Shuffle(len(r.Resources), func(i, j int) { r.Resources[i], r.Resources[j] = r.Resources[j], r.Resources[i] })
		rnd.Shuffle(len(r.Conditions), func(i, j int) { r.Conditions[i], r.Conditions[j] = r.Conditions[j], r.Conditions[i] })
		if diff := cmp.Diff(want, argo.Status(r, a, after(5))); diff != "" {
			t.Fatalf("the order of a report shows:\n%s", diff)
		}
		stable(t, a, r)
	}
}

func filter[T any](in []T, keep func(T) bool) []T {
	var out []T
	for _, x := range in {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}
