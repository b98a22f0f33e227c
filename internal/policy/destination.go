package policy

import (
	"fmt"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// destinationRule is an entry of spec.destinations (6.3).
type destinationRule struct {
	server, name, namespace pattern
	where                   string
}

func newDestinationRule(d v1alpha1.ApplicationDestination, where string) destinationRule {
	return destinationRule{
		server: newPattern(strings.TrimRight(d.Server, "/")), name: newPattern(d.Name), namespace: newPattern(d.Namespace),
		where: fmt.Sprintf("%s (server %q, name %q, namespace %q)", where, d.Server, d.Name, d.Namespace),
	}
}

// Destination reports by which rule the project may go to a namespace of a
// cluster (6.3), or why it may not.
//
// A cluster that is registered as a project's own is nobody else's. The
// project need not name it, but it may go there only into namespaces that one
// of its rules allows: a private cluster is no way around the fence.
func (p *Project) Destination(cluster rutter.ClusterInfo, namespace string) (rule string, err error) {
	return p.destination(cluster, func(n pattern) outcome { return n.match(namespace) },
		fmt.Sprintf("cluster %s, namespace %q", clusterName(cluster), namespace))
}

// CheckDestination is Destination for who does not ask for the rule.
func (p *Project) CheckDestination(cluster rutter.ClusterInfo, namespace string) error {
	_, err := p.Destination(cluster, namespace)
	return err
}

// wholeCluster reports whether the project may go to a cluster at all, for
// objects that have no namespace: some namespace of it must be allowed, and no
// rule may deny the whole of it.
func (p *Project) wholeCluster(cluster rutter.ClusterInfo) (rule string, err error) {
	return p.destination(cluster, nil, "cluster "+clusterName(cluster))
}

// namespaces matches a pattern with the namespace in question; nil stands for
// the cluster as a whole.
type namespaces func(p pattern) outcome

func (p *Project) destination(cluster rutter.ClusterInfo, ns namespaces, what string) (rule string, err error) {
	if cluster.Project != "" && cluster.Project != p.Name {
		return "", p.refuse(what, fmt.Sprintf("it is registered for project %s only", cluster.Project))
	}
	own := cluster.Project != ""
	if p.own.Spec.PermitOnlyProjectScopedClusters && !own {
		return "", p.refuse(what, "spec.permitOnlyProjectScopedClusters allows only clusters that are registered for the project")
	}
	for _, d := range p.destinations {
		e := d.at(cluster)
		if e.denies(ns) {
			return "", p.refuse(what, "it is denied by "+d.where)
		}
		if rule == "" && e.allows(ns, own) {
			rule = d.where
		}
	}
	if rule == "" {
		return "", p.refuse(what, "no entry of spec.destinations allows it")
	}
	return rule, nil
}

// effect is a destinationRule as it applies to one cluster.
type effect struct {
	// selects: a pattern without "!" for the server or the name hit.
	selects bool
	// deniesServer, deniesName: one with "!" hit.
	deniesServer, deniesName bool
	// negative: at least one field begins with "!", namespace aside.
	negative bool
	// anywhere: the entry names no cluster. It allows nothing by that (an empty
	// pattern matches only what is empty), but what it denies is denied.
	anywhere  bool
	namespace pattern
}

func (d destinationRule) at(cluster rutter.ClusterInfo) effect {
	e := effect{negative: d.server.deny || d.name.deny, anywhere: d.server.text == "" && d.name.text == "", namespace: d.namespace}
	if d.server.text != "" {
		o := d.server.match(strings.TrimRight(cluster.Server, "/"))
		e.deniesServer, e.selects = d.server.deny && o.denies(), !d.server.deny && o.allows()
	}
	if d.name.text != "" {
		o := d.name.match(cluster.Name)
		e.deniesName, e.selects = d.name.deny && o.denies(), e.selects || !d.name.deny && o.allows()
	}
	return e
}

// denies: a denied cluster is denied in the namespaces of the entry (all of
// them when it names none, and for a name always, as in the reference); denied
// namespaces are denied on the clusters that the entry selects, or on all when
// it names none or selects by exclusion.
func (e effect) denies(ns namespaces) bool {
	if e.deniesName {
		return true
	}
	whole := e.namespace.text == "" || e.namespace.text == "*"
	if e.deniesServer && (whole || e.namespace.deny || ns != nil && ns(e.namespace).denies()) {
		return true
	}
	return e.namespace.deny && (e.selects || e.negative || e.anywhere) && (e.namespace.text == "*" || ns != nil && ns(e.namespace).denies())
}

// allows: only an entry that denies no namespace and selects the cluster, or
// any such entry's namespaces on the project's own cluster.
func (e effect) allows(ns namespaces, own bool) bool {
	if e.namespace.deny || !e.selects && (!own || e.negative) {
		return false
	}
	return ns == nil || ns(e.namespace).allows()
}
