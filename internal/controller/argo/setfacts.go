package argo

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// facts answers the generators of a set during one evaluation, each question
// once: from the registry of members, the sources, the hosting services
// (setfacts_forge.go) and the control plane (setfacts_placement.go).
type facts struct {
	ctx       context.Context //nolint:containedctx // lives for one evaluation
	set       *applicationSets
	key       types.NamespacedName
	namespace string
	project   string
	fresh     bool
	repos     []rutter.Repo
	// asked are the questions to hosting services, and plugins says that some
	// service of parameters was asked: a webhook wakes by them.
	asked   []askedForge
	plugins bool
	// kinds are those of the placement resources that were asked for.
	kinds   []schema.GroupVersionResource
	answers map[string]answer
}

// answer is what was answered to a question, kept so that the same question has
// the same answer for as long as the evaluation lasts.
type answer struct {
	value any
	err   error
}

// facts are what the generators of a set may ask during one evaluation.
func (s *applicationSets) facts(ctx context.Context, set *v1alpha1.ApplicationSet, fresh bool) *facts {
	return &facts{ctx: ctx, set: s, key: client.ObjectKeyFromObject(set), namespace: set.Namespace, project: set.Spec.Template.Spec.Project, fresh: fresh, answers: map[string]answer{}}
}

// once asks a question that has not been asked yet.
func once[T any](f *facts, key string, ask func() (T, error)) (T, error) {
	a, ok := f.answers[key]
	if ok {
		f.set.repeated.Add(1)
	} else {
		f.set.questions.Add(1)
		v, err := ask()
		a = answer{v, err}
		f.answers[key] = a
	}
	v, _ := a.value.(T)
	return v, a.err
}

// factCounts count the questions of generators, and those of them that the
// evaluation had an answer to already.
type factCounts struct{ questions, repeated atomic.Int64 }

// Questions are how often generators asked something that was looked up, and
// how often they asked it again in the same evaluation.
func (c *Controllers) Questions() (asked, repeated int64) {
	return c.sets.questions.Load(), c.sets.repeated.Load()
}

// Clusters implements generate.Facts.
func (f *facts) Clusters() ([]rutter.ClusterInfo, error) {
	return once(f, "clusters", func() ([]rutter.ClusterInfo, error) { return f.set.opts.Clusters.List(), nil })
}

func isTemplated(s string) bool { return strings.Contains(s, "{{") }

// Snapshot implements generate.Facts. A templated project may only use what is
// open to all (reference 5.5).
func (f *facts) Snapshot(repo rutter.Repo) (rutter.Snapshot, error) {
	if !isTemplated(f.project) {
		repo.Project = f.project
	}
	if !slices.Contains(f.repos, repo) {
		f.repos = append(f.repos, repo)
	}
	opts := rutter.ResolveOptions{MaxAge: int64(time.Hour)}
	if f.fresh {
		opts.MaxAge = 0
	}
	return once(f, "snapshot "+repo.Key(), func() (rutter.Snapshot, error) {
		snap, err := f.set.opts.Sources.Snapshot(f.ctx, repo, opts)
		if err != nil {
			return nil, err //nolint:wrapcheck // the generator says which of its parts asked
		}
		f.set.opts.Engine.Repos().Saw(repo, snap.Revision(), f.fresh)
		return snap, nil
	})
}

var (
	_ generate.Facts         = (*facts)(nil)
	_ generate.ForgeFacts    = (*facts)(nil)
	_ generate.DecisionFacts = (*facts)(nil)
	_ generate.PluginFacts   = (*facts)(nil)
)
