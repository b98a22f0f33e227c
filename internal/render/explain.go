package render

import (
	"context"
	"fmt"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/render/record"
)

// Explain says how m came about, which Render has returned for the same request.
func (r *Renderer) Explain(ctx context.Context, req rutter.RenderRequest, m rutter.Manifests) (e rutter.Explanation, err error) {
	defer r.recovered(req, &err)
	env := r.environment(req)
	repo := record.New(ctx, req.Snapshot, r.reach(req, env, nil))
	j, err := r.prepare(ctx, repo, req, env)
	if err != nil {
		return rutter.Explanation{}, err
	}
	e = rutter.Explanation{Revision: req.Snapshot.Revision(), Tool: j.tool, Reason: j.reason, Objects: len(m.Objects), Inputs: m.Inputs}
	if j.tool == toolHelm {
		if e.Values, err = r.helm.Trace(ctx, r.helmInput(repo, j)); err != nil {
			return e, fmt.Errorf("trace the values of %s: %w", j.path, err)
		}
	}
	return e, nil
}
