package argo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/dialect/argo"
)

func TestParseComparison(t *testing.T) {
	t.Parallel()
	got, problems := argo.ParseComparison(&corev1.ConfigMap{Data: map[string]string{
		"resource.customizations": `
apps/Deployment:
  ignoreDifferences: |
    jsonPointers: [/spec/replicas]
  ignoreResourceUpdates: |
    jsonPointers: [/status]
  health.lua: return {}
"*.example.com/*":
  ignoreDifferences:
    managedFieldsManagers: [operator]
Pod:
  knownTypeFields:
  - {field: spec.x, type: core/v1/ResourceList}
`,
		"resource.customizations.ignoreDifferences.apps_Deployment": "jqPathExpressions: [.spec.paused]\n",
		"resource.customizations.ignoreDifferences.all":             "managedFieldsManagers: [kubelet]\njsonPointers: [bad, /metadata/labels/a]\n",
		"resource.customizations.ignoreDifferences.ConfigMap":       "jsonPointers: [/data]",
		"resource.customizations.ignoreDifferences.a_b_c":           "jsonPointers: [/data]",
		"resource.customizations.health.apps_Deployment":            "return {}",
		"resource.customizations.other.apps_Deployment":             "x",
		"resource.compareoptions":                                   "ignoreAggregatedRoles: true\nignoreResourceStatusField: crd\n",
		"resource.exclusions":                                       "- apiGroups: [a]\n  kinds: [B]\n  clusters: ['*']\n",
		"resource.inclusions":                                       "- apiGroups: ['*']\n  kind: [B]\n",
	}})
	want := rutter.CompareSettings{
		Ignore: []rutter.IgnoreRule{
			{Group: "*.example.com", Kind: "*", Managers: []string{"operator"}},
			{Group: "*", Kind: "*", JSONPointers: []string{"/metadata/labels/a"}, Managers: []string{"kubelet"}},
			{Kind: "ConfigMap", JSONPointers: []string{"/data"}},
			{Group: "apps", Kind: "Deployment", JQ: []string{".spec.paused"}},
		},
		IgnoreUpdates: []rutter.IgnoreRule{{Group: "apps", Kind: "Deployment", JSONPointers: []string{"/status"}}},
		Status:        rutter.StatusIgnoredOfCRD,
		Known:         []rutter.KnownField{{Kind: "Pod", Field: "spec.x", Type: "core/v1/ResourceList"}},
		Exclude:       []rutter.ResourceFilter{{Groups: []string{"a"}, Kinds: []string{"B"}, Clusters: []string{"*"}}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for i, want := range []string{
		`ignoreDifferences.a_b_c: "a_b_c" is no <group>_<kind>`,
		`"other" is no customisation`,
		`ignoreDifferences.all: line 2: jsonPointers: "bad" is not a JSON pointer`,
		`resource.inclusions: line 2: field kind not found`,
	} {
		if i >= len(problems) || !strings.Contains(problems[i], want) {
			t.Errorf("problem %d is not %q: %q", i, want, problems)
		}
	}
	if len(problems) != 4 {
		t.Errorf("problems %q", problems)
	}
}

// FuzzParseComparison: whatever stands in argocd-cm is read or named, and never
// ends in a panic.
func FuzzParseComparison(f *testing.F) {
	f.Add("resource.customizations", "a/B:\n  ignoreDifferences: |\n    jsonPointers: [/a]\n")
	f.Add("resource.customizations.ignoreDifferences.a_B", "jqPathExpressions: ['.a']\n")
	f.Add("resource.compareoptions", "[]")
	f.Add("resource.exclusions", "- {kinds: ['[']}")
	f.Fuzz(func(_ *testing.T, key, value string) {
		argo.ParseComparison(&corev1.ConfigMap{Data: map[string]string{key: value}})
	})
}
