package inventory

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/rutterhq/rutter"
)

// Owner is the object by which another GitOps tool in the same cluster manages an
// object, as that one's marks name it.
type Owner struct {
	GVK             rutter.GVK
	Namespace, Name string
	// Tool is what people call it.
	Tool string
}

// String names the owner as people do.
func (o Owner) String() string {
	return o.Tool + "'s " + o.GVK.Kind + " " + o.Namespace + "/" + o.Name
}

// argoManagers are the field managers of Argo CD.
var argoManagers = map[string]bool{"argocd-controller": true, "argocd-application-controller": true}

// OwnerOf reads the marks of Flux (flux-semantics: the labels that its controllers
// set) and of an Argo CD (reference 2.11: the tracking annotation, or the instance
// label where its controller has applied the object). Marks of an Application that
// a unit of ours stands for, by its instance, are none.
func OwnerOf(obj *unstructured.Unstructured) (Owner, bool) {
	labels := obj.GetLabels()
	for _, flux := range []struct{ prefix, version, kind string }{
		{"kustomize.toolkit.fluxcd.io", "v1", "Kustomization"}, {"helm.toolkit.fluxcd.io", "v2", "HelmRelease"},
	} {
		if name := labels[flux.prefix+"/name"]; name != "" {
			return Owner{Tool: "Flux", GVK: rutter.GVK{Group: flux.prefix, Version: flux.version, Kind: flux.kind},
				Namespace: labels[flux.prefix+"/namespace"], Name: name}, true
		}
	}
	if labels[rutter.LabelUnit] != "" {
		return Owner{}, false // the annotation is ours
	}
	instance, _, ok := ParseTrackingID(obj.GetAnnotations()[rutter.AnnotationTracking])
	if !ok {
		if instance = labels["app.kubernetes.io/instance"]; instance == "" || !appliedByArgo(obj) {
			return Owner{}, false
		}
	}
	o := Owner{Tool: "Argo CD", GVK: rutter.GVK{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"}, Namespace: "argocd", Name: instance}
	if namespace, name, ok := strings.Cut(instance, "_"); ok {
		o.Namespace, o.Name = namespace, name
	}
	return o, true
}

func appliedByArgo(obj *unstructured.Unstructured) bool {
	meta, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if manager, _ := entry["manager"].(string); argoManagers[manager] {
			return true
		}
	}
	return false
}
