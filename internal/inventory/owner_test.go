package inventory_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
)

func TestOwnerOf(t *testing.T) {
	for _, c := range []struct {
		reason              string
		labels, annotations map[string]string
		manager, want       string
	}{
		{"no marks", nil, nil, "kubectl", ""},
		{"Flux", map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}, nil, "", "Flux's Kustomization flux-system/apps"},
		{"Helm by Flux", map[string]string{"helm.toolkit.fluxcd.io/name": "db", "helm.toolkit.fluxcd.io/namespace": "shop"}, nil, "", "Flux's HelmRelease shop/db"},
		{"Flux came back to what is ours", map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "f", rutter.LabelUnit: "x"}, nil, "", "Flux's Kustomization f/apps"},
		{"Argo CD by annotation", nil, map[string]string{rutter.AnnotationTracking: "web:apps/Deployment:shop/web"}, "", "Argo CD's Application argocd/web"},
		{"an Application in another namespace", nil, map[string]string{rutter.AnnotationTracking: "team_web:apps/Deployment:shop/web"}, "", "Argo CD's Application team/web"},
		{"an annotation of ours", map[string]string{rutter.LabelUnit: "x"}, map[string]string{rutter.AnnotationTracking: "web:apps/Deployment:shop/web"}, "", ""},
		{"Argo CD by label", map[string]string{"app.kubernetes.io/instance": "web"}, nil, "argocd-controller", "Argo CD's Application argocd/web"},
		{"a label that Helm charts have too", map[string]string{"app.kubernetes.io/instance": "web"}, nil, "helm", ""},
		{"an annotation that is none", nil, map[string]string{rutter.AnnotationTracking: "web"}, "", ""},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{"manager": c.manager}}}}}
		obj.SetLabels(c.labels)
		obj.SetAnnotations(c.annotations)
		got := ""
		if o, ok := inventory.OwnerOf(obj); ok {
			got = o.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
