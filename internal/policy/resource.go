package policy

import (
	"fmt"

	"github.com/rutterhq/rutter"
)

// kindRule is an entry of one of the four lists of kinds (6.4). Only the lists
// of cluster-scoped kinds have names; without one every name is meant.
type kindRule struct {
	group, kind, name string
	where             string
}

// match matches a kind and then its group and name. Of an unreadable pattern and
// a readable one that misses, the miss decides: the entry is not about ref.
func (r kindRule) match(ref rutter.Ref) outcome {
	kind, group, name := shell(r.kind, ref.Kind), shell(r.group, ref.Group), hit
	if r.name != "" {
		name = shell(r.name, ref.Name)
	}
	if min(kind, group, name) == miss {
		return miss
	}
	return max(kind, group, name)
}

// Kind reports by which rule the project may manage objects of a kind (6.4), or
// why it may not. Cluster-scoped kinds must be listed; of namespaced ones without
// a list all are allowed, with an empty list none.
func (p *Project) Kind(ref rutter.Ref, namespaced bool) (rule string, err error) {
	allow, deny, list := p.clusterAllow, p.clusterDeny, "clusterResourceWhitelist"
	if namespaced {
		allow, deny, list = p.namespaceAllow, p.namespaceDeny, "namespaceResourceWhitelist"
	}
	what := fmt.Sprintf("resource %s:%s", ref.Group, ref.Kind)
	for _, r := range deny {
		if r.match(ref).denies() {
			return "", p.refuse(what, "it is denied by "+r.where)
		}
	}
	if namespaced && !p.restricts {
		return "spec.namespaceResourceWhitelist of AppProject " + p.Name + ", which is absent", nil
	}
	for _, r := range allow {
		if r.match(ref).allows() {
			return r.where, nil
		}
	}
	return "", p.refuse(what, "no entry of spec."+list+" allows it")
}

// CheckResource reports whether the project may manage an object there: its
// kind, and its namespace or, for one that has none, its cluster.
func (p *Project) CheckResource(cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) error {
	_, err := p.resource(cluster, ref, namespaced)
	return err
}

func (p *Project) resource(cluster rutter.ClusterInfo, ref rutter.Ref, namespaced bool) (rules []string, err error) {
	kind, err := p.Kind(ref, namespaced)
	if err != nil {
		return nil, err
	}
	place, err := p.wholeCluster(cluster)
	if namespaced {
		place, err = p.Destination(cluster, ref.Namespace)
	}
	if err != nil {
		return nil, err
	}
	return []string{place, kind}, nil
}
