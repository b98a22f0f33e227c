package engine

import (
	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/inventory"
)

// protected says why a live object that carries our label is not pruned, or "".
// A label can be copied with an object; the tracking annotation names the one
// object that it was written for (reference 2.11). Custom resource definitions
// are kept as the reference keeps them: their removal would remove every object
// of the kind in the whole cluster.
func protected(ref rutter.Ref, v rutter.Verdict, unit rutter.Unit) string {
	if ref.Group == "apiextensions.k8s.io" && ref.Kind == "CustomResourceDefinition" {
		return "custom resource definitions are not pruned"
	}
	if !inventory.Matches(v.Tracking, unit.Instance, ref) {
		return "its tracking annotation does not name it"
	}
	return ""
}
