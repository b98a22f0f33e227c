package forge

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// github speaks version 3 of GitHub's REST API, there and on Enterprise servers.
type github struct{}

const perPage = 100

func (github) api(q rutter.ForgeQuery) (string, error) {
	if err := segment("organization", q.Owner); err != nil {
		return "", err
	}
	return githubAPI(q.API), nil
}

// githubAPI is where the API begins: on a server of one's own below /api/v3,
// which may be left out.
func githubAPI(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), "/")
	if text == "" {
		return "https://api.github.com"
	}
	u, err := url.Parse(text)
	if err != nil || u.Path != "" || strings.HasPrefix(u.Host, "api.") || strings.Contains(u.Host, ".api.") {
		return text
	}
	return text + "/api/v3"
}

type githubOwner struct {
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (o githubOwner) lacks() string {
	return unless(o.Login != "" && (o.Type == "Organization" || o.Type == "User"), "login and type")
}

type githubRepo struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Owner struct {
		Login string `json:"login"`
	} `json:"owner"`
	DefaultBranch string   `json:"default_branch"`
	SSHURL        string   `json:"ssh_url"`
	CloneURL      string   `json:"clone_url"`
	Archived      *bool    `json:"archived"`
	Topics        []string `json:"topics"`
}

func (r githubRepo) lacks() string {
	switch {
	case r.ID == 0:
		return "id"
	case r.Name == "" || r.Owner.Login == "":
		return "name and owner"
	case r.DefaultBranch == "":
		return "default_branch"
	case r.Archived == nil:
		return "archived"
	}
	return ""
}

type githubBranch struct {
	Name   string `json:"name"`
	Commit struct {
		SHA string `json:"sha"`
	} `json:"commit"`
}

func (b githubBranch) lacks() string {
	return unless(b.Name != "" && b.Commit.SHA != "", "name and commit")
}

type githubPull struct {
	Number int64  `json:"number"`
	Title  string `json:"title"`
	Head   struct {
		Ref string `json:"ref"`
		SHA string `json:"sha"`
	} `json:"head"`
	Base struct {
		Ref string `json:"ref"`
	} `json:"base"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	Labels []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

func (p githubPull) lacks() string {
	switch {
	case p.Number == 0:
		return "number"
	case p.Head.Ref == "" || p.Head.SHA == "":
		return "head"
	case p.Base.Ref == "":
		return "base"
	}
	return ""
}

func (p githubPull) value() rutter.ForgePullRequest {
	pr := rutter.ForgePullRequest{Number: p.Number, Title: p.Title, Branch: p.Head.Ref, TargetBranch: p.Base.Ref, HeadSHA: p.Head.SHA, Author: p.User.Login}
	for _, l := range p.Labels {
		pr.Labels = append(pr.Labels, l.Name)
	}
	return pr
}

// byNumber reads a part of a list that is a plain array.
func byNumber[T promise](s *session, full int) func(question, *reply) (page[T], error) {
	return func(q question, r *reply) (page[T], error) {
		items, err := array[T](r)
		if err != nil {
			return page[T]{}, err
		}
		next, pages, err := s.numbered(q, r, len(items), full)
		return page[T]{items: items, next: next, total: -1, pages: pages}, err
	}
}

const githubJSON = "application/vnd.github+json"

func (github) question(s *session, what string, query url.Values, parts ...string) question {
	return question{what: what, url: s.at(query, parts...), accept: githubJSON, header: map[string][]string{"X-Github-Api-Version": {"2022-11-28"}}}
}

// repositories asks first what the owner is: a list of a user's repositories exists
// for an organization too, and has only the public ones in it. It must never
// stand in for the organization's own.
func (g github) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	r, err := s.ask(ctx, g.question(s, s.what, nil, "users", s.q.Owner))
	if err != nil {
		return nil, err
	}
	if r.missing() {
		return nil, s.fail(s.what, rutter.CodeNotFound, "there is no such organization or user: correct organization")
	}
	owner, err := one[githubOwner](r)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "sort": {"created"}, "direction": {"asc"}, "type": {"owner"}}
	kind := "users"
	if owner.Type == "Organization" {
		kind = "orgs"
		query.Set("type", "all")
	}
	repos, err := walk(ctx, s, g.question(s, s.what, query, kind, s.q.Owner, "repos"), lister[githubRepo]{
		read: byNumber[githubRepo](s, perPage), id: func(r githubRepo) string { return strconv.FormatInt(r.ID, 10) }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r githubRepo) ([]rutter.ForgeRepo, error) {
		if *r.Archived && !s.q.IncludeArchived {
			return nil, nil
		}
		return g.branches(ctx, s, r)
	})
}

// branches are the ones of a repository that are asked for.
func (g github) branches(ctx context.Context, s *session, r githubRepo) ([]rutter.ForgeRepo, error) {
	address, err := cloneURL(s.q, r.SSHURL, r.CloneURL)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	var found []githubBranch
	what := "the branches of " + quote(r.Owner.Login+"/"+r.Name)
	if s.q.AllBranches {
		query := url.Values{"per_page": {strconv.Itoa(perPage)}}
		found, err = walk(ctx, s, g.question(s, what, query, "repos", r.Owner.Login, r.Name, "branches"), lister[githubBranch]{
			read: byNumber[githubBranch](s, perPage), id: func(b githubBranch) string { return b.Name },
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
			Branch: b.Name, SHA: b.Commit.SHA, Labels: r.Topics,
		})
	}
	return out, nil
}

// branch asks for one. A repository in which nothing is has none, which is told
// apart from one that cannot be read by what GitHub says.
func (g github) branch(ctx context.Context, s *session, what, owner, repo, branch string) ([]githubBranch, error) {
	r, err := s.ask(ctx, g.question(s, what, nil, "repos", owner, repo, "branches", branch))
	if err != nil {
		return nil, err
	}
	if r.missing() {
		if strings.Contains(strings.ToLower(s.said(r.body)), "branch not found") {
			return nil, nil
		}
		return nil, s.fail(what, rutter.CodeUnavailable, "the repository was listed a moment ago and cannot be read now: give the login read access to its contents")
	}
	b, err := one[githubBranch](r)
	if err != nil {
		return nil, s.wrap(what, err)
	}
	return []githubBranch{b}, nil
}

func (g github) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if err := segment("repo", s.q.Repo); err != nil {
		return nil, s.wrap(s.what, err)
	}
	query := url.Values{"state": {"open"}, "sort": {"created"}, "direction": {"asc"}, "per_page": {strconv.Itoa(perPage)}}
	pulls, err := walk(ctx, s, g.question(s, s.what, query, "repos", s.q.Owner, s.q.Repo, "pulls"), lister[githubPull]{
		read: byNumber[githubPull](s, perPage), id: func(p githubPull) string { return strconv.FormatInt(p.Number, 10) }, gone: rutter.CodeNotFound,
	})
	return values(pulls, githubPull.value), err
}

func (g github) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	parts := append([]string{"repos", repo.Organization, repo.Repository, "contents"}, strings.Split(path, "/")...)
	q := g.question(s, s.what, url.Values{"ref": {repo.Branch}}, parts...)
	q.statusOnly = true
	r, err := s.ask(ctx, q)
	if err != nil || !r.missing() {
		return err == nil, err
	}
	// What was not found may be the repository: it must still be readable.
	found, err := g.branch(ctx, s, s.what, repo.Organization, repo.Repository, repo.Branch)
	return false, s.absent(err, len(found) > 0)
}

// absent is the proof that a path is not in a branch: the branch is there.
func (s *session) absent(err error, branch bool) error {
	if err == nil && !branch {
		err = s.fail(s.what, rutter.CodeUnavailable, "the branch was listed a moment ago and is not there now")
	}
	return err
}

func values[T, R any](in []T, f func(T) R) []R {
	out := make([]R, 0, len(in))
	for _, v := range in {
		out = append(out, f(v))
	}
	return out
}
