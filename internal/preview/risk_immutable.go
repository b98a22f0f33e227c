package preview

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fixed are the fields of a kind that cannot be changed once it exists, as the
// API server's validation has it: those named, or, where but is set, all below
// spec but those.
type fixed struct {
	fields [][]string
	but    []string
}

var immutable = map[[2]string]fixed{
	{"apps", "StatefulSet"}: {but: []string{"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
		"persistentVolumeClaimRetentionPolicy", "minReadySeconds"}},
	{"apps", "Deployment"}:                               {fields: [][]string{{"spec", "selector"}}},
	{"apps", "DaemonSet"}:                                {fields: [][]string{{"spec", "selector"}}},
	{"apps", "ReplicaSet"}:                               {fields: [][]string{{"spec", "selector"}}},
	{"batch", "Job"}:                                     {fields: [][]string{{"spec", "template"}, {"spec", "selector"}, {"spec", "completionMode"}}},
	{"", "Service"}:                                      {fields: [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}}},
	{"", "PersistentVolumeClaim"}:                        {but: []string{"resources", "volumeAttributesClassName"}},
	{"storage.k8s.io", "StorageClass"}:                   {fields: [][]string{{"provisioner"}, {"parameters"}, {"reclaimPolicy"}, {"volumeBindingMode"}}},
	{rbacGroup, "RoleBinding"}:                           {fields: [][]string{{"roleRef"}}},
	{rbacGroup, "ClusterRoleBinding"}:                    {fields: [][]string{{"roleRef"}}},
	{"", "Secret"}:                                       {fields: [][]string{{"type"}}},
	{"scheduling.k8s.io", "PriorityClass"}:               {fields: [][]string{{"value"}, {"preemptionPolicy"}}},
	{"networking.k8s.io", "IngressClass"}:                {fields: [][]string{{"spec", "controller"}}},
	{"apiextensions.k8s.io", "CustomResourceDefinition"}: {fields: [][]string{{"spec", "scope"}, {"spec", "group"}, {"spec", "names", "plural"}}},
}

// frozen are the fields of what declares itself immutable.
var frozen = [][]string{{"data"}, {"stringData"}, {"binaryData"}, {"immutable"}}

// immutableChanges are the fields that differ and cannot.
func immutableChanges(before, after *unstructured.Unstructured) []string {
	gvk := after.GroupVersionKind()
	rule := immutable[[2]string{gvk.Group, gvk.Kind}]
	fields := slices.Clone(rule.fields)
	if gvk.Group == "" && (gvk.Kind == "ConfigMap" || gvk.Kind == "Secret") && before.Object["immutable"] == true {
		fields = append(fields, frozen...)
	}
	if rule.but != nil {
		for _, u := range []*unstructured.Unstructured{before, after} {
			spec, _, _ := unstructured.NestedMap(u.Object, "spec")
			for name := range spec {
				if !slices.Contains(rule.but, name) {
					fields = append(fields, []string{"spec", name})
				}
			}
		}
	}
	var out []string
	for _, f := range fields {
		a, hadA, _ := unstructured.NestedFieldNoCopy(before.Object, f...)
		b, hasB, _ := unstructured.NestedFieldNoCopy(after.Object, f...)
		// What is left out is the server's to fill in.
		if assigned(f) && (!hadA || !hasB) || same(a, b) {
			continue
		}
		out = append(out, "."+strings.Join(f, "."))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// assigned are fields that the server sets where nobody does, so that declaring
// them or not is no change by itself.
func assigned(path []string) bool {
	switch path[len(path)-1] {
	case "clusterIP", "clusterIPs", "volumeName", "storageClassName", "volumeMode", "podManagementPolicy", "completionMode", "type", "reclaimPolicy", "volumeBindingMode", "preemptionPolicy":
		return true
	}
	return false
}
