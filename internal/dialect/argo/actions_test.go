package argo

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
)

func TestParseActions(t *testing.T) {
	cm := &corev1.ConfigMap{Data: map[string]string{
		"resource.customizations.actions.apps_Deployment":      "mergeBuiltinActions: true\ndiscovery.lua: return {a = {}}\ndefinitions: [{name: a, action.lua: return obj}]\n",
		"resource.customizations.useOpenLibs.apps_Deployment":  "true",
		"resource.customizations.actions.ConfigMap":            "discovery.lua: return {}\n",
		"resource.customizations.actions.example.com_Typo":     "discovery: return {}\n",
		"resource.customizations.actions.example.com_Nameless": "definitions: [{action.lua: return obj}]\n",
		"resource.customizations":                              "apps/Deployment: {actions: 'discovery.lua: return {older = {}}'}\nexample.com/Older: {actions: 'discovery.lua: return {}', health.lua.useOpenLibs: true}\nexample.com/Bad: {actions: '['}\nexample.com/Health: {health.lua: 'return {}'}\n",
	}}
	scripts, problems := ParseActions(cm)
	got := map[string]rutter.ActionScripts{}
	for _, s := range scripts {
		got[s.Group+"/"+s.Kind] = s
	}
	if want := (rutter.ActionScripts{Group: "apps", Kind: "Deployment", Discovery: "return {a = {}}", Run: map[string]string{"a": "return obj"}, MergeBuiltin: true, OpenLibs: true,
		Source: "argocd-cm: resource.customizations.actions.apps_Deployment"}); !cmp.Equal(got["apps/Deployment"], want) {
		t.Error(cmp.Diff(want, got["apps/Deployment"]))
	}
	if got["/ConfigMap"].Discovery != "return {}" || got["example.com/Older"].Discovery != "return {}" || !got["example.com/Older"].OpenLibs {
		t.Errorf("%+v", got)
	}
	for _, kind := range []string{"example.com/Typo", "example.com/Bad", "example.com/Nameless"} {
		if s, ok := got[kind]; !ok || s.Discovery != "" { // what is wrong replaces the built-in actions all the same
			t.Errorf("%s: %+v, %t", kind, s, ok)
		}
	}
	if _, ok := got["example.com/Health"]; ok {
		t.Error("a kind without actions has some")
	}
	text := strings.Join(problems, "\n")
	for _, want := range []string{"actions.example.com_Typo: has discovery.lua", "definitions[0] needs name and action.lua", "resource.customizations: example.com/Bad: actions: "} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\ndoes not say %q", text, want)
		}
	}
	if len(problems) != 3 {
		t.Errorf("%d problems: %s", len(problems), text)
	}
}
