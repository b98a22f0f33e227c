package argo

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/rutterhq/rutter"
)

// forges are the hosting services, if the operator lets this set ask them
// (reference 5.14).
func (f *facts) forges(ctx context.Context, q rutter.ForgeQuery) (rutter.Forges, error) {
	op := f.set.opts.Sets
	switch {
	case op.Forges == nil:
		return nil, rutter.Errorf(rutter.CodeForbidden, "scmProvider and pullRequest generators are turned off: start the controller without --enable-scm-providers=false")
	case f.namespace != f.set.opts.Namespace && !op.ForgesListed:
		return nil, rutter.Errorf(rutter.CodeForbidden, "ApplicationSets outside of namespace %s may use scmProvider and pullRequest generators only when the hosts are listed: start the controller with --allowed-scm-providers", f.set.opts.Namespace)
	}
	if q.AppSecret != "" && op.PermitApp != nil {
		project := f.project
		if isTemplated(project) {
			project = "" // who writes to a repository must not choose whose App logs in
		}
		if err := op.PermitApp(ctx, q.AppSecret, project); err != nil {
			return nil, err
		}
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
	return askForge(f, "repositories", q, listTime, nil, func(ctx context.Context, to rutter.Forges) ([]rutter.ForgeRepo, error) {
		return to.Repositories(ctx, q)
	})
}

// PullRequests implements generate.ForgeFacts.
func (f *facts) PullRequests(q rutter.ForgeQuery) ([]rutter.ForgePullRequest, error) {
	return askForge(f, pullRequests, q, listTime, nil, func(ctx context.Context, to rutter.Forges) ([]rutter.ForgePullRequest, error) {
		return to.PullRequests(ctx, q)
	})
}

// PathExists implements generate.ForgeFacts.
func (f *facts) PathExists(q rutter.ForgeQuery, repo rutter.ForgeRepo, path string) (bool, error) {
	return askForge(f, "path", q, lookTime, []string{repo.Organization, repo.Repository, repo.Branch, repo.SHA, path},
		func(ctx context.Context, to rutter.Forges) (bool, error) { return to.PathExists(ctx, q, repo, path) })
}

// askForge asks a hosting service once for each evaluation. A list is noted, for
// the webhooks that tell of its changes.
func askForge[T any](f *facts, kind string, q rutter.ForgeQuery, patience time.Duration, more []string,
	ask func(context.Context, rutter.Forges) (T, error),
) (T, error) {
	var none T
	key, err := questionOf(kind, q, more...)
	if err != nil {
		return none, err
	}
	if _, known := f.answers[key]; !known && more == nil {
		one := askedForge{query: q, pulls: kind == pullRequests}
		f.asked = append(f.asked, one)
		f.set.listeners.noteForge(f.key, one)
	}
	return once(f, key, func() (T, error) {
		return patiently(f, q, patience, func(ctx context.Context) (T, error) {
			to, err := f.forges(ctx, q)
			if err != nil {
				return none, err
			}
			return ask(ctx, to)
		})
	})
}

var errNoServices = errors.New("no service of parameters can be asked by this process")
