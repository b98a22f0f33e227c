package explain

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

func differs(reason string, prune bool) rutter.Report {
	return rutter.Report{Sync: rutter.OutOfSync, Resources: []rutter.ResourceReport{
		{Ref: rutter.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "c"}, State: rutter.OutOfSync, Reason: reason, RequiresPruning: prune}}}
}

func TestNotSyncing(t *testing.T) {
	auto := rutter.SyncPolicy{Automated: true, SelfHeal: true, Prune: true}
	failed := []rutter.StepResult{
		{Step: rutter.Step{Ref: rutter.Ref{Kind: "ConfigMap", Name: "fine"}}, Status: "Synced"},
		{Step: rutter.Step{Ref: rutter.Ref{Kind: "Job", Name: "migrate"}, Hook: true}, HookPhase: "Failed", Message: "back-off limit"},
		{Step: rutter.Step{Ref: rutter.Ref{Kind: "Service", Name: "second"}}, Status: "SyncFailed", Message: "not this one"},
	}
	for _, c := range []struct {
		reason string
		s      Situation
		names  []string
		says   string
	}{
		{"all is well", Situation{Policy: auto, Report: rutter.Report{Sync: rutter.Synced}}, nil, ""},
		{"in sync, and manual", Situation{Report: rutter.Report{Sync: rutter.Synced}}, nil, ""},
		{"manual", Situation{Report: differs("missing", false)}, []string{Manual}, "spec.syncPolicy.automated"},
		{"drift without self-heal", Situation{Policy: rutter.SyncPolicy{Automated: true}, Report: differs("differs", false)}, []string{NoSelfHeal}, "selfHeal: true"},
		{"a new revision needs no self-heal", Situation{Policy: rutter.SyncPolicy{Automated: true}, Report: differs("changed in Git", false)}, nil, ""},
		{"extra without prune", Situation{Policy: rutter.SyncPolicy{Automated: true}, Report: differs("not declared", true)}, []string{NoPrune}, "--prune"},
		{"held: the policy is not the reason", Situation{Application: "shop", Report: differs("missing", false), Hold: "ana holds it until noon"}, []string{Held}, "rutter unhold shop"},
		{"failed", Situation{Policy: auto, Report: differs("missing", false), Operation: &rutter.OperationReport{Phase: rutter.OperationFailed, Message: "one hook failed", Results: failed}},
			[]string{FailedSync}, "the hook that failed is Job/migrate: back-off limit"},
		{"waiting for a retry", Situation{Policy: auto, Report: differs("missing", false), Operation: &rutter.OperationReport{Phase: rutter.OperationRunning, Message: "boom. Retrying attempt #2 at 3:04PM."}},
			[]string{Retrying}, "at 3:04PM"},
		{"running", Situation{Policy: auto, Report: differs("missing", false), Operation: &rutter.OperationReport{Phase: rutter.OperationRunning}}, []string{RunningSync}, "a sync is running"},
		{"succeeded says nothing", Situation{Policy: auto, Report: differs("missing", false), Operation: &rutter.OperationReport{Phase: rutter.OperationSucceeded}}, nil, ""},
		{"the project refuses; warnings and what is said twice do not count", Situation{Policy: auto, Report: rutter.Report{Sync: rutter.SyncUnknown}, Conditions: []rutter.Condition{
			{Type: rutter.CondInvalidSpec, Message: "project shop does not permit it"}, {Type: rutter.CondInvalidSpec, Message: "project shop does not permit it"},
			{Type: rutter.CondHeld, Message: "x"}, {Type: rutter.CondSync, Message: "y"}}}, []string{RefusedByUs}, "AppProject"},
		{"forbidden", Situation{Policy: auto, Conditions: []rutter.Condition{{Type: rutter.CondComparison, Message: "secrets is forbidden"}}}, []string{RefusedByUs}, "permission"},
		{"away comes first, and once", Situation{Cluster: "alpha", Away: "connection refused", Report: differs("missing", false), Conditions: []rutter.Condition{
			{Type: rutter.CondComparison, Message: "alpha does not answer since noon: connection refused"}}}, []string{Away, Manual}, "alpha cannot be reached: connection refused"},
		{"the set holds removals", Situation{Policy: auto, Set: "fleet", SetHeld: "12 Applications"}, []string{RemovalsHeld}, "rutter approve appset/fleet"},
	} {
		a := Explain(c.s)
		var names []string
		for _, n := range a.NotSyncing {
			names = append(names, n.Name)
		}
		if d := cmp.Diff(c.names, names); d != "" {
			t.Errorf("%s: %s", c.reason, d)
		}
		if text := Text(a); !strings.Contains(text, c.says) {
			t.Errorf("%s: does not say %q:\n%s", c.reason, c.says, text)
		}
	}
}

// TestAnswerIsBounded: ten thousand objects that differ do not fill the screen.
func TestAnswerIsBounded(t *testing.T) {
	var report rutter.Report
	for i := range 10_000 {
		report.Resources = append(report.Resources, rutter.ResourceReport{Ref: rutter.Ref{Kind: "ConfigMap", Name: fmt.Sprint(i)}, State: rutter.OutOfSync,
			Health: rutter.Health{Status: rutter.Degraded}})
	}
	a := Explain(Situation{Report: report})
	if len(a.Differences) != 100 || a.More != 9900 || len(a.NotHealthy) != 20 || !strings.Contains(Text(a), "and 9900 more objects") {
		t.Errorf("%d differences, %d more, %d not healthy", len(a.Differences), a.More, len(a.NotHealthy))
	}
}

func TestAiling(t *testing.T) {
	var report rutter.Report
	for _, s := range []rutter.HealthState{rutter.Healthy, rutter.Progressing, "", rutter.Degraded, rutter.Missing, rutter.Suspended, rutter.HealthUnknown} {
		report.Resources = append(report.Resources, rutter.ResourceReport{Health: rutter.Health{Status: s}})
	}
	var got []rutter.HealthState
	for _, r := range Ailing(report) {
		got = append(got, r.Health.Status)
	}
	want := []rutter.HealthState{rutter.Degraded, rutter.HealthUnknown, rutter.Missing, rutter.Progressing, rutter.Suspended}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func parse(t *testing.T, text string) unstructured.Unstructured {
	t.Helper()
	var u unstructured.Unstructured
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestTrace: from a Deployment by way of its ReplicaSet to its pods, and to no others.
func TestTrace(t *testing.T) {
	around := Around{
		Objects: []unstructured.Unstructured{
			parse(t, `{"kind":"Pod","metadata":{"name":"web-1","uid":"p1","ownerReferences":[{"uid":"r1"}]},"status":{"phase":"Running","containerStatuses":[
				{"name":"web","state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 5m0s"}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"canary"}}},
				{"name":"side","state":{"running":{}}}]}}`),
			parse(t, `{"kind":"Pod","metadata":{"name":"web-2","uid":"p2","ownerReferences":[{"uid":"r1"}]},"status":{"phase":"Pending","conditions":[
				{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3 nodes have room"}]}}`),
			parse(t, `{"kind":"Pod","metadata":{"name":"other","uid":"p3","ownerReferences":[{"uid":"r9"}]},"status":{"message":"not ours"}}`),
			parse(t, `{"kind":"Pod","metadata":{"name":"orphan","uid":"p4"},"status":{"message":"not ours"}}`),
			parse(t, `{"kind":"ReplicaSet","metadata":{"name":"web-x","uid":"r1","ownerReferences":[{"uid":"d1"}]}}`),
		},
		Events: []unstructured.Unstructured{
			parse(t, `{"type":"Warning","reason":"FailedMount","message":"no such volume","lastTimestamp":"2026-01-01T00:00:00Z","involvedObject":{"kind":"Pod","name":"web-1","uid":"p1"}}`),
			parse(t, `{"type":"Warning","reason":"FailedCreate","message":"quota","lastTimestamp":"2026-01-02T00:00:00Z","involvedObject":{"kind":"ReplicaSet","name":"web-x","uid":"r1"}}`),
			parse(t, `{"type":"Normal","reason":"Pulled","message":"fine","involvedObject":{"uid":"p1"}}`),
			parse(t, `{"type":"Warning","reason":"Far","message":"away","involvedObject":{"uid":"p3"}}`),
		},
	}
	got := Trace("d1", nil, around)
	want := []string{
		"pod web-1: container web: CrashLoopBackOff: back-off 5m0s (it ended before with exit code 137, OOMKilled)",
		"pod web-2: Unschedulable: 0/3 nodes have room",
		"event of ReplicaSet web-x: FailedCreate: quota",
		"event of Pod web-1: FailedMount: no such volume",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Trace("nobody", nil, around); len(got) != 0 {
		t.Errorf("of an object that owns nothing: %q", got)
	}
	for i := range 9 {
		around.Events = append(around.Events, parse(t, fmt.Sprintf(`{"type":"Warning","reason":"R%d","involvedObject":{"uid":"r1"}}`, i)))
	}
	if got := Trace("d1", nil, around); len(got) != 6 || got[5] != "and 8 more messages" {
		t.Errorf("it is not bounded: %q", got)
	}
}
