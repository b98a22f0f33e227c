package policy

import (
	"fmt"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// CheckResource reports whether the project may manage an object there: its
// kind (6.4), and its namespace or, for one that has none, its cluster.
func CheckResource(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
	if !namespaced {
		if err := clusterKind(p, ref); err != nil {
			return err
		}
		return checkCluster(p, cluster)
	}
	if err := namespacedKind(p, ref); err != nil {
		return err
	}
	return CheckDestination(p, cluster, ref.Namespace)
}

// clusterKind: cluster-scoped kinds must be listed.
func clusterKind(p *v1alpha1.AppProject, ref rutter.Ref) error {
	for i, r := range p.Spec.ClusterResourceBlacklist {
		if kind(r.Group, r.Kind, ref).denies() && (r.Name == "" || shell(r.Name, ref.Name).denies()) {
			return refused(p, ref, fmt.Sprintf("denied by spec.clusterResourceBlacklist[%d]", i))
		}
	}
	for _, r := range p.Spec.ClusterResourceWhitelist {
		if kind(r.Group, r.Kind, ref).allows() && (r.Name == "" || shell(r.Name, ref.Name).allows()) {
			return nil
		}
	}
	return refused(p, ref, "no entry of spec.clusterResourceWhitelist allows it")
}

// namespacedKind: without a list all kinds are allowed, with an empty one none.
func namespacedKind(p *v1alpha1.AppProject, ref rutter.Ref) error {
	for i, r := range p.Spec.NamespaceResourceBlacklist {
		if kind(r.Group, r.Kind, ref).denies() {
			return refused(p, ref, fmt.Sprintf("denied by spec.namespaceResourceBlacklist[%d]", i))
		}
	}
	if p.Spec.NamespaceResourceWhitelist == nil {
		return nil
	}
	for _, r := range *p.Spec.NamespaceResourceWhitelist {
		if kind(r.Group, r.Kind, ref).allows() {
			return nil
		}
	}
	return refused(p, ref, "no entry of spec.namespaceResourceWhitelist allows it")
}

// kind matches a kind and then its group. Of an unreadable pattern and a
// readable one that misses, the miss decides: the entry is not about ref.
func kind(group, kindPattern string, ref rutter.Ref) outcome {
	k, g := shell(kindPattern, ref.Kind), shell(group, ref.Group)
	if k == miss || g == miss {
		return miss
	}
	return max(k, g)
}

func refused(p *v1alpha1.AppProject, ref rutter.Ref, why string) error {
	return rutter.Errorf(rutter.CodeForbidden, "resource %s:%s is not permitted in project %s: %s", ref.Group, ref.Kind, p.Name, why)
}
