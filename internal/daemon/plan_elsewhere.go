package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
	"github.com/rutterhq/rutter/internal/generate"
)

// What a plan follows and no file of the repository declares: sets that are only on
// the control plane, and clusters that nobody knows.

// reads reports whether a set reads the repository: its generators do, or what it
// generates.
func (p *planner) reads(set *v1alpha1.ApplicationSet) bool {
	repos := generate.Sources(set)
	sources := set.Spec.Template.Spec.Sources
	if s := set.Spec.Template.Spec.Source; s != nil {
		sources = append(slices.Clone(sources), *s)
	}
	for _, s := range sources {
		repos = append(repos, rutter.Repo{URL: s.RepoURL, Revision: s.TargetRevision})
	}
	return slices.ContainsFunc(repos, p.repo.owns)
}

// onlyLive adds the sets that no file declares, and the control plane has: what the
// repository changes also changes their Applications too. One that the base declares,
// and the head does not, goes.
func (p *planner) onlyLive(ctx context.Context, s *planSide) error {
	var sets []declared
	var names []string
	for _, set := range p.liveSets {
		name := p.display(set.Namespace, set.Name)
		if before := p.base.sets[name]; s.sets[name] != nil || s != p.base && before != nil && !before.from.live {
			continue
		}
		sets = append(sets, declared{object: set, live: true})
		names = append(names, name)
	}
	if len(sets) == 0 {
		return nil
	}
	p.note("Declared in no file here, and taken from the control plane because they read this repository: sets " + few(names) + ".")
	_, err := p.follow(ctx, s, sets)
	return err
}

// believed names the clusters of which nobody knows whether they are there.
func (p *planner) believed() []string {
	var names []string
	for _, u := range p.head.units {
		if u.believed && !slices.Contains(names, u.cluster.Name) {
			names = append(names, u.cluster.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"Whether these clusters are there is not known without an inventory, and is believed: " + few(names) + "."}
}

// few names the first of some, and counts the rest.
func few(names []string) string {
	const most = 5
	if rest := len(names) - most; rest > 0 {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", rest)
	}
	return strings.Join(names, ", ")
}
