package explain

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/fieldpath"
)

// deployment was scaled through its subresource, and edited by hand.
func deployment() *unstructured.Unstructured {
	entry := func(manager, subresource, at string, fields map[string]any) any {
		return map[string]any{"manager": manager, "operation": "Update", "subresource": subresource, "time": at, "fieldsType": "FieldsV1", "fieldsV1": fields}
	}
	image := map[string]any{"f:spec": map[string]any{"f:containers": map[string]any{`k:{"name":"web"}`: map[string]any{"f:image": map[string]any{}}}}}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
		entry("kube-controller-manager", "scale", "2026-01-02T03:04:05Z", map[string]any{"f:spec": map[string]any{"f:replicas": map[string]any{}}}),
		entry("kube-controller-manager", "", "2026-05-05T00:00:00Z", map[string]any{"f:metadata": map[string]any{"f:annotations": map[string]any{"f:revision": map[string]any{}}}}),
		entry("kubectl-edit", "", "2026-02-03T00:00:00Z", image),
		entry("kubectl-edit", "", "2026-03-03T00:00:00Z", map[string]any{"f:data": map[string]any{}}),
		entry("kubectl-edit", "status", "2026-09-09T00:00:00Z", image),
	}}}}
}

func TestWriters(t *testing.T) {
	writers := WritersOf(deployment())
	if len(writers) != 4 {
		t.Fatalf("%d writers, want 4: the one of the status does not count", len(writers))
	}
	for _, c := range []struct{ reason, manager, path, want string }{
		{"of two entries of a manager, the one that owns the field", "kubectl-edit", `.spec.containers[name="web"].image`, "2026-02-03T00:00:00Z"},
		{"what is above the field is owned as a whole", "kubectl-edit", ".data.value", "2026-03-03T00:00:00Z"},
		{"none owns it: the latest", "kubectl-edit", `.spec.containers[name="db"].image`, "2026-03-03T00:00:00Z"},
		{"by a subresource", "kube-controller-manager", ".spec.replicas", "2026-01-02T03:04:05Z"},
		{"no such manager", "nobody", ".spec.replicas", ""},
	} {
		path, _ := fieldpath.Parse(c.path)
		got := ""
		if w := writerOf(writers, c.manager, path); w != nil {
			got = w.At.UTC().Format(time.RFC3339)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

func TestClassify(t *testing.T) {
	res := rutter.ResourceReport{Ref: rutter.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Origin: rutter.Origin{File: "app/web.yaml", Line: 7}}
	for _, c := range []struct {
		manager, path, name string
		heals               bool
		words, remedy       string
	}{
		{"kubectl-edit", `.spec.containers[name="web"].image`, ByHand, false, "kubectl-edit at 2026-02-03T00:00:00Z", "app/web.yaml:7"},
		{"kubectl-scale", ".spec.replicas", ByHand, true, "by hand", "heals itself"},
		{"k9s", ".spec.replicas", ByHand, false, "k9s", "rutter app sync shop"},
		{"kube-controller-manager", ".spec.replicas", Scaler, false, "HorizontalPodAutoscaler", `jsonPointers: ["/spec/replicas"]`},
		{"kube-controller-manager", ".spec.paused", Controller, false, "the controller", `jsonPointers: ["/spec/paused"]`},
		{"keda-operator", ".spec.replicas", Scaler, false, "keda-operator", "/spec/replicas"},
		{"keda-operator", ".spec.paused", Controller, false, "keda-operator", "/spec/paused"},
		{"argocd-controller", ".spec.paused", OtherTool, false, "argocd-controller", "one tool"},
		{"kustomize-controller", ".spec.paused", OtherTool, false, "kustomize-controller", "in turn"},
		{"helm-controller", ".spec.paused", OtherTool, false, "helm-controller", "one tool"},
		{"flux", ".spec.paused", OtherTool, false, "flux", "one tool"},
		{"cert-manager-cainjector", ".webhooks", Controller, false, "cainjector", "/webhooks"},
		{"vault-agent-injector", `.spec.containers[name="web"].env`, Controller, false, "vault", `jqPathExpressions: [".[\"spec\"][\"containers\"][] | select(.[\"name\"] == \"web\") | .[\"env\"]"]`},
		{"", ".spec.paused", Unowned, false, "no manager", "webhook"},
		{"rutter", ".spec.paused", NotSynced, false, "last sync", "rutter app sync shop"},
		{"our-script", "and 3 more", OtherWriter, false, "our-script wrote it", `managedFieldsManagers: ["our-script"]`},
	} {
		got := Classify(rutter.FieldDiff{Path: c.path, Manager: c.manager}, Facts{Application: "shop", SelfHeal: c.heals, Resource: res, Writers: WritersOf(deployment())})
		if got.Name != c.name || !strings.Contains(got.Words, c.words) || !strings.Contains(got.Remedy, c.remedy) {
			t.Errorf("%q at %s: %+v, want %q with %q and %q", c.manager, c.path, got, c.name, c.words, c.remedy)
		}
	}
}

func TestClassifyObject(t *testing.T) {
	for _, c := range []struct {
		reason string
		prune  bool
		state  rutter.SyncState
		name   string
		remedy string
	}{
		{"missing", false, rutter.OutOfSync, Absent, "rutter app sync shop"},
		{"not declared", true, rutter.OutOfSync, Extra, "--prune"},
		{"changed in Git", false, rutter.OutOfSync, NotSynced, "rutter app sync shop"},
		{"WaitingForKind: the cluster does not serve Foo in x/v1", false, rutter.OutOfSync, MissingKind, "CustomResourceDefinition"},
		{"KindTainted: conversion webhook failed", false, rutter.SyncUnknown, TaintedKind, "conversion webhook"},
		{"Foo/x is part of applications a and b", false, rutter.OutOfSync, OtherApp, "one of the two"},
		{`compare on the server: Service "x" is invalid: spec.clusterIP: Invalid value: field is immutable`, false, rutter.SyncUnknown, Immutable, "--force"},
		{"compare on the server: configmaps is forbidden", false, rutter.SyncUnknown, Refused, "permission"},
		{"not compared yet", false, rutter.SyncUnknown, NotCompared, "Ask again"},
		{"compare on the server: boom", false, rutter.SyncUnknown, NotCompared, "server says"},
		{"", false, rutter.OutOfSync, NotSynced, "rutter app sync shop"},
	} {
		got := ClassifyObject(Facts{Application: "shop", Resource: rutter.ResourceReport{Ref: rutter.Ref{Kind: "Foo", Name: "x"}, State: c.state, Reason: c.reason, RequiresPruning: c.prune}})
		if got.Name != c.name || got.Words == "" || !strings.Contains(got.Remedy, c.remedy) {
			t.Errorf("%q: %+v, want %q with %q", c.reason, got, c.name, c.remedy)
		}
	}
}
