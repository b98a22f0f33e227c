package forge

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// bitbucketServer speaks version 1.0 of the API of Bitbucket Server and Data Center.
type bitbucketServer struct{}

func (bitbucketServer) api(q rutter.ForgeQuery) (string, error) {
	if err := segment("project", serverProject(q)); err != nil {
		return "", err
	}
	if q.API == "" {
		return "", rutter.Errorf(rutter.CodeInvalid, "api is empty: write the server's address")
	}
	return strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(q.API), "/"), "/rest") + "/rest/api/1.0", nil
}

// serverProject is the project, by whichever of its names.
func serverProject(q rutter.ForgeQuery) string {
	if q.Owner == "" {
		return q.Project
	}
	return q.Owner
}

type serverRepo struct {
	ID      int64  `json:"id"`
	Slug    string `json:"slug"`
	Project struct {
		Key string `json:"key"`
	} `json:"project"`
	Links struct {
		Clone []cloneLink `json:"clone"`
	} `json:"links"`
	Archived bool `json:"archived"`
}

type cloneLink struct {
	Name string `json:"name"`
	Href string `json:"href"`
}

func (r serverRepo) lacks() string {
	switch {
	case r.ID == 0:
		return "id"
	case r.Slug == "" || r.Project.Key == "":
		return "slug and project"
	}
	return ""
}

type serverBranch struct {
	ID           string `json:"id"`
	DisplayID    string `json:"displayId"`
	LatestCommit string `json:"latestCommit"`
	IsDefault    bool   `json:"isDefault"`
}

func (b serverBranch) lacks() string {
	return unless(b.DisplayID != "" && b.LatestCommit != "", "displayId and latestCommit")
}

type serverPull struct {
	ID      int64        `json:"id"`
	Title   string       `json:"title"`
	FromRef serverBranch `json:"fromRef"`
	ToRef   serverBranch `json:"toRef"`
	Author  struct {
		User struct {
			Name string `json:"name"`
		} `json:"user"`
	} `json:"author"`
}

func (p serverPull) lacks() string {
	switch {
	case p.ID == 0:
		return "id"
	case p.FromRef.lacks() != "":
		return "fromRef"
	case p.ToRef.DisplayID == "":
		return "toRef"
	}
	return ""
}

func (p serverPull) value() rutter.ForgePullRequest {
	return rutter.ForgePullRequest{
		Number: p.ID, Title: p.Title, Branch: p.FromRef.DisplayID, TargetBranch: p.ToRef.DisplayID, HeadSHA: p.FromRef.LatestCommit, Author: p.Author.User.Name,
	}
}

type serverPage struct {
	Values json.RawMessage `json:"values"`
	Last   *bool           `json:"isLastPage"`
	Next   *int64          `json:"nextPageStart"`
}

func (p serverPage) lacks() string {
	switch {
	case p.Last == nil:
		return "isLastPage"
	case !*p.Last && p.Next == nil:
		return "nextPageStart"
	}
	return ""
}

func serverPart[T promise](q question, r *reply) (page[T], error) {
	outer, err := one[serverPage](r)
	if err != nil {
		return page[T]{}, err
	}
	items, err := elements[T](outer.Values)
	if err != nil || *outer.Last {
		return page[T]{items: items, total: -1}, err
	}
	params := q.url.Query()
	params.Set("start", strconv.FormatInt(*outer.Next, 10))
	u := *q.url
	u.RawQuery = params.Encode()
	q.url = &u
	return page[T]{items: items, next: &q, total: -1}, nil
}

func (b bitbucketServer) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	first := question{what: s.what, url: s.at(url.Values{"limit": {strconv.Itoa(perPage)}}, "projects", serverProject(s.q), "repos")}
	repos, err := walk(ctx, s, first, lister[serverRepo]{
		read: serverPart[serverRepo], id: func(r serverRepo) string { return strconv.FormatInt(r.ID, 10) }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r serverRepo) ([]rutter.ForgeRepo, error) { return b.branches(ctx, s, r) })
}

func (b bitbucketServer) branches(ctx context.Context, s *session, r serverRepo) ([]rutter.ForgeRepo, error) {
	address, err := cloneURL(s.q, linkOf(r.Links.Clone, "ssh"), linkOf(r.Links.Clone, "http"))
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	what := "the branches of " + quote(r.Project.Key+"/"+r.Slug)
	var found []serverBranch
	if s.q.AllBranches {
		found, err = b.all(ctx, s, what, r.Project.Key, r.Slug)
	} else {
		found, err = b.standard(ctx, s, what, r.Project.Key, r.Slug)
	}
	if err != nil {
		return nil, err
	}
	out := make([]rutter.ForgeRepo, 0, len(found))
	for _, branch := range found {
		out = append(out, rutter.ForgeRepo{
			Organization: r.Project.Key, Repository: r.Slug, RepositoryID: strconv.FormatInt(r.ID, 10), URL: address,
			Branch: branch.DisplayID, SHA: branch.LatestCommit,
		})
	}
	return out, nil
}

func linkOf(links []cloneLink, name string) string {
	for _, l := range links {
		if l.Name == name {
			return l.Href
		}
	}
	return ""
}

func (bitbucketServer) all(ctx context.Context, s *session, what, project, repo string) ([]serverBranch, error) {
	query := url.Values{"limit": {strconv.Itoa(perPage)}}
	return walk(ctx, s, question{what: what, url: s.at(query, "projects", project, "repos", repo, "branches")}, lister[serverBranch]{
		read: serverPart[serverBranch], id: func(b serverBranch) string { return b.DisplayID },
	})
}

// standard asks for the default branch with its commit. Servers that have not
// this question any more are asked for all branches.
func (b bitbucketServer) standard(ctx context.Context, s *session, what, project, repo string) ([]serverBranch, error) {
	r, err := s.ask(ctx, question{what: what, url: s.at(nil, "projects", project, "repos", repo, "branches", "default")})
	if err != nil {
		return nil, err
	}
	if !r.missing() {
		branch, err := one[serverBranch](r)
		if err != nil {
			return nil, s.wrap(what, err)
		}
		return []serverBranch{branch}, nil
	}
	if serverException(r, "NoDefaultBranchException") {
		return nil, nil // nothing is in it
	}
	all, err := b.all(ctx, s, what, project, repo)
	if err != nil {
		return nil, err
	}
	for _, branch := range all {
		if branch.IsDefault {
			return []serverBranch{branch}, nil
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	return nil, s.fail(what, rutter.CodeUnavailable, "none of its %d branches is said to be the default one: set it in the repository", len(all))
}

// serverException tells by its name why something is missing.
func serverException(r *reply, name string) bool {
	var refusal struct {
		Errors []struct {
			ExceptionName string `json:"exceptionName"`
		} `json:"errors"`
	}
	if json.Unmarshal(r.body, &refusal) != nil {
		return false
	}
	for _, e := range refusal.Errors {
		if strings.HasSuffix(e.ExceptionName, "."+name) {
			return true
		}
	}
	return false
}

func (b bitbucketServer) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if err := segment("repo", s.q.Repo); err != nil {
		return nil, s.wrap(s.what, err)
	}
	query := url.Values{"state": {"OPEN"}, "order": {"OLDEST"}, "limit": {strconv.Itoa(perPage)}}
	first := question{what: s.what, url: s.at(query, "projects", serverProject(s.q), "repos", s.q.Repo, "pull-requests")}
	pulls, err := walk(ctx, s, first, lister[serverPull]{
		read: serverPart[serverPull], id: func(p serverPull) string { return strconv.FormatInt(p.ID, 10) }, gone: rutter.CodeNotFound,
	})
	return values(pulls, serverPull.value), err
}

func (bitbucketServer) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	parts := append([]string{"projects", repo.Organization, "repos", repo.Repository, "browse"}, strings.Split(path, "/")...)
	r, err := s.ask(ctx, question{what: s.what, url: s.at(url.Values{"at": {"refs/heads/" + repo.Branch}, "type": {"true"}}, parts...)})
	switch {
	case err != nil:
		return false, err
	case r.missing() && serverException(r, "NoSuchPathException"):
		return false, nil
	case r.missing():
		return false, s.fail(s.what, rutter.CodeUnavailable, "the branch was listed a moment ago and cannot be read now%s", s.said(r.body))
	}
	if _, err := one[serverEntry](r); err != nil {
		return false, s.wrap(s.what, err)
	}
	return true, nil
}

type serverEntry struct {
	Type string `json:"type"`
}

func (e serverEntry) lacks() string { return unless(e.Type != "", "type") }
