package argo

import (
	"context"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// facts answers the generators from the registry of members and the sources.
type facts struct {
	ctx     context.Context //nolint:containedctx // lives for one evaluation
	set     *applicationSets
	project string
	fresh   bool
	repos   []rutter.Repo
}

// facts are what the generators of a set may ask during one evaluation.
func (s *applicationSets) facts(ctx context.Context, set *v1alpha1.ApplicationSet, fresh bool) *facts {
	return &facts{ctx: ctx, set: s, project: set.Spec.Template.Spec.Project, fresh: fresh}
}

// Clusters implements generate.Facts.
func (f *facts) Clusters() ([]rutter.ClusterInfo, error) { return f.set.opts.Clusters.List(), nil }

// Snapshot implements generate.Facts. A templated project may only use what is
// open to all (reference 5.5).
func (f *facts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	if !isTemplated(f.project) {
		repo.Project = f.project
	}
	f.repos = append(f.repos, repo)
	opts := rutter.ResolveOptions{MaxAge: int64(time.Hour)}
	if f.fresh {
		opts.MaxAge = 0
	}
	snap, err := f.set.opts.Sources.Snapshot(f.ctx, repo, opts)
	if err != nil {
		return nil, err //nolint:wrapcheck // the generator says which of its parts asked
	}
	f.set.opts.Engine.Repos().Saw(repo, snap.Revision(), f.fresh)
	return snap, nil
}
