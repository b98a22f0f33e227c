package generate_test

import (
	"strings"
	"testing"

	"github.com/rutterhq/rutter/internal/generate"
)

// TestIncomplete: what a template, or a patch, leaves without a source to deploy, or
// with a number that is none, is refused by name.
func TestIncomplete(t *testing.T) {
	const spec = "project: default, destination: {name: one}"
	for _, tc := range []struct{ reason, source, patch, want string }{
		{"complete", "source: {repoURL: 'https://r', path: a}", "", ""},
		{"the patch takes the path away", "source: {repoURL: 'https://r', path: a}", "spec: {source: {path: null}}", "spec.template.spec.source: names nothing to deploy"},
		{"no repository", "source: {path: a}", "", "spec.template.spec.source.repoURL: is missing"},
		{"one of several refers", "sources: [{repoURL: 'https://r', path: a}, {repoURL: 'https://v', ref: values}]", "", ""},
		{"one of several is nothing", "sources: [{repoURL: 'https://r', path: a}, {repoURL: 'https://v'}]", "", "spec.template.spec.sources[1]: names nothing"},
		{"a number", "source: {repoURL: 'https://r', path: a, kustomize: {replicas: [{name: x, count: '{{count}}'}]}}", "", ""},
		{"no number", "source: {repoURL: 'https://r', path: a, kustomize: {replicas: [{name: x, count: q}]}}", "", `spec.template.spec.source.kustomize.replicas[0].count: "q" is not a number`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			text := "spec:\n  generators: [{list: {elements: [{count: '3'}]}}]\n  template: {metadata: {name: x}, spec: {" + spec + ", " + tc.source + "}}\n"
			if tc.patch != "" {
				text += "  templatePatch: |\n    " + tc.patch + "\n"
			}
			set := setOf(t, text)
			got := generate.Generate(set, fleet())
			if len(got.Elements) != 1 {
				t.Fatalf("%d elements: %v", len(got.Elements), got)
			}
			err := got.Elements[0].Err
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, wanted %q", err, tc.want)
			}
		})
	}
}
