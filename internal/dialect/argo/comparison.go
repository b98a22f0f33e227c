package argo

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/compare"
)

// The keys of argocd-cm that say what is compared (reference 3.2, 3.4, 3.7).
const (
	keyCustomizations = "resource.customizations"
	keyCompareOptions = "resource.compareoptions"
	keyExclusions     = "resource.exclusions"
	keyInclusions     = "resource.inclusions"
)

// ParseComparison reads what an operator sets for all comparisons from
// argocd-cm, which may be nil. Each problem is a key, with the line within its
// value where that is known, that is not acted on, and why; the others hold.
func ParseComparison(cm *corev1.ConfigMap) (s rutter.CompareSettings, problems []string) {
	if cm == nil {
		return s, nil
	}
	p := comparison{settings: settings{}, of: map[string]*customization{}}
	p.combined(cm.Data[keyCustomizations])
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		if rest, ok := strings.CutPrefix(key, keyCustomizations+"."); ok {
			p.split(key, rest, cm.Data[key])
		}
	}
	for _, target := range slices.Sorted(maps.Keys(p.of)) {
		p.add(target, p.of[target])
	}
	p.compareOptions(cm.Data[keyCompareOptions])
	p.result.Exclude = p.filters(keyExclusions, cm.Data[keyExclusions])
	p.result.Include = p.filters(keyInclusions, cm.Data[keyInclusions])
	return p.result, p.problems
}

// customization is what is set for one group and kind: texts, because that is
// how both forms hold them.
type customization struct {
	differences, updates, types text
}

// text is a value and where it stands: errors count lines from there.
type text struct {
	key, value string
	line       int
}

// comparison is one run of ParseComparison.
type comparison struct {
	settings

	result rutter.CompareSettings
	of     map[string]*customization
}

// at names a line of a value.
func (t text) at(line int) string {
	return t.key + ": line " + strconv.Itoa(t.line+line)
}

func (p *comparison) customization(target string) *customization {
	if p.of[target] == nil {
		p.of[target] = &customization{}
	}
	return p.of[target]
}

// combined reads resource.customizations: a map from group/kind to what is set
// for it.
func (p *comparison) combined(value string) {
	var doc yaml.Node
	if !p.decode(text{key: keyCustomizations, value: value}, &doc) || len(doc.Content) == 0 {
		return
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.problem(keyCustomizations, "line %d: it is no map of group/kind to customisations", root.Line)
		return
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		target, fields := root.Content[i], root.Content[i+1]
		if fields.Kind != yaml.MappingNode {
			p.problem(keyCustomizations, "line %d: %s: it is no map of customisations", fields.Line, target.Value)
			continue
		}
		for j := 0; j+1 < len(fields.Content); j += 2 {
			name, v := fields.Content[j], fields.Content[j+1]
			p.set(target.Value, strings.TrimPrefix(name.Value, "resource."), nodeText(keyCustomizations+" ("+target.Value+", "+name.Value+")", v), name.Line)
		}
	}
}

// nodeText is a value of the map: the text in it, or the value written out
// where somebody has left the text's bar away.
func nodeText(key string, v *yaml.Node) text {
	if v.Kind == yaml.ScalarNode {
		line := v.Line
		if v.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			line--
		}
		return text{key: key, value: v.Value, line: line}
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return text{key: key}
	}
	return text{key: key, value: string(data), line: v.Line - 1}
}

// split reads resource.customizations.<suffix>.<group>_<kind>.
func (p *comparison) split(key, rest, value string) {
	suffix, target, ok := strings.Cut(rest, ".")
	if !ok {
		p.problem(key, "it names no kind: write %s.%s.<group>_<kind>", keyCustomizations, suffix)
		return
	}
	switch group, kind, grouped := strings.Cut(target, "_"); {
	case target == "all":
		target = "*/*"
	case grouped && strings.Contains(kind, "_"):
		p.problem(key, "%q is no <group>_<kind>", target)
		return
	case grouped:
		target = group + "/" + kind
	}
	p.set(target, suffix, text{key: key, value: value}, 0)
}

// set takes one customisation; a later one of the same field replaces it.
func (p *comparison) set(target, suffix string, t text, line int) {
	switch suffix {
	case "ignoreDifferences":
		p.customization(target).differences = t
	case "ignoreResourceUpdates":
		p.customization(target).updates = t
	case "knownTypeFields":
		p.customization(target).types = t
	case "health", "health.lua", "useOpenLibs", "health.lua.useOpenLibs", "actions": // not about comparing
	default:
		where := t.key
		if line > 0 {
			where += ": line " + strconv.Itoa(line)
		}
		p.problem(where, "%q is no customisation: use ignoreDifferences, ignoreResourceUpdates, knownTypeFields, health, useOpenLibs or actions", suffix)
	}
}

// add translates what is set for one target.
func (p *comparison) add(target string, c *customization) {
	group, kind, ok := strings.Cut(target, "/")
	if !ok {
		group, kind = "", target
	}
	if r, ok := p.rule(group, kind, c.differences); ok {
		p.result.Ignore = append(p.result.Ignore, r)
	}
	if r, ok := p.rule(group, kind, c.updates); ok {
		p.result.IgnoreUpdates = append(p.result.IgnoreUpdates, r)
	}
	var fields []struct {
		Field string `yaml:"field"`
		Type  string `yaml:"type"`
	}
	if !p.decode(c.types, &fields) {
		return
	}
	for _, f := range fields {
		known := rutter.KnownField{Group: group, Kind: kind, Field: f.Field, Type: f.Type}
		if err := compare.CheckKnown(known); err != nil {
			p.problem(c.types.key, "%v", err)
			continue
		}
		p.result.Known = append(p.result.Known, known)
	}
}

// rule reads one ignoreDifferences. Its parts that can't be read are left out
// one by one.
func (p *comparison) rule(group, kind string, t text) (r rutter.IgnoreRule, ok bool) {
	var in struct {
		Pointers []yaml.Node `yaml:"jsonPointers"`
		JQ       []yaml.Node `yaml:"jqPathExpressions"`
		Managers []yaml.Node `yaml:"managedFieldsManagers"`
	}
	if !p.decode(t, &in) {
		return r, false
	}
	r = rutter.IgnoreRule{Group: group, Kind: kind}
	if err := compare.CheckRule(r); err != nil {
		p.problem(t.key, "%v", err)
		return r, false
	}
	for _, list := range []struct {
		from []yaml.Node
		to   *[]string
		one  func(s string) rutter.IgnoreRule
	}{
		{in.Pointers, &r.JSONPointers, func(s string) rutter.IgnoreRule { return rutter.IgnoreRule{JSONPointers: []string{s}} }},
		{in.JQ, &r.JQ, func(s string) rutter.IgnoreRule { return rutter.IgnoreRule{JQ: []string{s}} }},
		{in.Managers, &r.Managers, func(s string) rutter.IgnoreRule { return rutter.IgnoreRule{Managers: []string{s}} }},
	} {
		for _, n := range list.from {
			if err := compare.CheckRule(list.one(n.Value)); err != nil {
				p.problem(t.at(n.Line), "%v", unlisted(err))
				continue
			}
			*list.to = append(*list.to, n.Value)
		}
	}
	return r, len(r.JSONPointers)+len(r.JQ)+len(r.Managers) > 0
}

// unlisted is an error of a rule of one part, whose index says nothing.
func unlisted(err error) string { return strings.Replace(err.Error(), "[0]: ", ": ", 1) }

// decode reads YAML strictly; false means that there is none, or none that can
// be read.
func (p *comparison) decode(t text, into any) bool {
	if strings.TrimSpace(t.value) == "" {
		return false
	}
	dec := yaml.NewDecoder(strings.NewReader(t.value))
	dec.KnownFields(true)
	err := dec.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return err == nil
	}
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.TrimPrefix(message, "unmarshal errors:\n  ")
	if line, rest, ok := strings.Cut(strings.TrimPrefix(message, "line "), ": "); ok {
		if n, err := strconv.Atoi(line); err == nil {
			rest, _, _ = strings.Cut(rest, " in type ")
			p.problem(t.at(n), "%s", rest)
			return false
		}
	}
	p.problem(t.key, "%s", message)
	return false
}

func (p *comparison) compareOptions(value string) {
	var in struct {
		// Roles that the control plane fills in are never compared by their rules, and
		// changes of what is not declared wake nobody: both switches are always on.
		AggregatedRoles bool   `yaml:"ignoreAggregatedRoles"`
		OnUpdates       *bool  `yaml:"ignoreDifferencesOnResourceUpdates"`
		Status          string `yaml:"ignoreResourceStatusField"`
	}
	if !p.decode(text{key: keyCompareOptions, value: value}, &in) {
		return
	}
	switch in.Status {
	case "", "all":
	case "crd":
		p.result.Status = rutter.StatusIgnoredOfCRD
	case "none", "off", "false":
		p.result.Status = rutter.StatusCompared
	default:
		p.problem(keyCompareOptions, "ignoreResourceStatusField %q is none of all, crd and none: all is used", in.Status)
	}
}

func (p *comparison) filters(key, value string) []rutter.ResourceFilter {
	var in []struct {
		Groups   []string `yaml:"apiGroups"`
		Kinds    []string `yaml:"kinds"`
		Clusters []string `yaml:"clusters"`
	}
	if !p.decode(text{key: key, value: value}, &in) {
		return nil
	}
	var out []rutter.ResourceFilter
	for i, f := range in {
		filter := rutter.ResourceFilter{Groups: f.Groups, Kinds: f.Kinds, Clusters: f.Clusters}
		if err := compare.CheckFilter(filter); err != nil {
			p.problem(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			continue
		}
		out = append(out, filter)
	}
	return out
}
