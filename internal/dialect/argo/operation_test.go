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
		{"sync: {syncOptions: [Replace=true]}", []string{`operation.sync.syncOptions[0] "Replace=true"`}, ""},
		{"sync: {syncStrategy: {apply: {}}}", []string{"operation.sync.syncStrategy.apply"}, ""},
		{"sync: {}, retry: {refresh: true}", []string{"operation.retry.refresh"}, ""},
		{"sync: {source: {repoURL: https://other}}", []string{"operation.sync.source"}, "operation.sync.source"},
		{"sync: {manifests: ['{}'], revisions: [a, b]}", []string{"operation.sync.manifests", "operation.sync.revisions"}, "operation.sync.manifests, operation.sync.revisions"},
	} {
		a := app(t, "spec: {"+plain+", syncPolicy: {syncOptions: [PruneLast=true]}}\noperation: {"+tc.operation+"}")
		u, conditions := argo.ToUnit(a, config, nil)
		var got []string
		for _, c := range conditions {
			got = append(got, strings.TrimSuffix(c.Message, " is not acted on yet"))
		}
		if diff := cmp.Diff(tc.conditions, got); diff != "" || u.Problem != nil {
			t.Errorf("%s: %v\n%s", tc.operation, u.Problem, diff)
		}
		err := argo.CheckOperation(a)
		if (err == nil) != (tc.refused == "") || err != nil && (!strings.Contains(err.Error(), tc.refused) || rutter.CodeOf(err) != rutter.CodeUnsupported) {
			t.Errorf("%s: %v, want %q", tc.operation, err, tc.refused)
		}
	}
}
