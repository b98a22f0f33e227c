package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
	"github.com/rutterhq/rutter/internal/inventory"
)

// Sent returns an object of a render as it is sent: with the target's
// namespace, the marker label and the tracking annotation. It is here, and not
// with who sends it, so that a preview shows exactly what will be sent. obj is
// shared and stays as it is.
func Sent(obj *unstructured.Unstructured, unit rutter.Unit, namespaced bool) *unstructured.Unstructured {
	full := obj.DeepCopy()
	switch {
	case !namespaced:
		full.SetNamespace("")
	case full.GetNamespace() == "":
		full.SetNamespace(unit.Target.Namespace)
	}
	unstructured.RemoveNestedField(full.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(full.Object, "status")
	labels := full.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[rutter.LabelUnit] = unit.ID.Hash()
	if key := unit.Tracking.Label; key != "" && full.GetKind() != "CustomResourceDefinition" {
		labels[key] = inventory.Label(unit.Instance)
	}
	full.SetLabels(labels)
	annotations := full.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[rutter.AnnotationTracking] = inventory.TrackingID(unit.Instance, rutter.RefOf(full), unit.Target.Namespace)
	if id := unit.Tracking.InstallationID; id != "" {
		annotations[rutter.AnnotationInstallation] = id
	} else {
		delete(annotations, rutter.AnnotationInstallation)
	}
	full.SetAnnotations(annotations)
	return compare.FoldSecret(full)
}

// Defines returns the kind that a CustomResourceDefinition introduces, empty
// for any other object.
func Defines(u *unstructured.Unstructured) (group, kind string) {
	if u.GetKind() != "CustomResourceDefinition" {
		return "", ""
	}
	group, _, _ = unstructured.NestedString(u.Object, "spec", "group")
	kind, _, _ = unstructured.NestedString(u.Object, "spec", "names", "kind")
	return group, kind
}

// Scopes says of the kinds that the objects of a render define whether they
// are namespaced, by group and kind.
func Scopes(all []rutter.Manifests) map[[2]string]bool {
	scopes := map[[2]string]bool{}
	for _, m := range all {
		for _, o := range m.Objects {
			if g, k := Defines(o.Unstructured); k != "" {
				s, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
				scopes[[2]string{g, k}] = s == "Namespaced"
			}
		}
	}
	return scopes
}
