package compare

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	rutter "github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/schema"
)

// Types are what is known of the types of objects. With them a local
// comparison decides what it would otherwise leave to the server. Nil Types
// know nothing.
type Types struct {
	schemas *schema.Schemas
	goTypes *runtime.Scheme
}

// NewTypes are the built-in kinds and those that schemas describe, which may be
// nil. They take some milliseconds to make and never change.
func NewTypes(schemas *schema.Schemas) (*Types, error) {
	builtin, err := schema.Builtin()
	if err != nil {
		return nil, err
	}
	t := &Types{schemas: builtin.With(schemas), goTypes: runtime.NewScheme()}
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme,
		batchv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme,
		discoveryv1.AddToScheme, eventsv1.AddToScheme, flowcontrolv1.AddToScheme, networkingv1.AddToScheme,
		nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme, resourcev1.AddToScheme, schedulingv1.AddToScheme,
		storagev1.AddToScheme, apiextensionsv1.AddToScheme,
	} {
		if err := add(t.goTypes); err != nil {
			return nil, rutter.Errorf(rutter.CodeInternal, "the Go types of the built-in kinds: %w", err)
		}
	}
	return t, nil
}

// With are the types and those of further kinds, as CustomResourceDefinitions
// beside the objects declare them.
func (t *Types) With(schemas *schema.Schemas) *Types {
	if t == nil || schemas.Len() == 0 {
		return t
	}
	return &Types{schemas: t.schemas.With(schemas), goTypes: t.goTypes}
}

// Know reports whether the type of a kind is known.
func (t *Types) Know(gvk rutter.GVK) bool { return t != nil && t.schemas.Of(gvk) != nil }

// of is the type of an object, nil when it is not known.
func (t *Types) of(u *unstructured.Unstructured) *schema.Type {
	if t == nil {
		return nil
	}
	gvk := u.GroupVersionKind()
	return t.schemas.Of(rutter.GVK{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
}

// dropped is a declared value that the server does not keep: it is empty, and
// the Go type leaves empties out. It is as good as not declared where nothing
// is live, and counts where something is.
type dropped struct{ value any }

// asStored returns a declared object as the server would write it: quantities
// and times in their one form, text where a number may be text, and empties
// marked as dropped. Of a kind that has no Go type, or with a field that the
// type doesn't know, there is no answer.
func (t *Types) asStored(u *unstructured.Unstructured) (map[string]any, bool) {
	if t == nil || !t.goTypes.Recognizes(u.GroupVersionKind()) {
		return nil, false
	}
	typed, err := t.goTypes.New(u.GroupVersionKind())
	if err != nil {
		return nil, false
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, typed, true); err != nil {
		return nil, false
	}
	stored, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, false
	}
	out, ok := overlay(u.Object, stored).(map[string]any)
	return out, ok
}

// overlay gives the stored form to what is declared, and nothing else: the
// stored form also holds fields that were never declared.
func overlay(declared, stored any) any {
	switch d := declared.(type) {
	case map[string]any:
		s, ok := stored.(map[string]any)
		if !ok {
			return declared
		}
		out := make(map[string]any, len(d))
		for k, v := range d {
			if sv, kept := s[k]; kept && sv != nil {
				out[k] = overlay(v, sv)
			} else {
				out[k] = dropped{v}
			}
		}
		return out
	case []any:
		s, ok := stored.([]any)
		if !ok || len(s) != len(d) {
			return declared
		}
		out := make([]any, len(d))
		for i := range d {
			out[i] = overlay(d[i], s[i])
		}
		return out
	}
	return stored
}

// plain is a value without the marks of asStored.
func plain(v any) any {
	switch v := v.(type) {
	case dropped:
		return v.value
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, child := range v {
			out[k] = plain(child)
		}
		return out
	case []any:
		out := slices.Clone(v)
		for i := range out {
			out[i] = plain(out[i])
		}
		return out
	}
	return v
}

// isDefault reports whether v is what the server fills in at a place of type t,
// as a whole or field by field.
func isDefault(t *schema.Type, v any) bool {
	if t == nil || !t.HasDefault {
		return false
	}
	if sameValue(t.Default, v) {
		return true
	}
	m, ok := v.(map[string]any)
	given, isMap := t.Default.(map[string]any)
	if !ok || !isMap {
		return false
	}
	for name, child := range m {
		if dv, ok := given[name]; ok && sameValue(dv, child) {
			continue
		}
		if !isDefault(t.Field(name), child) {
			return false
		}
	}
	return true
}
