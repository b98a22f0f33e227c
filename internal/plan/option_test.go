package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// TestConfirm: which removals wait for a person, by the object's own option before
// the policy's (reference 2.5).
func TestConfirm(t *testing.T) {
	for _, tc := range []struct {
		name, own, policy string
		prune, approved   bool
		want              string
	}{
		{"plain", "", "", true, false, "prune"},
		{"asks", "Prune=confirm", "", true, false, "confirm"},
		{"approved", "Prune=confirm", "", true, true, "prune"},
		{"all ask", "", "Prune=confirm", true, false, "confirm"},
		{"all ask, but for this one", "Prune=true", "Prune=confirm", true, false, "prune"},
		{"all stay, and this one asks", "Prune=confirm", "Prune=false", true, false, "confirm"},
		{"all stay", "", "Prune=false", true, true, "left"},
		{"nothing is to be pruned", "Prune=confirm", "", false, true, "left"},
	} {
		x := Extra{Ref: rutter.Ref{Kind: "ConfigMap", Namespace: "ns", Name: "old"}, Version: "v1", Verdict: rutter.Verdict{Exists: true, UID: "u"},
			Meta: MetaOf(map[string]string{annOptions: tc.own})}
		in := Input{Extras: []Extra{x}, Complete: true, Approved: tc.approved, Request: rutter.SyncRequest{Prune: tc.prune}}
		if tc.policy != "" {
			in.Policy.Options = []string{tc.policy}
		}
		p := Compute(in)
		got := "left"
		for s := range p.Steps() {
			got = string(s.Action)
		}
		if len(p.Confirm) > 0 {
			got = "confirm"
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// TestMannerOf is how objects are sent by their options, the application's and the
// sync's (reference 2.8).
func TestMannerOf(t *testing.T) {
	options := func(o ...string) rutter.SyncPolicy { return rutter.SyncPolicy{Options: o} }
	for _, tc := range []struct {
		name       string
		policy     rutter.SyncPolicy
		req        rutter.SyncRequest
		want, live Meta
		manner     Manner
	}{
		{name: "plain"},
		{name: "of the application", policy: options("Replace=true", "Validate=false", "ClientSideApplyMigration=false"),
			manner: Manner{Manner: rutter.Manner{Replace: true, Unvalidated: true, KeepFormer: true}}},
		{name: "of the object", want: Meta{Replace: true, Unvalidated: true, Force: true}, manner: Manner{Manner: rutter.Manner{Replace: true, Unvalidated: true}, Force: true}},
		{name: "of the live object", live: Meta{Replace: true, Unvalidated: true, Force: true}, manner: Manner{Manner: rutter.Manner{Replace: true}, Force: true}},
		{name: "of the sync", req: rutter.SyncRequest{Force: true}, manner: Manner{Force: true}},
	} {
		if diff := cmp.Diff(tc.manner, MannerOf(tc.policy, tc.req, tc.want, tc.live)); diff != "" {
			t.Errorf("%s\n%s", tc.name, diff)
		}
	}
}
