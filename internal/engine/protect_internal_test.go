package engine

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

// TestProtected is what is never removed, whatever an application declares (reference
// 2.11).
func TestProtected(t *testing.T) {
	unit := rutter.Unit{ID: rutter.UnitID{Dialect: "argo", Namespace: "argocd", Name: "web"}, Instance: "web"}
	one := unit
	one.Tracking.InstallationID = "one"
	cm := rutter.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "c"}
	for _, tc := range []struct {
		name     string
		unit     rutter.Unit
		ref      rutter.Ref
		tracking string
		says     string
	}{
		{"its own", unit, cm, "web", ""},
		{"a copy, or another application's", unit, cm, "", "does not name it"},
		{"another application's", unit, cm, "api", "does not name it"},
		{"a definition", unit, rutter.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "a.b"}, "web", "not pruned"},
		{"itself", unit, rutter.Ref{Group: "argoproj.io", Kind: "Application", Namespace: "argocd", Name: "web"}, "web", "does not remove itself"},
		{"its installation's", one, cm, "web@one", ""},
		{"from before there was an installationID", one, cm, "web", ""},
		{"another installation's", one, cm, "web@two", "another control plane"},
		{"no installationID any more", unit, cm, "web@one", ""},
		{"another application's of another installation", unit, cm, "api@two", "does not name it"},
	} {
		got := protected(tc.ref, rutter.Verdict{Tracking: tc.tracking}, tc.unit)
		if (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.says)
		}
	}
}
