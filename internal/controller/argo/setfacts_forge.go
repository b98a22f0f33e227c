package argo

import (
	"encoding/json"
	"errors"

	"github.com/rutterhq/rutter"
)

// forges are the hosting services, if the operator lets this set ask them
// (reference 5.14).
func (f *facts) forges() (rutter.Forges, error) {
	op := f.set.opts.Sets
	switch {
	case op.Forges == nil:
		return nil, rutter.Errorf(rutter.CodeForbidden, "scmProvider and pullRequest generators are turned off: start the controller without --enable-scm-providers=false")
	case f.namespace != f.set.opts.Namespace && !op.ForgesListed:
		return nil, rutter.Errorf(rutter.CodeForbidden, "ApplicationSets outside of namespace %s may use scmProvider and pullRequest generators only when the hosts are listed: start the controller with --allowed-scm-providers", f.set.opts.Namespace)
	}
	return op.Forges, nil
}

// questionOf is what tells questions to hosting services apart.
func questionOf(kind string, q rutter.ForgeQuery, more ...string) (string, error) {
	raw, err := json.Marshal(append([]string{kind}, more...))
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "encode a question: %w", err)
	}
	query, err := json.Marshal(q)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "encode a question: %w", err)
	}
	return string(raw) + string(query), nil
}

// pullRequests is the kind of questions for them.
const pullRequests = "pullRequests"

// Repositories implements generate.ForgeFacts.
func (f *facts) Repositories(q rutter.ForgeQuery) ([]rutter.ForgeRepo, error) {
	return askForge(f, "repositories", q, nil, func(to rutter.Forges) ([]rutter.ForgeRepo, error) { return to.Repositories(f.ctx, q) })
}

// PullRequests implements generate.ForgeFacts.
func (f *facts) PullRequests(q rutter.ForgeQuery) ([]rutter.ForgePullRequest, error) {
	return askForge(f, pullRequests, q, nil, func(to rutter.Forges) ([]rutter.ForgePullRequest, error) { return to.PullRequests(f.ctx, q) })
}

// PathExists implements generate.ForgeFacts.
func (f *facts) PathExists(q rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error) {
	return askForge(f, "path", q, []string{repo.Organization, repo.Repository, repo.Branch, repo.SHA, path},
		func(to rutter.Forges) (bool, error) { return to.PathExists(f.ctx, q, repo, path) })
}

func askForge[T any](f *facts, kind string, q rutter.ForgeQuery, more []string, ask func(rutter.Forges) (T, error)) (T, error) {
	var none T
	key, err := questionOf(kind, q, more...)
	if err != nil {
		return none, err
	}
	if _, asked := f.answers[key]; !asked && more == nil {
		one := askedForge{query: q, pulls: kind == pullRequests}
		f.asked = append(f.asked, one)
		f.set.listeners.noteForge(f.key, one)
	}
	return once(f, key, func() (T, error) {
		to, err := f.forges()
		if err != nil {
			return none, err
		}
		return ask(to)
	})
}

var errNoServices = errors.New("no service of parameters can be asked by this process")
