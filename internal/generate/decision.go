package generate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rutterhq/rutter"
)

// clusterDecision answers with the members that placement resources name in
// their status.
func (ev *evaluator) clusterDecision(n node) outcome {
	facts, ok := ev.facts.(DecisionFacts)
	if !ok {
		return unknowable(n, "placement resources")
	}
	q, list, key, err := ev.decisionQuery(n, facts)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	resources, err := facts.Resources(q)
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: %s %s cannot be read: %w", n.producer(), q.Resource, q.Name, err)
	}
	if len(resources) == 0 {
		return failure(rutter.CodeNotFound, "%s: no %s is selected", n.producer(), q.Resource)
	}
	members, err := ev.membersByName()
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: the clusters cannot be listed: %w", n.producer(), err)
	}
	resources = slices.Clone(resources)
	slices.SortStableFunc(resources, func(a, b map[string]any) int { return cmp.Compare(nameOf(a), nameOf(b)) })
	var out outcome
	for _, r := range resources {
		items, err := decisions(r, list)
		if err != nil {
			return failure(rutter.CodeOf(err), "%s: %s %q: %w", n.producer(), q.Resource, nameOf(r), err)
		}
		for i, item := range items {
			where := fmt.Sprintf("%s: %s %q: status.%s[%d]", n.producer(), q.Resource, nameOf(r), list, i)
			if s, ok := ev.decided(n, where, item, key, members); ok {
				out.sets = append(out.sets, s)
			}
		}
	}
	return out
}

// decisionQuery reads from the generator and its ConfigMap what to ask for, and
// where in the answer the clusters are.
func (ev *evaluator) decisionQuery(n node, facts DecisionFacts) (q ResourceQuery, list, key string, err error) {
	g := n.leaf.ClusterDecisionResource
	selects := len(g.LabelSelector.MatchLabels)+len(g.LabelSelector.MatchExpressions) > 0
	switch {
	case g.ConfigMapRef == "":
		return q, "", "", rutter.Errorf(rutter.CodeInvalid, "%s.configMapRef: is empty", n.producer())
	case g.Name == "" && !selects:
		return q, "", "", rutter.Errorf(rutter.CodeInvalid, "%s: set name or labelSelector", n.producer())
	}
	data, err := facts.ConfigMap(g.ConfigMapRef)
	if err != nil {
		return q, "", "", rutter.Errorf(rutter.CodeOf(err), "%s: ConfigMap %s cannot be read: %w", n.producer(), g.ConfigMapRef, err)
	}
	for _, field := range []string{"apiVersion", "kind", "matchKey"} {
		if data[field] == "" {
			return q, "", "", rutter.Errorf(rutter.CodeInvalid, "%s: ConfigMap %s has no %s", n.producer(), g.ConfigMapRef, field)
		}
	}
	return ResourceQuery{APIVersion: data["apiVersion"], Resource: data["kind"], Name: g.Name, Selector: g.LabelSelector},
		cmp.Or(data["statusListKey"], "clusters"), data["matchKey"], nil
}

func (ev *evaluator) membersByName() (map[string]rutter.ClusterInfo, error) {
	all, err := ev.facts.Clusters()
	if err != nil {
		return nil, err
	}
	members := make(map[string]rutter.ClusterInfo, len(all))
	for _, c := range all {
		members[c.Name] = c
	}
	return members, nil
}

// decisions are the items of a list in the status of a resource. A status
// without the list names no clusters; no status at all is no answer yet.
func decisions(resource map[string]any, list string) ([]any, error) {
	status, ok := resource["status"].(map[string]any)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeUnavailable, "has no status yet, so what it decides is not known")
	}
	value := status[list]
	if value == nil {
		return nil, nil
	}
	items, ok := value.([]any)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeInvalid, "status.%s is %s, want a list", list, kindOf(value))
	}
	return items, nil
}

// decided is the set of one item. An item that names no member is left out: a
// placement may well speak of clusters that are managed elsewhere.
func (ev *evaluator) decided(n node, where string, item any, key string, members map[string]rutter.ClusterInfo) (paramSet, bool) {
	object, ok := item.(map[string]any)
	if !ok {
		return paramSet{err: rutter.Errorf(rutter.CodeInvalid, "%s: is %s, want an object", where, kindOf(item))}, true
	}
	name, _ := object[key].(string)
	c, ok := members[name]
	switch {
	case name == "":
		return paramSet{err: rutter.Errorf(rutter.CodeInvalid, "%s: has no %s", where, key)}, true
	case !ok:
		ev.warn(fmt.Sprintf("%s: %q is no member cluster; it is left out", where, name))
		return paramSet{}, false
	}
	params := make(map[string]any, len(object)+2)
	for k, v := range object {
		switch v.(type) {
		case map[string]any, []any:
			if ev.goTemplate {
				params[k] = v
				continue
			}
			flat := map[string]string{}
			flatten(flat, k, v)
			for fk, text := range flat {
				params[fk] = text
			}
		default:
			params[k] = scalar(v)
		}
	}
	params["name"], params["server"] = c.Name, c.Server
	return newSet(params, n.producer()), true
}

func nameOf(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}
