package helm_test

import (
	"iter"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/helm"
)

func year() int { return time.Now().Year() }

func contentsOf(objs []rutter.Object) (out []map[string]any) {
	for _, o := range objs {
		out = append(out, o.Object)
	}
	return out
}

func uniq(in iter.Seq[string]) map[string]bool {
	out := map[string]bool{}
	for s := range in {
		out[s] = true
	}
	return out
}

func newRenderer() *helm.Renderer { return helm.New(helm.Limits{}) }
