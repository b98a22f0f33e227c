package generate

import (
	"encoding/json"
	"fmt"

	"github.com/rutterhq/rutter"
)

// plugin answers with what a service makes of the generator's input.
func (ev *evaluator) plugin(n node) outcome {
	facts, ok := ev.facts.(PluginFacts)
	if !ok {
		return unknowable(n, "plugins")
	}
	g := n.leaf.Plugin
	if g.ConfigMapRef.Name == "" {
		return failure(rutter.CodeInvalid, "%s.configMapRef.name: is empty", n.producer())
	}
	input := make(map[string]any, len(g.Input.Parameters))
	for _, k := range sortedKeys(g.Input.Parameters) {
		value, err := toTree(g.Input.Parameters[k].Raw)
		if err != nil {
			return failure(rutter.CodeInvalid, "%s.input.parameters.%s: %w", n.producer(), k, err)
		}
		input[k] = value
	}
	items, err := facts.PluginParameters(PluginQuery{ConfigMap: g.ConfigMapRef.Name, Namespace: ev.set.Namespace, Set: ev.set.Name, Input: input})
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: %w", n.producer(), err)
	}
	var out outcome
	for i, item := range items {
		params, err := ev.pluginParams(item, input)
		if err != nil {
			out.sets = append(out.sets, paramSet{err: fmt.Errorf("%s: output.parameters[%d]: %w", n.producer(), i, err)})
			continue
		}
		out.sets = append(out.sets, newSet(params, n.producer()))
	}
	return out
}

// pluginParams are an item of the answer and the input it was made of.
func (ev *evaluator) pluginParams(item, input map[string]any) (map[string]any, error) {
	raw, err := json.Marshal(item)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is not JSON: %w", err)
	}
	// Numbers become those that all parameters have.
	tree, err := toTree(raw)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is not JSON: %w", err)
	}
	params, _ := tree.(map[string]any)
	if params == nil {
		params = map[string]any{}
	}
	params["generator"] = map[string]any{"input": map[string]any{"parameters": input}}
	if !ev.goTemplate {
		return flatParams(params), nil
	}
	return params, nil
}
