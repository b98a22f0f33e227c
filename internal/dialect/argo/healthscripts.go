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

const customizations = "resource.customizations"

// ParseHealthScripts reads the operator's assessments of health from argocd-cm:
// the keys resource.customizations.health.GROUP_KIND, with useOpenLibs beside them,
// and the older map resource.customizations, whose kinds may have wildcards
// (reference 4.3). The newer form wins. Each problem is one key.
func ParseHealthScripts(cm *corev1.ConfigMap) (scripts []rutter.HealthScript, problems []string) {
	byKind := map[string]rutter.HealthScript{}
	older, err := olderScripts(cm.Data[customizations])
	if err != nil {
		problems = append(problems, customizations+": "+err.Error())
	}
	for _, s := range older {
		byKind[s.Group+"/"+s.Kind] = s
	}
	for _, key := range slices.Sorted(maps.Keys(cm.Data)) {
		name, ok := strings.CutPrefix(key, customizations+".health.")
		if !ok {
			continue
		}
		s := rutter.HealthScript{Script: cm.Data[key], Source: ConfigMapName + ": " + key}
		s.Group, s.Kind = groupKind(name)
		if text := cm.Data[customizations+".useOpenLibs."+name]; text != "" {
			if s.OpenLibs, err = strconv.ParseBool(text); err != nil {
				problems = append(problems, fmt.Sprintf("%s.useOpenLibs.%s: %q is not true or false", customizations, name, text))
			}
		}
		byKind[s.Group+"/"+s.Kind] = s
	}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		scripts = append(scripts, byKind[kind])
	}
	return scripts, problems
}

// groupKind takes GROUP_KIND apart; the core group has no name.
func groupKind(name string) (group, kind string) {
	if i := strings.LastIndex(name, "_"); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

func olderScripts(text string) ([]rutter.HealthScript, error) {
	var all map[string]struct {
		Health   string `json:"health.lua"`
		OpenLibs bool   `json:"health.lua.useOpenLibs"`
	}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "is not a map of kinds: %w", err)
	}
	var out []rutter.HealthScript
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		if all[kind].Health == "" {
			continue
		}
		s := rutter.HealthScript{Script: all[kind].Health, OpenLibs: all[kind].OpenLibs, Kind: kind, Source: ConfigMapName + ": " + customizations + ": " + kind}
		if group, name, ok := strings.Cut(kind, "/"); ok {
			s.Group, s.Kind = group, name
		}
		out = append(out, s)
	}
	return out, nil
}
