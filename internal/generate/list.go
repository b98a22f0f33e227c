package generate

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// list answers with the elements that are written in the generator.
func (ev *evaluator) list(n node) outcome {
	g := n.leaf.List
	out := outcome{sets: make([]paramSet, 0, len(g.Elements))}
	for i, raw := range g.Elements {
		where := fmt.Sprintf("%s.elements[%d]", n.producer(), i)
		tree, err := toTree(raw.Raw)
		if err != nil {
			out.sets = append(out.sets, paramSet{err: rutter.Errorf(rutter.CodeInvalid, "%s: %w", where, err)})
			continue
		}
		out.sets = append(out.sets, ev.listElement(n, where, tree, true))
	}
	more, err := elementsYaml(g.ElementsYaml)
	if err != nil {
		return outcome{sets: out.sets, errs: []error{
			rutter.Errorf(rutter.CodeInvalid, "%s.elementsYaml: is not a YAML list: %w", n.producer(), err)}}
	}
	if words := BooleanWords([]byte(g.ElementsYaml), more); len(words) > 0 {
		ev.warn(n.producer() + ".elementsYaml: " + words[0])
	}
	for i, tree := range more {
		where := fmt.Sprintf("%s.elementsYaml[%d]", n.producer(), i)
		out.sets = append(out.sets, ev.listElement(n, where, tree, false))
	}
	return out
}

// elementsYaml reads a text that holds a list.
func elementsYaml(text string) ([]any, error) {
	if text == "" {
		return nil, nil
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the field
	}
	tree, err := toTree(raw)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		return nil, nil
	}
	items, ok := tree.([]any)
	if !ok {
		return nil, rutter.Errorf(rutter.CodeInvalid, "it holds %s", kindOf(tree))
	}
	return items, nil
}

// listElement makes a set of an object. Written elements hold only texts when
// templates are {{key}}: the reference refuses others, and a manifest must not
// come to depend on more here.
func (ev *evaluator) listElement(n node, where string, tree any, textsOnly bool) paramSet {
	object, ok := tree.(map[string]any)
	if !ok {
		return paramSet{err: rutter.Errorf(rutter.CodeInvalid, "%s: is %s, want an object", where, kindOf(tree))}
	}
	if ev.goTemplate {
		return newSet(object, n.producer())
	}
	if !textsOnly {
		return newSet(flatParams(object), n.producer())
	}
	params := make(map[string]any, len(object))
	for _, k := range sortedKeys(object) {
		values, isMap := object[k].(map[string]any)
		if k == "values" && isMap {
			for _, vk := range sortedKeys(values) {
				text, ok := values[vk].(string)
				if !ok {
					return notText(where+".values."+vk, values[vk], params)
				}
				params["values."+vk] = text
			}
			continue
		}
		text, ok := object[k].(string)
		if !ok {
			return notText(where+"."+k, object[k], params)
		}
		params[k] = text
	}
	return newSet(params, n.producer())
}

// notText is the set of an element with a value that {{key}} cannot render.
func notText(where string, value any, params map[string]any) paramSet {
	return paramSet{params: params, err: rutter.Errorf(rutter.CodeInvalid,
		"%s: is %s, want a string; quote it, or set spec.goTemplate: true", where, kindOf(value))}
}

// kindOf says what a value is, for errors.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}
