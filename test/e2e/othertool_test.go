package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestOtherToolIsLeftAlone: an object that Flux manages in its cluster is not
// touched, that is said, and the rest is synced. Once its Kustomization is
// suspended the object is taken over by itself.
func TestOtherToolIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := start(t)
	app, ns := unique("two-tools"), w.alpha.namespace(t, "two-tools")
	kustomization := fluxKustomization(t, w.alpha, ns, "apps")
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"value": "flux", "more": "flux"},
		"metadata": map[string]any{"namespace": ns, "name": "theirs", "labels": map[string]any{
			"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": ns}},
	}}
	if err := w.alpha.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("kustomize-controller"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	before := get(t, w.alpha, ns, "theirs", &corev1.ConfigMap{})
	r := w.repo(t, "two-tools", tree{"app/c.yaml": configMap("mine", "git") + "---\n" + configMap("theirs", "git")})
	w.create(t, application(app, "app", ""), vars{"REPO": r.url, "NS": ns})

	w.awaitCondition(t, app, "SharedResourceWarning", "ConfigMap/"+ns+"/theirs", "Flux's Kustomization "+ns+"/apps", "left alone")
	await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "mine", holds("git"))
	state := w.awaitApp(t, app, func(a *v1alpha1.Application) error {
		if a.Status.OperationState == nil || a.Status.OperationState.FinishedAt == nil {
			return errors.New("the sync has not ended")
		}
		return nil
	})
	if state.Status.Sync.Status != "OutOfSync" || !strings.Contains(state.Status.OperationState.Message, "Flux's Kustomization") {
		t.Errorf("%s: %s", state.Status.Sync.Status, state.Status.OperationState.Message)
	}
	if after := get(t, w.alpha, ns, "theirs", &corev1.ConfigMap{}); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("it was touched: %v", after.ManagedFields)
	}

	w.alpha.patch(t, kustomization, ns, "apps", `{"spec":{"suspend":true}}`)
	w.awaitSynced(t, app, "")
	taken := await(t, w.alpha.client, &corev1.ConfigMapList{}, ns, "theirs", holds("git"))
	if _, left := taken.Data["more"]; left || taken.Labels["kustomize.toolkit.fluxcd.io/name"] != "" || taken.UID != before.UID {
		t.Errorf("the object is not taken over: %v %v", taken.Labels, taken.Data)
	}
}

// fluxKustomization makes a Kustomization as Flux's users do; no controller of
// Flux's is there, which makes it no less theirs.
func fluxKustomization(t *testing.T, c *cluster, ns, name string) *unstructured.Unstructured {
	t.Helper()
	yes := true
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "kustomizations.kustomize.toolkit.fluxcd.io"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "kustomize.toolkit.fluxcd.io", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "kustomizations", Singular: "kustomization", Kind: "Kustomization", ListKind: "KustomizationList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}}},
	}}
	if err := client.IgnoreAlreadyExists(c.client.Create(t.Context(), crd)); err != nil {
		t.Fatal(err)
	}
	k := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": ns, "name": name}, "spec": map[string]any{"path": "./apps", "prune": true}}}
	deadline := time.Now().Add(patience)
	for { // the kind is served a moment after its definition is there
		err := c.client.Create(t.Context(), k.DeepCopy())
		if err == nil {
			return k
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
