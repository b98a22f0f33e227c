package generate

import (
	"strings"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// Sources are the repositories that the set's git generators read, at any
// depth, each once and in the order of the set, so that they can be polled and
// matched with webhooks. Those whose address depends on parameters are left
// out: they are known only while the set is evaluated.
func Sources(set *v1alpha1.ApplicationSet) []rutter.Repo {
	var repos []rutter.Repo
	seen := map[rutter.Repo]bool{}
	walk(nodesOf(set), func(n node) {
		if n.kind != kindGit {
			return
		}
		repo := repoOf(set, n.leaf.Git)
		if isTemplate(repo.URL) || isTemplate(repo.Revision) || seen[repo] {
			return
		}
		seen[repo] = true
		repos = append(repos, repo)
	})
	return repos
}

// UsesClusters reports whether the set's answer depends on the member clusters.
func UsesClusters(set *v1alpha1.ApplicationSet) bool {
	uses := false
	walk(nodesOf(set), func(n node) {
		uses = uses || n.kind == kindClusters || n.kind == kindDecision
	})
	return uses
}

// repoOf is the repository of a git generator. Credentials of a project are
// used only when the set names that project itself: one that comes out of
// parameters could be chosen by whoever writes to the repository.
func repoOf(set *v1alpha1.ApplicationSet, g *v1alpha1.GitGenerator) rutter.Repo {
	repo := rutter.Repo{URL: g.RepoURL, Revision: g.Revision, Project: set.Spec.Template.Spec.Project}
	if isTemplate(repo.Project) {
		repo.Project = ""
	}
	if repo.Revision == "HEAD" {
		repo.Revision = ""
	}
	return repo
}

// isTemplate reports whether a text holds anything to render.
func isTemplate(text string) bool { return strings.Contains(text, "{{") }
