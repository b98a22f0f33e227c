package compare

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	rutter "github.com/rutterhq/rutter"
)

// Fields that belong to a controller by what Kubernetes is.
var (
	replicasField = []string{"spec", "replicas"}
	rulesField    = []string{"rules"}
)

// controllers returns the fields of an object that a controller is known to
// write, whatever Git says: comparing them would be a fight that nobody wins.
func controllers(desired, live *unstructured.Unstructured) pointers {
	switch {
	case scaled(live):
		return pointers{replicasField}
	case aggregated(desired) || aggregated(live):
		return pointers{rulesField}
	}
	return nil
}

// Ceded reports whether a controller is known to write some field of a live
// object, so that it must not be sent without a look at it.
func Ceded(live *unstructured.Unstructured) bool { return len(controllers(nil, live)) > 0 }

// scalers write replicas through the scale subresource and are named there; a
// person who scales by hand is named otherwise, and that is drift.
func scaler(manager string) bool {
	switch manager {
	case "kube-controller-manager", "horizontal-pod-autoscaler", "keda-operator", "keda":
		return true
	}
	return false
}

// scaled reports whether an autoscaler has set the replicas of a live object,
// wherever it was declared.
func scaled(live *unstructured.Unstructured) bool {
	yes := false
	eachEntry(live, func(e managedEntry) {
		if e.subresource == "scale" && scaler(e.manager) {
			spec, _ := e.fields["f:spec"].(map[string]any)
			_, replicas := spec["f:replicas"]
			yes = yes || replicas
		}
	})
	return yes
}

// aggregated says that the control plane fills in the rules of a role.
func aggregated(u *unstructured.Unstructured) bool {
	if u == nil || u.GetKind() != "ClusterRole" {
		return false
	}
	rule, _ := u.Object["aggregationRule"].(map[string]any)
	return len(rule) > 0
}

// ScalerRules cedes the replicas of the workloads that a declared
// HorizontalPodAutoscaler or KEDA ScaledObject scales: from the first sync on,
// and not only once the scaler has written (pain 4). A scaler that is declared
// elsewhere is seen by what it writes.
func ScalerRules(declared []*unstructured.Unstructured) []rutter.IgnoreRule {
	var out []rutter.IgnoreRule
	for _, u := range declared {
		if r, ok := ScalerRule(u); ok && !slices.ContainsFunc(out, func(o rutter.IgnoreRule) bool {
			return o.Group == r.Group && o.Kind == r.Kind && o.Namespace == r.Namespace && o.Name == r.Name
		}) {
			out = append(out, r)
		}
	}
	return out
}

// ScalerRule is ScalerRules for one object.
func ScalerRule(u *unstructured.Unstructured) (r rutter.IgnoreRule, ok bool) {
	group, fallback := u.GroupVersionKind().Group, ""
	switch {
	case u.GetKind() == "HorizontalPodAutoscaler" && group == "autoscaling":
	case u.GetKind() == "ScaledObject" && group == "keda.sh":
		fallback = "Deployment"
	default:
		return r, false
	}
	target, _, _ := unstructured.NestedMap(u.Object, "spec", "scaleTargetRef")
	name, _ := target["name"].(string)
	kind, _ := target["kind"].(string)
	version, _ := target["apiVersion"].(string)
	if kind == "" {
		kind = fallback
	}
	if version == "" && kind == fallback {
		version = "apps/v1"
	}
	if name == "" || kind == "" {
		return r, false
	}
	targetGroup, _, grouped := strings.Cut(version, "/")
	if !grouped {
		targetGroup = ""
	}
	return rutter.IgnoreRule{
		Group: targetGroup, Kind: kind, Namespace: u.GetNamespace(), Name: name, JSONPointers: []string{"/spec/replicas"},
	}, true
}
