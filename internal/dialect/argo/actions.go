package argo

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/rutterhq/rutter"
)

// ParseActions reads the operator's actions from argocd-cm: the keys
// resource.customizations.actions.GROUP_KIND, with useOpenLibs beside them, and actions
// in the older map resource.customizations (reference 4.3). The newer form wins. Each
// problem is one key.
func ParseActions(cm *corev1.ConfigMap) (scripts []rutter.ActionScripts, problems []string) {
	byKind := map[string]rutter.ActionScripts{}
	var older map[string]struct {
		Actions  string `json:"actions"`
		OpenLibs bool   `json:"health.lua.useOpenLibs"`
	}
	if err := yaml.Unmarshal([]byte(cm.Data[customizations]), &older); err == nil { // ParseHealthScripts says that it is no map
		for _, name := range slices.Sorted(maps.Keys(older)) {
			if older[name].Actions == "" {
				continue
			}
			s := rutter.ActionScripts{Kind: name, OpenLibs: older[name].OpenLibs, Source: ConfigMapName + ": " + customizations + ": " + name}
			if group, kind, ok := strings.Cut(name, "/"); ok {
				s.Group, s.Kind = group, kind
			}
			if err := parseActions(older[name].Actions, &s); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %s: actions: %v", customizations, name, err))
			}
			byKind[s.Group+"/"+s.Kind] = s
		}
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		name, ok := strings.CutPrefix(key, customizations+".actions.")
		if !ok {
			continue
		}
		s := rutter.ActionScripts{Source: ConfigMapName + ": " + key}
		s.Group, s.Kind = groupKind(name)
		s.OpenLibs, _ = strconv.ParseBool(cm.Data[customizations+".useOpenLibs."+name]) // ParseHealthScripts says what is wrong with it
		if err := parseActions(cm.Data[key], &s); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", key, err))
		}
		byKind[s.Group+"/"+s.Kind] = s
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		scripts = append(scripts, byKind[kind])
	}
	return scripts, problems
}

func parseActions(text string, s *rutter.ActionScripts) error {
	var in struct {
		Merge       bool   `json:"mergeBuiltinActions"`
		Discovery   string `json:"discovery.lua"`
		Definitions []struct {
			Name   string `json:"name"`
			Action string `json:"action.lua"`
		} `json:"definitions"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &in); err != nil {
		return rutter.Errorf(rutter.CodeInvalid, "has discovery.lua, definitions and mergeBuiltinActions: %w", err)
	}
	s.MergeBuiltin, s.Discovery, s.Run = in.Merge, in.Discovery, map[string]string{}
	for i, d := range in.Definitions {
		if d.Name == "" || d.Action == "" {
			return rutter.Errorf(rutter.CodeInvalid, "definitions[%d] needs name and action.lua", i)
		}
		s.Run[d.Name] = d.Action
	}
	return nil
}
