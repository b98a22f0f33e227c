package kustomize_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/kustomize"
	"github.com/rutterhq/rutter/internal/render/record"
	"github.com/rutterhq/rutter/internal/render/rendertest"
)

// FuzzKustomization: whatever a kustomization and a manifest say, the render ends
// with objects or with a coded error on one line, and nothing panics. The seeds
// are the trees of the parity suite.
func FuzzKustomization(f *testing.F) {
	archives, err := filepath.Glob("../../../test/parity/kustomize/testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range archives {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for i, one := range a.Files {
			if strings.HasSuffix(one.Name, "/kustomization.yaml") && i+1 < len(a.Files) {
				f.Add(string(one.Data), string(a.Files[i+1].Data))
			}
		}
	}
	r := kustomize.New()
	f.Fuzz(func(t *testing.T, kustomization, manifest string) {
		files := rendertest.With(repository(), map[string]string{"overlay/kustomization.yaml": kustomization, "overlay/a.yaml": manifest, "overlay/p.yaml": manifest, "overlay/g.yaml": manifest})
		_, _, err := render(t, r, files, kustomize.Input{Path: "overlay", Build: rutter.KustomizeBuild{EnableHelm: true, LoadRestrictorNone: true}, Inflate: inflated},
			record.Options{Limits: record.Limits{Reads: 2000, Bytes: 8 << 20}, Fetch: func(context.Context, rutter.Repo) (rutter.Snapshot, error) {
				return nil, rutter.Errorf(rutter.CodeForbidden, "not allowed")
			}})
		if err != nil && (strings.Contains(err.Error(), "\n") || rutter.CodeOf(err) == rutter.CodeInternal) {
			t.Errorf("%s: %v", rutter.CodeOf(err), err)
		}
	})
}
