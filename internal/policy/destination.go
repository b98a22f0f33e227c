package policy

import (
	"fmt"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// CheckDestination reports whether the project may go to a namespace of a
// cluster (6.3).
//
// A cluster that is registered as a project's own is nobody else's. The
// project need not name it, but it may go there only into namespaces that one
// of its rules allows: a private cluster is no way around the fence.
func CheckDestination(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, namespace string) error {
	return destination(p, cluster, func(pattern string) outcome { return globs(pattern, namespace) },
		fmt.Sprintf("cluster %s, namespace %q", clusterName(cluster), namespace))
}

// checkCluster reports whether the project may go to a cluster at all, for
// objects that have no namespace: some namespace of it must be allowed, and no
// rule may deny the whole of it.
func checkCluster(p *v1alpha1.AppProject, cluster rutter.ClusterInfo) error {
	return destination(p, cluster, nil, "cluster "+clusterName(cluster))
}

// namespaces matches a pattern with the namespace in question; nil stands for
// the cluster as a whole.
type namespaces func(pattern string) outcome

func destination(p *v1alpha1.AppProject, cluster rutter.ClusterInfo, ns namespaces, what string) error {
	if cluster.Project != "" && cluster.Project != p.Name {
		return rutter.Errorf(rutter.CodeForbidden, "%s is not permitted in project %s: it is registered for project %s only", what, p.Name, cluster.Project)
	}
	own := cluster.Project != ""
	if p.Spec.PermitOnlyProjectScopedClusters && !own {
		return rutter.Errorf(rutter.CodeForbidden, "%s is not permitted in project %s: spec.permitOnlyProjectScopedClusters allows only clusters that are registered for the project",
			what, p.Name)
	}
	allowed := false
	for i, d := range p.Spec.Destinations {
		r := newRule(d, cluster)
		if r.denies(ns) {
			return rutter.Errorf(rutter.CodeForbidden, "%s is denied by spec.destinations[%d] (server %q, name %q, namespace %q) of AppProject %s",
				what, i, d.Server, d.Name, d.Namespace, p.Name)
		}
		allowed = allowed || r.allows(ns, own)
	}
	if !allowed {
		return rutter.Errorf(rutter.CodeForbidden, "%s is not permitted in project %s: no entry of spec.destinations allows it", what, p.Name)
	}
	return nil
}

// rule is one entry of spec.destinations, as it applies to one cluster.
type rule struct {
	// selects: a pattern without "!" for the server or the name hit.
	selects bool
	// deniesServer, deniesName: one with "!" hit.
	deniesServer, deniesName bool
	// negative: at least one field begins with "!", namespace aside.
	negative bool
	// anywhere: the entry names no cluster. It allows nothing by that (an empty
	// pattern matches only what is empty), but what it denies is denied.
	anywhere  bool
	namespace string
	denyNS    bool
}

func newRule(d v1alpha1.ApplicationDestination, cluster rutter.ClusterInfo) rule {
	server, denyServer := strings.CutPrefix(d.Server, "!")
	name, denyName := strings.CutPrefix(d.Name, "!")
	r := rule{negative: denyServer || denyName, anywhere: server == "" && name == ""}
	if server != "" {
		o := globs(strings.TrimRight(server, "/"), cluster.Server)
		r.deniesServer, r.selects = denyServer && o.denies(), !denyServer && o.allows()
	}
	if name != "" {
		o := globs(name, cluster.Name)
		r.deniesName, r.selects = denyName && o.denies(), r.selects || !denyName && o.allows()
	}
	r.namespace, r.denyNS = strings.CutPrefix(d.Namespace, "!")
	return r
}

// denies: a denied cluster is denied in the namespaces of the entry (all of
// them when it names none, and for a name always, as in the reference); denied
// namespaces are denied on the clusters that the entry selects, or on all when
// it names none or selects by exclusion.
func (r rule) denies(ns namespaces) bool {
	if r.deniesName {
		return true
	}
	whole := r.namespace == "" || r.namespace == "*"
	if r.deniesServer && (whole || r.denyNS || ns != nil && ns(r.namespace).denies()) {
		return true
	}
	return r.denyNS && (r.selects || r.negative || r.anywhere) && (r.namespace == "*" || ns != nil && ns(r.namespace).denies())
}

// allows: only an entry that denies no namespace and selects the cluster, or
// any such entry's namespaces on the project's own cluster.
func (r rule) allows(ns namespaces, own bool) bool {
	if r.denyNS || !r.selects && (!own || r.negative) {
		return false
	}
	return ns == nil || ns(r.namespace).allows()
}

func clusterName(c rutter.ClusterInfo) string {
	if c.Name != "" {
		return c.Name
	}
	return c.Server
}
