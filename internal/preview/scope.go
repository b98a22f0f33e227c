package preview

import (
	"slices"

	"github.com/rutterhq/rutter"
)

// clusterWide are the kinds of Kubernetes itself that have no namespace.
var clusterWide = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
	"authentication.k8s.io":        {"TokenReview", "SelfSubjectReview"},
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
}

// Namespaced reports whether a kind has a namespace: by Kubernetes itself, by a
// CustomResourceDefinition that is rendered too (crds, by group and kind), or by
// what the inventory says of the cluster. A kind that nobody knows is taken to
// have one, as the engine takes it.
func Namespaced(gvk rutter.GVK, crds map[[2]string]bool, cluster ClusterFacts) bool {
	if kinds, ok := clusterWide[gvk.Group]; ok && slices.Contains(kinds, gvk.Kind) {
		return false
	}
	if namespaced, ok := crds[[2]string{gvk.Group, gvk.Kind}]; ok {
		return namespaced
	}
	return !slices.Contains(cluster.ClusterScoped, gvk.Group+"/"+gvk.Kind)
}
