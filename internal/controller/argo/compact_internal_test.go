package argo

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// TestCompact: what is kept says the same, in one memory for equal texts.
func TestCompact(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return string([]byte(s)) }
	app := &v1alpha1.Application{}
	app.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	app.Status.OperationState = &v1alpha1.OperationState{SyncResult: &v1alpha1.SyncOperationResult{}}
	for _, name := range []string{"one", "two"} {
		app.Status.Resources = append(app.Status.Resources, v1alpha1.ResourceStatus{Kind: text("ConfigMap"), Name: text(name), Status: text("Synced"),
			Health: &v1alpha1.HealthStatus{Status: text("Healthy")}})
		app.Status.OperationState.SyncResult.Resources = append(app.Status.OperationState.SyncResult.Resources,
			v1alpha1.ResourceResult{Kind: text("ConfigMap"), Name: text(name), Status: text("Synced"), Message: text(name + " serverside-applied")})
	}
	want := app.DeepCopy()
	want.ManagedFields = nil
	got, err := Compact(app)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	list, results := app.Status.Resources, app.Status.OperationState.SyncResult.Resources
	if unsafe.StringData(list[0].Kind) != unsafe.StringData(results[1].Kind) || unsafe.StringData(list[1].Name) != unsafe.StringData(results[1].Name) {
		t.Error("equal texts are kept twice")
	}
	if other, err := Compact("gone"); err != nil || other != "gone" {
		t.Errorf("%v, %v", other, err)
	}
}
