package rutter

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names that Rutter writes on the objects it manages.
const (
	// FieldManager is the server-side apply manager of everything Rutter applies.
	FieldManager = "rutter"
	// ActionManager is the manager of what people have done by actions.
	ActionManager = "rutter-action"
	// LabelUnit marks a managed object. Its value is UnitID.Hash; watches select
	// on its existence, so that foreign objects are never sent to us.
	LabelUnit = "rutter.dev/unit"
	// AnnotationTracking is Argo CD's tracking annotation (reference 2.11).
	AnnotationTracking = "argocd.argoproj.io/tracking-id"
	// AnnotationInstallation tells control planes apart that have applications of the
	// same names at one cluster (reference 2.11).
	AnnotationInstallation = "argocd.argoproj.io/installation-id"
	// AnnotationHookRun names the run of a hook (plan.HookRun).
	AnnotationHookRun = "rutter.dev/hook-run"
	// FinalizerHook keeps a hook that has ended, or was removed by a clock of its
	// own, until how it ended is recorded (reference 2.2).
	FinalizerHook = "argocd.argoproj.io/hook-finalizer"
)

// Ref identifies one object within one cluster, whatever version it is written in.
type Ref struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// String returns Group/Kind/Namespace/Name without empty parts.
func (r Ref) String() string {
	parts := make([]string, 0, 4)
	for _, p := range []string{r.Group, r.Kind, r.Namespace, r.Name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, "/")
}

// GroupKind returns the kind of the object.
func (r Ref) GroupKind() schema.GroupKind { return schema.GroupKind{Group: r.Group, Kind: r.Kind} }

// Compare orders refs by group, kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Group, o.Group), cmp.Compare(r.Kind, o.Kind),
		cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// RefOf returns the identity of u.
func RefOf(u *unstructured.Unstructured) Ref {
	gvk := u.GroupVersionKind()
	return Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: u.GetNamespace(), Name: u.GetName()}
}

// GVKOf returns the kind of u, in the version in which it is written.
func GVKOf(u *unstructured.Unstructured) GVK { return GVK(u.GroupVersionKind()) }

// Origin is where a rendered object was written.
type Origin struct {
	// File is relative to the root of the repository; empty when unknown.
	File string `json:"file,omitempty"`
	// Line is 1-based; 0 when unknown.
	Line int `json:"line,omitempty"`
}

// Object is one desired object.
type Object struct {
	*unstructured.Unstructured

	Origin Origin
	// Random are JSON pointers to fields that come out differently each time the
	// same inputs are rendered, such as a generated password. Their first applied
	// value is kept.
	Random []string
}

// Ref returns the identity of the object.
func (o Object) Ref() Ref { return RefOf(o.Unstructured) }

// Manifests is the result of a render.
type Manifests struct {
	// Objects in the order in which the tool emitted them, List kinds expanded.
	Objects []Object
	// Inputs are all files and listings that the render read, by path.
	Inputs []Input
	// SourceType is Directory, Kustomize, Helm or Plugin (reference 1.13).
	SourceType string
	// Warnings are for the user, one line each.
	Warnings []string
	// Digest addresses the content of Objects in the render store.
	Digest string
}

// FormerManager reports whether an entry of managedFields belongs to what
// applied an object before Rutter did: kubectl's client-side apply, Argo CD in
// any of its ways, or Flux. While such a manager owns a field, removing it from
// Git would not remove it from the object.
func FormerManager(manager, operation, subresource string) bool {
	if subresource != "" {
		return false
	}
	switch manager {
	case "kubectl-client-side-apply":
		return operation == "Update"
	case "argocd-controller", "argocd-application-controller", "helm-controller":
		return true
	case "kustomize-controller":
		return operation == "Apply"
	}
	return false
}
