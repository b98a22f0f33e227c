package argo_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestSyncRequest(t *testing.T) {
	for _, tc := range []struct {
		name, operation, policy string
		want                    rutter.SyncRequest
		reason                  string
	}{
		{"none", "", "", rutter.SyncRequest{}, "there is no operation"},
		{"plain", "sync: {}, initiatedBy: {username: ann}", "", rutter.SyncRequest{InitiatedBy: "ann"}, "a sync by hand has no retries of its own"},
		{"without sync", "initiatedBy: {username: ann}", "", rutter.SyncRequest{InitiatedBy: "ann"}, "nothing more is asked for"},
		{"spec's retry", "sync: {}", "retry: {limit: 2}", rutter.SyncRequest{Retry: rutter.Retry{Limit: 2}}, "the application's retry is taken"},
		{"own retry", "sync: {}, retry: {limit: 1, backoff: {duration: 7s}}", "retry: {limit: 2}", rutter.SyncRequest{Retry: rutter.Retry{Limit: 1, Duration: 7 * time.Second}}, "the request's retry wins"},
		{"all", "sync: {revision: main, prune: true, dryRun: true, syncOptions: [Validate=false], syncStrategy: {hook: {force: true}}, resources: [{group: apps, kind: Deployment, name: a, namespace: b}]}", "",
			rutter.SyncRequest{Revision: "main", Prune: true, DryRun: true, Force: true, Options: []string{"Validate=false"},
				Resources: []rutter.Ref{{Group: "apps", Kind: "Deployment", Namespace: "b", Name: "a"}}}, ""},
		{"without hooks", "sync: {syncStrategy: {apply: {force: true}}}", "", rutter.SyncRequest{Force: true, SkipHooks: true}, "strategy apply runs no hooks"},
		{"many revisions", "sync: {revision: x, revisions: [a, b]}", "", rutter.SyncRequest{Revisions: []string{"a", "b"}}, "one for each source"},
		{"source", "sync: {source: {repoURL: https://x, path: p, targetRevision: v1}, manifests: ['{}'], autoHealAttemptsCount: 2}", "",
			rutter.SyncRequest{Sources: []rutter.Source{{RepoURL: "https://x", Path: "p", TargetRevision: "v1"}}, Manifests: []string{"{}"}, Attempt: 2}, ""},
		{"retry with refresh", "sync: {}, retry: {limit: 3, refresh: true}", "", rutter.SyncRequest{Retry: rutter.Retry{Limit: 3, Refresh: true}}, ""},
		{"unknown option", "sync: {syncOptions: [Nope=1, Prune=confirm]}", "", rutter.SyncRequest{Options: []string{"Prune=confirm"}}, "a condition names it"},
		{"one of many", "sync: {revisions: [main]}", "", rutter.SyncRequest{Revision: "main"}, "one revision is that of the only source"},
		{"by a set", "sync: {prune: true}, initiatedBy: {username: applicationset-controller, automated: true}", "", rutter.SyncRequest{Prune: true, InitiatedBy: "applicationset-controller", Automated: true}, "who asked is kept"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			manifest := "spec: {" + plain + ", syncPolicy: {" + tc.policy + "}}"
			if tc.operation != "" {
				manifest += "\noperation: {" + tc.operation + "}"
			}
			if diff := cmp.Diff(tc.want, argo.SyncRequest(app(t, manifest))); diff != "" {
				t.Errorf("%s\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckOperation(t *testing.T) {
	for _, tc := range []struct {
		operation  string
		conditions []string
		refused    string
	}{
		{"sync: {revision: main}", nil, ""},
		{"sync: {syncOptions: [PruneLast=true, ServerSideApply=true]}", nil, ""},
		{"sync: {syncOptions: [Replace=true, Nope=1]}", []string{`operation.sync.syncOptions[1]: "Nope=1" is no sync option`}, ""},
		{"sync: {syncStrategy: {apply: {}}}", nil, ""},
		{"sync: {}, retry: {refresh: true}", nil, ""},
		{"sync: {source: {repoURL: https://other}}", nil, "its sources cannot be used: spec.source: path or chart is required"},
		{"sync: {revisions: [a, b]}", nil, "there are 2, and 1 sources"},
		{"sync: {manifests: ['{}']}", nil, "auto-sync is on"},
		{"sync: {manifests: ['{}'], dryRun: true}", nil, ""},
	} {
		a := app(t, "spec: {"+plain+", syncPolicy: {automated: {}, syncOptions: [PruneLast=true]}}\noperation: {"+tc.operation+"}")
		u, conditions := argo.ToUnit(a, config, nil)
		var got []string
		for _, c := range conditions {
			got = append(got, c.Message)
		}
		if diff := cmp.Diff(tc.conditions, got); diff != "" || u.Problem != nil {
			t.Errorf("%s: %v\n%s", tc.operation, u.Problem, diff)
		}
		err := argo.CheckOperation(a)
		if (err == nil) != (tc.refused == "") || err != nil && (!strings.Contains(err.Error(), tc.refused) || rutter.CodeOf(err) != rutter.CodeInvalid) {
			t.Errorf("%s: %v, want %q", tc.operation, err, tc.refused)
		}
	}
}
