package kustomize_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rutterhq/rutter/internal/render/buildenv"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"

	"github.com/rutterhq/rutter"
)

// monorepo has n overlays on one base of ten objects.
func monorepo(n int) map[string]string {
	var base strings.Builder
	for i := range 10 {
		fmt.Fprintf(&base, "---\n%s", strings.ReplaceAll(deployment, "name: web\nspec", fmt.Sprintf("name: web%d\nspec", i)))
	}
	files := map[string]string{
		"base/kustomization.yaml": "resources: [all.yaml]\nconfigMapGenerator: [{name: settings, literals: [a=b]}]\nlabels: [{pairs: {app: shop}}]\n",
		"base/all.yaml":           base.String(),
	}
	for i := range n {
		files[fmt.Sprintf("apps/a%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../base]\nnamespace: team-%d\nimages: [{name: nginx, newTag: \"1.%d\"}]\n"+
			"patches: [{patch: \"- {op: add, path: /metadata/annotations, value: {app: a%d}}\", target: {kind: ConfigMap}}]\n", i, i, i)
	}
	return files
}

// BenchmarkOverlays renders overlays on one shared base, as the first pass over
// a monorepo does.
func BenchmarkOverlays(b *testing.B) {
	const n = 200
	snap := rendertest.Snapshot(monorepo(n))
	r := kustomize.New()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		repo := record.New(b.Context(), snap, record.Options{})
		_, _, err := r.Render(b.Context(), kustomize.Input{Repo: repo, Path: fmt.Sprintf("apps/a%d", i%n), Env: buildenv.New(rutter.RenderRequest{Snapshot: snap})})
		if err != nil {
			b.Fatal(err)
		}
		i++
	}
}
