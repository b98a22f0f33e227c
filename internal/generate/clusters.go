package generate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rutterhq/rutter"
)

// Every cluster Secret has this label, and sets select on it to say "not the
// implicit local cluster".
const (
	labelSecretType  = "argocd.argoproj.io/secret-type"
	secretTypeMember = "cluster"
)

// clusters answers with the member clusters that the selector matches.
func (ev *evaluator) clusters(n node) outcome {
	g := n.leaf.Clusters
	all, err := ev.facts.Clusters()
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: the clusters cannot be listed: %w", n.producer(), err)
	}
	sel, err := newSelector(n.producer()+".selector", g.Selector)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b rutter.ClusterInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Server, b.Server))
	})
	everything := len(g.Selector.MatchLabels)+len(g.Selector.MatchExpressions) == 0
	var out outcome
	for _, c := range all {
		if !everything && (isImplicit(c) || !sel.matches(memberLabels(c))) {
			continue
		}
		out.sets = append(out.sets, newSet(ev.clusterParams(c), n.producer()))
	}
	return out
}

// isImplicit reports whether no Secret describes the cluster.
func isImplicit(c rutter.ClusterInfo) bool {
	return c.Server == InClusterServer && len(c.Labels) == 0 && len(c.Annotations) == 0
}

// memberLabels are the labels of the cluster's Secret, including the one by
// which it is known to be one.
func memberLabels(c rutter.ClusterInfo) map[string]string {
	labels := maps.Clone(c.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[labelSecretType] = secretTypeMember
	return labels
}

// clusterParams are the parameters of one cluster.
func (ev *evaluator) clusterParams(c rutter.ClusterInfo) map[string]any {
	params := map[string]any{
		"name": c.Name, "nameNormalized": normalize(c.Name), "server": c.Server, "project": c.Project,
	}
	if !ev.goTemplate {
		for k, v := range c.Labels {
			params["metadata.labels."+k] = v
		}
		for k, v := range c.Annotations {
			params["metadata.annotations."+k] = v
		}
		return params
	}
	if isImplicit(c) {
		return params
	}
	metadata := map[string]any{}
	if len(c.Labels) > 0 {
		metadata["labels"] = anyMap(c.Labels)
	}
	if len(c.Annotations) > 0 {
		metadata["annotations"] = anyMap(c.Annotations)
	}
	params["metadata"] = metadata
	return params
}

// flatList is one set that holds all sets in the list "clusters".
func flatList(n node, sets []paramSet) paramSet {
	list := make([]any, 0, len(sets))
	var warnings []string
	stale := false
	for _, s := range sets {
		if s.err != nil {
			return s
		}
		list = append(list, s.params)
		warnings = append(warnings, s.warnings...)
		stale = stale || s.stale
	}
	one := newSet(map[string]any{"clusters": list}, n.producer())
	one.warnings, one.stale = warnings, stale
	return one
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
