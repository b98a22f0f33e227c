package generate

import (
	"regexp"
	"slices"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/api/argoproj/v1alpha1"
)

// repoFilter is a conjunction: all that is set must hold.
type repoFilter struct {
	repository, label, branch *regexp.Regexp
	exist, absent             []string
}

// repoFilters are two groups of alternatives. An item that looks at branches or
// into them is of the second; a result passes one of each group that has any.
type repoFilters struct{ repos, branches []repoFilter }

// newRepoFilters compiles the filters of a generator.
func newRepoFilters(producer string, items []v1alpha1.SCMProviderGeneratorFilter) (repoFilters, error) {
	var all repoFilters
	for i, item := range items {
		f := repoFilter{exist: item.PathsExist, absent: item.PathsDoNotExist}
		err := compileAll(producer, i, []pattern{
			{"repositoryMatch", item.RepositoryMatch, &f.repository},
			{"labelMatch", item.LabelMatch, &f.label},
			{"branchMatch", item.BranchMatch, &f.branch},
		})
		if err != nil {
			return repoFilters{}, err
		}
		if f.branch != nil || len(f.exist)+len(f.absent) > 0 {
			all.branches = append(all.branches, f)
		} else {
			all.repos = append(all.repos, f)
		}
	}
	return all, nil
}

// pass decides about one branch. What costs a question is asked last.
func (all repoFilters) pass(r rutter.ForgeRepo, exists func(path string) (bool, error)) (bool, error) {
	if len(all.repos) > 0 && !slices.ContainsFunc(all.repos, func(f repoFilter) bool { return f.matches(r) }) {
		return false, nil
	}
	if len(all.branches) == 0 {
		return true, nil
	}
	for _, f := range all.branches {
		if !f.matches(r) {
			continue
		}
		if ok, err := f.paths(exists); err != nil || ok {
			return ok, err
		}
	}
	return false, nil
}

// matches holds when the name, a label and the branch match.
func (f repoFilter) matches(r rutter.ForgeRepo) bool {
	return matchesText(f.repository, r.Repository) && matchesText(f.branch, r.Branch) &&
		(f.label == nil || slices.ContainsFunc(r.Labels, f.label.MatchString))
}

// paths holds when all that must be there is, and nothing that must not be.
func (f repoFilter) paths(exists func(path string) (bool, error)) (bool, error) {
	for _, path := range f.exist {
		if ok, err := exists(path); err != nil || !ok {
			return false, err
		}
	}
	for _, path := range f.absent {
		if ok, err := exists(path); err != nil || ok {
			return false, err
		}
	}
	return true, nil
}

// pullFilter is a conjunction on a pull request.
type pullFilter struct{ branch, target, title *regexp.Regexp }

// pullFilters are alternatives; none at all lets everything pass.
type pullFilters []pullFilter

func newPullFilters(producer string, items []v1alpha1.PullRequestGeneratorFilter) (pullFilters, error) {
	all := make(pullFilters, len(items))
	for i, item := range items {
		f := &all[i]
		err := compileAll(producer, i, []pattern{
			{"branchMatch", item.BranchMatch, &f.branch},
			{"targetBranchMatch", item.TargetBranchMatch, &f.target},
			{"titleMatch", item.TitleMatch, &f.title},
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (all pullFilters) pass(p rutter.ForgePullRequest) bool {
	return len(all) == 0 || slices.ContainsFunc(all, func(f pullFilter) bool {
		return matchesText(f.branch, p.Branch) && matchesText(f.target, p.TargetBranch) && matchesText(f.title, p.Title)
	})
}

// pattern is one regular expression of a filter and where it goes.
type pattern struct {
	field string
	text  *string
	into  **regexp.Regexp
}

func compileAll(producer string, item int, patterns []pattern) error {
	for _, p := range patterns {
		if p.text == nil {
			continue
		}
		re, err := regexp.Compile(*p.text)
		if err != nil {
			return rutter.Errorf(rutter.CodeInvalid, "%s.filters[%d].%s: %q is not a regular expression (RE2): %w",
				producer, item, p.field, *p.text, err)
		}
		*p.into = re
	}
	return nil
}

// matchesText holds for an absent pattern.
func matchesText(re *regexp.Regexp, text string) bool { return re == nil || re.MatchString(text) }
