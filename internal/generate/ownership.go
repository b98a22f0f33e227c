package generate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// isOwner reports whether a reference is to the set. The name decides, so that
// a set that was made again finds its Applications.
func isOwner(ref *metav1.OwnerReference, set *v1alpha1.ApplicationSet) bool {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	return ref.Kind == applicationSetKind && group == v1alpha1.GroupVersion.Group && ref.Name == set.Name
}

// orphaned reports whether the owner of an Application is a set that is known
// not to be there any more: whoever generates it now may have it.
func (p Policy) orphaned(owner *metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return p.Sets != nil && owner.Kind == applicationSetKind && group == v1alpha1.GroupVersion.Group && !slices.Contains(p.Sets, owner.Name)
}

// withoutOwner is an Application that nobody controls, but is otherwise the same.
func withoutOwner(app *v1alpha1.Application) *v1alpha1.Application {
	free := *app
	free.OwnerReferences = slices.DeleteFunc(slices.Clone(app.OwnerReferences), func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller })
	return &free
}

func ownedBy(app *v1alpha1.Application, set *v1alpha1.ApplicationSet) bool {
	owner := metav1.GetControllerOf(app)
	return owner != nil && isOwner(owner, set)
}

// own writes the reference to the set, in the place of an older one.
func own(app *v1alpha1.Application, set *v1alpha1.ApplicationSet) {
	yes := true
	ref := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: applicationSetKind,
		Name: set.Name, UID: set.UID, Controller: &yes, BlockOwnerDeletion: &yes}
	owners := slices.Clone(app.OwnerReferences)
	if i := slices.IndexFunc(owners, func(o metav1.OwnerReference) bool { return isOwner(&o, set) }); i >= 0 {
		owners[i] = ref
	} else {
		owners = append(owners, ref)
	}
	app.OwnerReferences = owners
}

// merge is the live Application with what the set generates written into it.
func (rc *reconciliation) merge(desired, live *v1alpha1.Application) *v1alpha1.Application {
	out := *live
	out.Spec = desired.Spec
	var labels, annotations []string
	if p := rc.set.Spec.PreservedFields; p != nil {
		labels, annotations = p.Labels, p.Annotations
	}
	out.Labels = preserve(desired.Labels, live.Labels, labels, rc.policy.PreservedLabels)
	out.Annotations = preserve(desired.Annotations, live.Annotations, annotations, rc.policy.PreservedAnnotations, alwaysPreserved)
	out.Finalizers = desired.Finalizers
	for _, f := range live.Finalizers {
		if (strings.HasPrefix(f, "pre-delete-finalizer.argocd.argoproj.io") ||
			strings.HasPrefix(f, "post-delete-finalizer.argocd.argoproj.io")) && !slices.Contains(out.Finalizers, f) {
			out.Finalizers = append(slices.Clip(out.Finalizers), f)
		}
	}
	own(&out, rc.set)
	return &out
}

// alwaysPreserved are the annotations by which others work with Applications.
var alwaysPreserved = []string{
	"notified.notifications.argoproj.io", "argocd.argoproj.io/refresh", "argocd.argoproj.io/hydrate",
	"argocd.argoproj.io/deletion-approved", AnnotationApprove, "rutter.dev/deletion-decision", // a person's decisions
}

// Edited reports whether anything changed of an Application that a set writes.
func Edited(before, after *v1alpha1.Application) bool {
	others := func(k, _ string) bool { return slices.Contains(alwaysPreserved, k) }
	same := func(a, b map[string]string) bool {
		if maps.Equal(a, b) {
			return true
		}
		a, b = maps.Clone(a), maps.Clone(b)
		maps.DeleteFunc(a, others)
		maps.DeleteFunc(b, others)
		return maps.Equal(a, b)
	}
	return before.Generation != after.Generation || !same(before.Labels, after.Labels) || !same(before.Annotations, after.Annotations) ||
		!slices.Equal(before.Finalizers, after.Finalizers)
}

// preserve is desired with the live values of the keys that survive.
func preserve(desired, live map[string]string, keys ...[]string) map[string]string {
	out := desired
	copied := false
	for _, list := range keys {
		for _, k := range list {
			v, ok := live[k]
			if !ok {
				continue
			}
			if !copied {
				out, copied = maps.Clone(desired), true
			}
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
