package explain

import (
	"strings"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// TestContested: a field that somebody writes again each time is named with who,
// how often, since and until when, and what to do.
func TestContested(t *testing.T) {
	at := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	res := rutter.ResourceReport{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, State: rutter.OutOfSync, Reason: "differs",
		Diffs: []rutter.FieldDiff{{Path: ".spec.replicas", Desired: "2", Live: "9", Manager: "rival"}, {Path: ".spec.paused", Live: "true", Manager: "kubectl-edit"}},
		Drift: &rutter.Drift{Since: at, Fields: []rutter.FieldDrift{
			{Path: ".spec.replicas", Since: at.Add(time.Minute), Returned: 6, Manager: "rival", RestsUntil: at.Add(time.Hour)}, {Path: ".spec.paused", Since: at},
		}}}
	gone := rutter.ResourceReport{Ref: rutter.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "c"}, State: rutter.OutOfSync, Reason: "missing",
		Drift: &rutter.Drift{Since: at, Fields: []rutter.FieldDrift{{Since: at, Returned: 5, RestsUntil: at.Add(time.Hour)}}}}
	s := Situation{Application: "shop", Policy: rutter.SyncPolicy{Automated: true, SelfHeal: true},
		Report: rutter.Report{Sync: rutter.OutOfSync, Resources: []rutter.ResourceReport{res, gone}}}
	answer := Explain(s)
	text := Text(answer)
	for _, want := range []string{
		"Deployment.apps shop/web: OutOfSync, since 2026-12-01T12:00:00Z",
		"differs since 2026-12-01T12:01:00Z; came back 6 times after it was put back",
		"contested: .spec.replicas of apps/Deployment/shop/web came back 6 times after it was put back, written by rival; it is left alone until 2026-12-01T13:00:00Z",
		"> Stop rival from writing it, or give the field up: rutter cede shop apps/Deployment/shop/web '.spec.replicas'.",
		"contested: ConfigMap/shop/c came back 5 times after it was put back, written by somebody",
		"> Stop somebody from writing it, or take it out of Git.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	if f := answer.Differences[0].Fields; f[0].ContestedUntil != "2026-12-01T13:00:00Z" || f[0].Returned != 6 || f[1].Returned != 0 || f[1].Since != "2026-12-01T12:00:00Z" {
		t.Errorf("%+v", f)
	}
	if t.Failed() {
		t.Log(text)
	}
}
