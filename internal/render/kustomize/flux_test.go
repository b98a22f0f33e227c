package kustomize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
	"github.com/rutterhq/rutter/internal/render/substitute"
)

// TestFlux holds what a Flux Kustomization adds to a build (flux-semantics 2.4, 2.5).
func TestFlux(t *testing.T) {
	vars := &substitute.Variables{Values: map[string]string{"n": "4", "team": "blue"}}
	tests := map[string]struct {
		flux  kustomize.FluxOptions
		files map[string]string
		dir   string
		has   []string
		not   []string
		code  rutter.Code
		says  string
	}{
		"nothing": {has: []string{"nginx:1.1", "team: red"}},
		"names and namespace": {flux: kustomize.FluxOptions{TargetNamespace: "ns", NamePrefix: "a-", NameSuffix: "-z"},
			has: []string{"name: a-web-z", "namespace: ns"}},
		"the target namespace overrides": {flux: kustomize.FluxOptions{TargetNamespace: "ns"}, files: kustomization("resources: [../base]\nnamespace: own"), has: []string{"namespace: ns"}, not: []string{"namespace: own"}},
		"patches come behind": {flux: kustomize.FluxOptions{Patches: []rutter.KustomizePatch{{Patch: "- {op: replace, path: /spec/replicas, value: 9}", Target: &rutter.KustomizeTarget{Kind: "Deployment"}}}},
			files: kustomization("resources: [../base]\npatches: [{patch: \"- {op: add, path: /spec/replicas, value: 1}\", target: {kind: Deployment}}]"), has: []string{"replicas: 9"}},
		"the older patches": {flux: kustomize.FluxOptions{PatchesStrategicMerge: []string{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {minReadySeconds: 3}"},
			PatchesJSON6902: []rutter.KustomizePatch{{Patch: "- {op: add, path: /spec/paused, value: true}", Target: &rutter.KustomizeTarget{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}}},
			has: []string{"minReadySeconds: 3", "paused: true"}},
		"images, new tag":     {flux: kustomize.FluxOptions{Images: []kustomize.FluxImage{{Name: "nginx", NewTag: "9"}}}, has: []string{"nginx:9"}},
		"images, merged name": {flux: kustomize.FluxOptions{Images: []kustomize.FluxImage{{Name: "nginx", NewName: "mirror/nginx"}}}, has: []string{"mirror/nginx:1.1"}},
		"images, digest replaces the tag": {flux: kustomize.FluxOptions{Images: []kustomize.FluxImage{{Name: "nginx", Digest: "sha256:cc"}}},
			has: []string{"nginx@sha256:cc"}},
		"images, tag replaces the digest": {flux: kustomize.FluxOptions{Images: []kustomize.FluxImage{{Name: "nginx", NewTag: "7"}}},
			files: kustomization("resources: [../base]\nimages: [{name: nginx, digest: 'sha256:aa', newName: kept}]"), has: []string{"image: kept:7\n"}, not: []string{"sha256:aa\n        name: web"}},
		"images, another":            {flux: kustomize.FluxOptions{Images: []kustomize.FluxImage{{Name: "registry.example.com:5000/side", NewTag: "2"}}}, has: []string{"nginx:1.1", "5000/side:2"}},
		"components":                 {flux: kustomize.FluxOptions{Components: []string{"../extra"}}, has: []string{"name: extra-web"}},
		"missing component":          {flux: kustomize.FluxOptions{Components: []string{"../nope"}}, code: rutter.CodeInvalid, says: "nope"},
		"missing component ignored":  {flux: kustomize.FluxOptions{Components: []string{"../nope"}, IgnoreMissingComponents: true}, has: []string{"name: web"}},
		"remote component":           {flux: kustomize.FluxOptions{Components: []string{"https://github.com/org/repo"}}, code: rutter.CodeInvalid, says: "components[0]: https://github.com/org/repo must be a relative path"},
		"remote bases off":           {flux: kustomize.FluxOptions{NoRemoteBases: true}, files: kustomization("resources: ['https://github.com/org/repo//base?ref=" + commit + "']"), code: rutter.CodeForbidden, says: "--no-remote-bases"},
		"remote bases on":            {files: kustomization("resources: [../base, 'https://github.com/org/repo//base?ref=" + commit + "']"), has: []string{"name: web"}},
		"files above":                {files: kustomization("resources: [../base/all.yaml]\nconfigMapGenerator: [{name: x, files: [../secret.txt]}]"), has: []string{"name: web"}},
		"files above the repository": {files: kustomization("configMapGenerator: [{name: x, files: [../../secret.txt]}]"), code: rutter.CodeInvalid, says: "secret.txt"},
		"build metadata":             {flux: kustomize.FluxOptions{BuildMetadata: []string{"originAnnotations"}}, has: []string{"config.kubernetes.io/origin"}},
		"common metadata": {flux: kustomize.FluxOptions{CommonLabels: map[string]string{"app": "over", "l": "1"}, CommonAnnotations: map[string]string{"team": "green"}},
			has: []string{"labels:\n    app: over\n    l: \"1\"", "team: green", "matchLabels:\n      app: web\n  template"}},
		"variables": {flux: kustomize.FluxOptions{PostBuild: vars, CommonAnnotations: map[string]string{"late": "${team}"},
			Patches: []rutter.KustomizePatch{{Patch: "- {op: add, path: /spec/replicas, value: '${n}'}", Target: &rutter.KustomizeTarget{Kind: "Deployment"}}}},
			has: []string{"replicas: 4", "late: ${team}"}},
		"a variable that is not set": {flux: kustomize.FluxOptions{PostBuild: vars}, files: map[string]string{"base/all.yaml": deployment + "---\napiVersion: v1\nkind: Service\nmetadata: {name: web, annotations: {x: '${nope}'}}\n"},
			code: rutter.CodeInvalid, says: "base/all.yaml:15: postBuild: variables of Service web: variable not set (strict mode): \"nope\""},
		"a chart": {files: kustomization("helmCharts: [{name: x}]"), code: rutter.CodeUnsupported, says: "helmCharts: Flux does not inflate charts: use a HelmRelease"},
		"a generated kustomization": {dir: "tree", flux: kustomize.FluxOptions{NamePrefix: "g-"}, files: map[string]string{"tree/web.yaml": deployment, "tree/sub/b.yml": configMap("b"),
			"tree/own/kustomization.yaml": "resources: [c.yaml]\nnamePrefix: own-\n", "tree/own/c.yaml": configMap("c"), "tree/own/not/d.yaml": configMap("d"), "tree/values.yaml": "a: 1\n",
			"tree/notes.md": "# no\n", "tree/x.json": "{}", "tree/sub/ks.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Other\n"},
			has: []string{"name: g-web"}},
		"a tree with broken YAML": {dir: "tree", files: map[string]string{"tree/web.yaml": "a: [\n"}, code: rutter.CodeInvalid, says: "tree/web.yaml"},
	}
	r := kustomize.New()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.dir == "" {
				tt.dir = "overlay"
			}
			objs, _, err := render(t, r, rendertest.With(repository(), tt.files), kustomize.Input{Path: tt.dir, Flux: &tt.flux, Build: rutter.KustomizeBuild{EnableHelm: true}, Inflate: inflated}, record.Options{Fetch: elsewhere().fetch})
			if rutter.CodeOf(err) != tt.code || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("want %q that says %q, got %v", tt.code, tt.says, err)
			}
			if err != nil {
				return
			}
			got := text(t, find(t, objs, "Deployment").Object)
			for _, s := range tt.has {
				if !strings.Contains(got, s) {
					t.Errorf("no %q in:\n%s", s, got)
				}
			}
			for _, s := range tt.not {
				if strings.Contains(got, s) {
					t.Errorf("%q in:\n%s", s, got)
				}
			}
		})
	}
}

// TestFluxTree: what a generated kustomization lists, in order, and where from.
func TestFluxTree(t *testing.T) {
	files := map[string]string{"z.yaml": configMap("z"), "a/b.yaml": configMap("ab"), "a.yaml": "# none\n", "a/own/kustomization.yml": "resources: [c.yaml]\nnamePrefix: own-\n", "a/own/c.yaml": configMap("c"),
		"empty/readme.md": "x"}
	r := kustomize.New()
	objs, _, err := render(t, r, files, kustomize.Input{Path: ".", Flux: &kustomize.FluxOptions{}}, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objs {
		got = append(got, fmt.Sprintf("%s %s:%d", o.GetName(), o.Origin.File, o.Origin.Line))
	}
	if diff := cmp.Diff([]string{"ab a/b.yaml:1", "own-c a/own/c.yaml:1", "z z.yaml:1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	objs, _, err = render(t, r, files, kustomize.Input{Path: "empty", Flux: &kustomize.FluxOptions{TargetNamespace: "x"}}, record.Options{})
	if err != nil || len(objs) != 0 {
		t.Errorf("an empty tree: %v, %v", objs, err)
	}
}

// TestGenerated holds the pure part.
func TestGenerated(t *testing.T) {
	files := []string{"b.yaml", "a-b/x.yaml", "a/x.yaml", "a/deep/y.yml", "a/k/Kustomization", "a/k/in.yaml", "a/k/more/kustomization.yaml", "c.yaml.txt", "skip.yaml", "kustomization.yaml.bak"}
	got, err := kustomize.Generated(files, func(f string) (bool, error) { return f != "skip.yaml", nil })
	if diff := cmp.Diff([]string{"a/deep/y.yml", "a/k", "a/x.yaml", "a-b/x.yaml", "b.yaml"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
