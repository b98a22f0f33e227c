package generate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// scmProvider answers with the repositories, or their branches, of an
// organisation at a hosting service.
func (ev *evaluator) scmProvider(n node) outcome {
	facts, ok := ev.facts.(ForgeFacts)
	if !ok {
		return unknowable(n, "hosting services")
	}
	q, err := repositoryQuery(n.producer(), ev.set.Namespace, n.leaf.SCMProvider)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	filters, err := newRepoFilters(n.producer(), n.leaf.SCMProvider.Filters)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	all, err := facts.Repositories(q)
	if err != nil {
		return failure(rutter.CodeOf(err), "%s: the repositories of %s cannot be listed: %w", n.producer(), q.Owner, err)
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b rutter.ForgeRepo) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Repository, b.Repository),
			cmp.Compare(a.Branch, b.Branch), cmp.Compare(a.URL, b.URL))
	})
	var out outcome
	for i, repo := range all {
		if i > 0 && sameBranch(all[i-1], repo) {
			continue // a page that moved while it was read shows an entry twice
		}
		pass, err := filters.pass(repo, func(path string) (bool, error) { return facts.PathExists(q, repo, path) })
		if err != nil {
			return failure(rutter.CodeOf(err), "%s: the branch %s of %s cannot be looked into: %w", n.producer(), repo.Branch, repo.Repository, err)
		}
		if pass {
			out.sets = append(out.sets, newSet(repoParams(repo), n.producer()))
		}
	}
	return out
}

func sameBranch(a, b rutter.ForgeRepo) bool {
	return a.Organization == b.Organization && a.Repository == b.Repository && a.Branch == b.Branch && a.URL == b.URL
}

// repoParams are the parameters of one branch of a repository, the same for
// both kinds of templates.
func repoParams(r rutter.ForgeRepo) map[string]any {
	return map[string]any{
		"organization": r.Organization, "repository": r.Repository, "repository_id": r.RepositoryID, "url": r.URL,
		"branch": r.Branch, "branchNormalized": normalize(r.Branch),
		"sha": r.SHA, "short_sha": head(r.SHA, 8), "short_sha_7": head(r.SHA, 7),
		"labels": strings.Join(r.Labels, ","),
	}
}

// head is the beginning of a text.
func head(text string, n int) string {
	if len(text) > n {
		return text[:n]
	}
	return text
}

// pullRequest answers with the pull requests of a repository.
func (ev *evaluator) pullRequest(n node) outcome {
	facts, ok := ev.facts.(ForgeFacts)
	if !ok {
		return unknowable(n, "hosting services")
	}
	g := n.leaf.PullRequest
	q, err := pullRequestQuery(n.producer(), ev.set.Namespace, g)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	filters, err := newPullFilters(n.producer(), g.Filters)
	if err != nil {
		return outcome{errs: []error{err}}
	}
	all, err := facts.PullRequests(q)
	if err != nil {
		if g.ContinueOnRepoNotFoundError && rutter.CodeOf(err) == rutter.CodeNotFound {
			return outcome{}
		}
		return failure(rutter.CodeOf(err), "%s: the pull requests cannot be listed: %w", n.producer(), err)
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b rutter.ForgePullRequest) int { return cmp.Compare(a.Number, b.Number) })
	var out outcome
	for i, pull := range all {
		if i > 0 && all[i-1].Number == pull.Number || !filters.pass(pull) {
			continue
		}
		params, err := ev.pullParams(pull)
		if err != nil {
			return failure(rutter.CodeInvalid, "%s: pull request %d: %w", n.producer(), pull.Number, err)
		}
		out.sets = append(out.sets, newSet(params, n.producer()))
	}
	return out
}

// pullParams are the parameters of a pull request. Its labels are a list, which
// only Go templates can have.
func (ev *evaluator) pullParams(p rutter.ForgePullRequest) (map[string]any, error) {
	branch, err := branchSlug(p.Branch)
	if err != nil {
		return nil, err
	}
	target, err := branchSlug(p.TargetBranch)
	if err != nil {
		return nil, err
	}
	params := map[string]any{
		"number": scalar(p.Number), "title": p.Title, "author": p.Author,
		"branch": p.Branch, "branch_slug": branch, "target_branch": p.TargetBranch, "target_branch_slug": target,
		"head_sha": p.HeadSHA, "head_short_sha": head(p.HeadSHA, 8), "head_short_sha_7": head(p.HeadSHA, 7),
	}
	if ev.goTemplate {
		labels := make([]any, len(p.Labels))
		for i, l := range p.Labels {
			labels[i] = l
		}
		params["labels"] = labels
	}
	return params, nil
}

// branchSlug is a branch as a part of a name.
func branchSlug(branch string) (string, error) {
	return slugify(50, true, strings.ReplaceAll(branch, "_", "-"))
}
