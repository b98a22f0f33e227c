package generate

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/rutterhq/rutter"
)

// merge answers with the sets of its first child, overridden by those of the
// others that have the same merge keys. It answers all or nothing: a base
// without an override that is only unknown would change Applications.
func (ev *evaluator) merge(n node, outer map[string]any) outcome {
	switch {
	case len(n.children) < 2:
		return failure(rutter.CodeInvalid, "%s: has %d generators, want at least two", n.producer(), len(n.children))
	case len(n.mergeKeys) == 0:
		return failure(rutter.CodeInvalid, "%s.mergeKeys: is empty, want at least one parameter", n.producer())
	}
	var order []string
	merged := map[string]paramSet{}
	for i, child := range n.children {
		answer := ev.run(child, outer)
		if len(answer.errs) > 0 {
			return outcome{errs: answer.errs}
		}
		byKey, keys, err := keyed(child, n.mergeKeys, answer.sets)
		if err != nil {
			return outcome{errs: []error{err}}
		}
		if i == 0 {
			merged, order = byKey, keys
			continue
		}
		for _, key := range keys {
			if base, ok := merged[key]; ok {
				merged[key] = ev.override(base, byKey[key])
			}
		}
	}
	out := outcome{sets: make([]paramSet, 0, len(order))}
	for _, key := range order {
		out.sets = append(out.sets, merged[key])
	}
	return out
}

// keyed indexes sets by the values of the merge keys, an absent one being null.
func keyed(child node, mergeKeys []string, sets []paramSet) (map[string]paramSet, []string, error) {
	byKey := make(map[string]paramSet, len(sets))
	keys := make([]string, 0, len(sets))
	for _, s := range sets {
		if s.err != nil {
			return nil, nil, s.err
		}
		tuple := make(map[string]any, len(mergeKeys))
		for _, k := range mergeKeys {
			tuple[k] = s.params[k]
		}
		raw, err := json.Marshal(tuple)
		if err != nil {
			return nil, nil, rutter.Errorf(rutter.CodeInvalid, "%s: merge keys %s: %w", child.producer(), strings.Join(mergeKeys, ", "), err)
		}
		key := string(raw)
		if _, ok := byKey[key]; ok {
			return nil, nil, rutter.Errorf(rutter.CodeInvalid,
				"%s: two elements have the merge keys %s; they must be unique in a generator", child.producer(), key)
		}
		byKey[key] = s
		keys = append(keys, key)
	}
	return byKey, keys, nil
}

// override lays a later set over the base.
func (ev *evaluator) override(base, over paramSet) paramSet {
	out := paramSet{origins: joinSlices(over.origins, base.origins), warnings: joinSlices(base.warnings, over.warnings), stale: base.stale || over.stale}
	if ev.goTemplate {
		out.params = overlay(base.params, over.params)
		return out
	}
	out.params = maps.Clone(base.params)
	maps.Copy(out.params, over.params)
	return out
}
