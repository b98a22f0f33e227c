package forge

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// gitea speaks version 1 of Gitea's API, which Forgejo has too.
type gitea struct{}

// giteaPage is what a server gives at most unless it is configured otherwise.
const giteaPage = 50

func (gitea) api(q rutter.ForgeQuery) (string, error) {
	if err := segment("owner", q.Owner); err != nil {
		return "", err
	}
	if q.API == "" {
		return "", rutter.Errorf(rutter.CodeInvalid, "api is empty: write the server's address")
	}
	return strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(q.API), "/"), "/api/v1") + "/api/v1", nil
}

type giteaRepo struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Owner struct {
		Login string `json:"login"`
	} `json:"owner"`
	DefaultBranch string `json:"default_branch"`
	SSHURL        string `json:"ssh_url"`
	CloneURL      string `json:"clone_url"`
	Archived      *bool  `json:"archived"`
	Empty         bool   `json:"empty"`
}

func (r giteaRepo) lacks() string {
	switch {
	case r.ID == 0:
		return "id"
	case r.Name == "" || r.Owner.Login == "":
		return "name and owner"
	case r.DefaultBranch == "" && !r.Empty:
		return "default_branch"
	case r.Archived == nil:
		return "archived"
	}
	return ""
}

type giteaLabel struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

func (l giteaLabel) lacks() string { return unless(l.ID != 0 && l.Name != "", "id and name") }

type giteaOwner struct {
	ID int64 `json:"id"`
}

func (o giteaOwner) lacks() string { return unless(o.ID != 0, "id") }

// giteaPart reads a part. The promised length counts also what the login may
// not see, so it is a promise of pages only: a list that is longer than one page must
// say where the next one is.
func giteaPart[T promise](s *session) func(question, *reply) (page[T], error) {
	return func(q question, r *reply) (page[T], error) {
		items, err := array[T](r)
		if err != nil {
			return page[T]{}, err
		}
		next, pages, err := s.numbered(q, r, len(items), giteaPage)
		if err == nil && next == nil && pages == 0 && r.header.Get("Link") == "" && promised(r.header, "X-Total-Count") > giteaPage {
			err = rutter.Errorf(rutter.CodeUnavailable, "the answer promises %d elements and names no next page: check what stands in front of the service", promised(r.header, "X-Total-Count"))
		}
		return page[T]{items: items, next: next, total: -1, pages: pages}, err
	}
}

// giteaBranch has the form of GitLab's.
type giteaBranch = gitlabBranch

func (g gitea) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	kind, err := g.ownerKind(ctx, s)
	if err != nil {
		return nil, err
	}
	first := question{what: s.what, url: s.at(url.Values{"limit": {strconv.Itoa(giteaPage)}, "page": {"1"}}, kind, s.q.Owner, "repos")}
	repos, err := walk(ctx, s, first, lister[giteaRepo]{
		read: giteaPart[giteaRepo](s), id: func(r giteaRepo) string { return strconv.FormatInt(r.ID, 10) }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r giteaRepo) ([]rutter.ForgeRepo, error) {
		if r.Empty || *r.Archived && !s.q.IncludeArchived {
			return nil, nil
		}
		return g.branches(ctx, s, r)
	})
}

// ownerKind tells whether the owner is an organization or a user.
func (g gitea) ownerKind(ctx context.Context, s *session) (string, error) {
	for _, kind := range []string{"orgs", "users"} {
		r, err := s.ask(ctx, question{what: s.what, url: s.at(nil, kind, s.q.Owner)})
		if err != nil {
			return "", err
		}
		if r.missing() {
			continue
		}
		if _, err := one[giteaOwner](r); err != nil {
			return "", s.wrap(s.what, err)
		}
		return kind, nil
	}
	return "", s.fail(s.what, rutter.CodeNotFound, "there is no such organization or user, or the login may not see it: correct owner")
}

func (g gitea) branches(ctx context.Context, s *session, r giteaRepo) ([]rutter.ForgeRepo, error) {
	address, err := cloneURL(s.q, r.SSHURL, r.CloneURL)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	full := quote(r.Owner.Login + "/" + r.Name)
	query := url.Values{"limit": {strconv.Itoa(giteaPage)}, "page": {"1"}}
	labels, err := walk(ctx, s, question{what: "the labels of " + full, url: s.at(query, "repos", r.Owner.Login, r.Name, "labels")}, lister[giteaLabel]{
		read: giteaPart[giteaLabel](s), id: func(l giteaLabel) string { return strconv.FormatInt(l.ID, 10) },
	})
	if err != nil {
		return nil, err
	}
	var found []giteaBranch
	what := "the branches of " + full
	if s.q.AllBranches {
		found, err = walk(ctx, s, question{what: what, url: s.at(query, "repos", r.Owner.Login, r.Name, "branches")}, lister[giteaBranch]{
			read: giteaPart[giteaBranch](s), id: func(b giteaBranch) string { return b.Name },
		})
	} else {
		found, err = g.branch(ctx, s, what, r.Owner.Login, r.Name, r.DefaultBranch)
	}
	if err != nil {
		return nil, err
	}
	out := make([]rutter.ForgeRepo, 0, len(found))
	for _, b := range found {
		out = append(out, rutter.ForgeRepo{
			Organization: r.Owner.Login, Repository: r.Name, RepositoryID: strconv.FormatInt(r.ID, 10), URL: address,
			Branch: b.Name, SHA: b.Commit.ID, Labels: values(labels, func(l giteaLabel) string { return l.Name }),
		})
	}
	return out, nil
}

// branch asks for one that must be there: repositories without any say so themselves.
func (g gitea) branch(ctx context.Context, s *session, what, owner, repo, branch string) ([]giteaBranch, error) {
	parts := append([]string{"repos", owner, repo, "branches"}, strings.Split(branch, "/")...)
	r, err := s.ask(ctx, question{what: what, url: s.at(nil, parts...)})
	if err != nil {
		return nil, err
	}
	if r.missing() {
		return nil, s.fail(what, rutter.CodeUnavailable, "branch %s is not there, although the repository says so: check it, and give the login read access to the code", quote(branch))
	}
	b, err := one[giteaBranch](r)
	if err != nil {
		return nil, s.wrap(what, err)
	}
	return []giteaBranch{b}, nil
}

// pullRequests are of the form that GitHub's have.
func (g gitea) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if err := segment("repo", s.q.Repo); err != nil {
		return nil, s.wrap(s.what, err)
	}
	query := url.Values{"state": {"open"}, "sort": {"oldest"}, "limit": {strconv.Itoa(giteaPage)}, "page": {"1"}}
	first := question{what: s.what, url: s.at(query, "repos", s.q.Owner, s.q.Repo, "pulls")}
	pulls, err := walk(ctx, s, first, lister[githubPull]{
		read: giteaPart[githubPull](s), id: func(p githubPull) string { return strconv.FormatInt(p.Number, 10) }, gone: rutter.CodeNotFound,
	})
	return values(pulls, githubPull.value), err
}

func (g gitea) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	parts := append([]string{"repos", repo.Organization, repo.Repository, "contents"}, strings.Split(path, "/")...)
	r, err := s.ask(ctx, question{what: s.what, statusOnly: true, url: s.at(url.Values{"ref": {repo.Branch}}, parts...)})
	if err != nil || !r.missing() {
		return err == nil, err
	}
	found, err := g.branch(ctx, s, s.what, repo.Organization, repo.Repository, repo.Branch)
	return false, s.absent(err, len(found) > 0)
}
