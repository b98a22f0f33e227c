package forge

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// gitlab speaks version 4 of GitLab's REST API.
type gitlab struct{}

func (gitlab) api(q rutter.ForgeQuery) (string, error) {
	field, value := "group", q.Owner
	if q.Project != "" {
		field, value = "project", q.Project
	}
	if err := name(field, strings.Trim(value, "/")); err != nil {
		return "", err
	}
	if q.API == "" {
		return "https://gitlab.com/api/v4", nil
	}
	return strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(q.API), "/"), "/api/v4") + "/api/v4", nil
}

type gitlabProject struct {
	ID                int64  `json:"id"`
	Path              string `json:"path"`
	PathWithNamespace string `json:"path_with_namespace"`
	Namespace         struct {
		FullPath string `json:"full_path"`
	} `json:"namespace"`
	DefaultBranch    string   `json:"default_branch"`
	SSHURL           string   `json:"ssh_url_to_repo"`
	HTTPURL          string   `json:"http_url_to_repo"`
	Topics           []string `json:"topics"`
	TagList          []string `json:"tag_list"`
	Archived         bool     `json:"archived"`
	EmptyRepo        bool     `json:"empty_repo"`
	RepositoryAccess string   `json:"repository_access_level"`
}

// lacks knows that a project without commits has no default branch, nor has one
// whose repository is switched off. Else that field is missing for logins that may
// not read the code, which must not look like a group without projects.
func (p gitlabProject) lacks() string {
	switch {
	case p.ID == 0:
		return "id"
	case p.Path == "" || p.Namespace.FullPath == "":
		return "path and namespace"
	case p.DefaultBranch == "" && !p.hollow():
		return "default_branch (project " + quote(p.PathWithNamespace) + "; the login needs to read its code)"
	}
	return ""
}

func (p gitlabProject) hollow() bool { return p.EmptyRepo || p.RepositoryAccess == "disabled" }

type gitlabBranch struct {
	Name   string `json:"name"`
	Commit struct {
		ID string `json:"id"`
	} `json:"commit"`
}

func (b gitlabBranch) lacks() string {
	return unless(b.Name != "" && b.Commit.ID != "", "name and commit")
}

type gitlabMerge struct {
	IID          int64    `json:"iid"`
	Title        string   `json:"title"`
	State        string   `json:"state"`
	SourceBranch string   `json:"source_branch"`
	TargetBranch string   `json:"target_branch"`
	SHA          string   `json:"sha"`
	Labels       []string `json:"labels"`
	Author       struct {
		Username string `json:"username"`
	} `json:"author"`
}

// lacks allows a merge request that is not open to have lost its commits.
func (m gitlabMerge) lacks() string {
	switch {
	case m.IID == 0:
		return "iid"
	case m.SourceBranch == "" || m.TargetBranch == "":
		return "source_branch and target_branch"
	case m.SHA == "" && m.State == "opened":
		return "sha"
	}
	return ""
}

func (m gitlabMerge) value() rutter.ForgePullRequest {
	return rutter.ForgePullRequest{
		Number: m.IID, Title: m.Title, Branch: m.SourceBranch, TargetBranch: m.TargetBranch, HeadSHA: m.SHA, Author: m.Author.Username, Labels: m.Labels,
	}
}

// gitlabPart reads a part of a list; short lists come with their length.
func gitlabPart[T promise](s *session) func(question, *reply) (page[T], error) {
	return func(q question, r *reply) (page[T], error) {
		items, err := array[T](r)
		if err != nil {
			return page[T]{}, err
		}
		next, pages, err := s.numbered(q, r, len(items), perPage)
		return page[T]{items: items, next: next, total: promised(r.header, "X-Total"), pages: pages}, err
	}
}

func (g gitlab) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	if s.q.Owner == "" {
		return nil, s.fail(s.what, rutter.CodeInvalid, "group is empty: set it")
	}
	query := url.Values{
		"per_page": {strconv.Itoa(perPage)}, "order_by": {"id"}, "sort": {"asc"},
		"include_subgroups": {strconv.FormatBool(s.q.IncludeSubgroups)}, "with_shared": {strconv.FormatBool(s.q.IncludeShared)},
	}
	if !s.q.IncludeArchived {
		query.Set("archived", "false")
	}
	if s.q.Topic != "" {
		query.Set("topic", s.q.Topic)
	}
	first := question{what: s.what, url: s.at(query, "groups", strings.Trim(s.q.Owner, "/"), "projects")}
	projects, err := walk(ctx, s, first, lister[gitlabProject]{
		read: gitlabPart[gitlabProject](s), id: func(p gitlabProject) string { return strconv.FormatInt(p.ID, 10) }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, projects, func(ctx context.Context, p gitlabProject) ([]rutter.ForgeRepo, error) {
		if p.hollow() || p.Archived && !s.q.IncludeArchived {
			return nil, nil
		}
		return g.branches(ctx, s, p)
	})
}

func (g gitlab) branches(ctx context.Context, s *session, p gitlabProject) ([]rutter.ForgeRepo, error) {
	address, err := cloneURL(s.q, p.SSHURL, p.HTTPURL)
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	var found []gitlabBranch
	what, id := "the branches of "+quote(p.PathWithNamespace), strconv.FormatInt(p.ID, 10)
	if s.q.AllBranches {
		query := url.Values{"per_page": {strconv.Itoa(perPage)}}
		found, err = walk(ctx, s, question{what: what, url: s.at(query, "projects", id, "repository", "branches")}, lister[gitlabBranch]{
			read: gitlabPart[gitlabBranch](s), id: func(b gitlabBranch) string { return b.Name },
		})
	} else {
		found, err = g.branch(ctx, s, what, id, p.DefaultBranch)
	}
	if err != nil {
		return nil, err
	}
	topics := p.Topics
	if topics == nil {
		topics = p.TagList
	}
	out := make([]rutter.ForgeRepo, 0, len(found))
	for _, b := range found {
		out = append(out, rutter.ForgeRepo{
			Organization: p.Namespace.FullPath, Repository: p.Path, RepositoryID: id, URL: address, Branch: b.Name, SHA: b.Commit.ID, Labels: topics,
		})
	}
	return out, nil
}

func (g gitlab) branch(ctx context.Context, s *session, what, id, branch string) ([]gitlabBranch, error) {
	r, err := s.ask(ctx, question{what: what, url: s.at(nil, "projects", id, "repository", "branches", branch)})
	if err != nil {
		return nil, err
	}
	if r.missing() {
		if strings.Contains(strings.ToLower(s.said(r.body)), "branch not found") {
			return nil, nil
		}
		return nil, s.fail(what, rutter.CodeUnavailable, "the project was listed a moment ago and cannot be read now%s: give the login read access to its code", s.said(r.body))
	}
	b, err := one[gitlabBranch](r)
	if err != nil {
		return nil, s.wrap(what, err)
	}
	return []gitlabBranch{b}, nil
}

func (g gitlab) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if s.q.Project == "" {
		return nil, s.fail(s.what, rutter.CodeInvalid, "project is empty: set its number or path")
	}
	query := url.Values{"per_page": {strconv.Itoa(perPage)}, "order_by": {"created_at"}, "sort": {"asc"}, "scope": {"all"}}
	if !slices.Contains([]string{"", "all", "opened", "closed", "merged", "locked"}, s.q.State) {
		return nil, s.fail(s.what, rutter.CodeInvalid, "pullRequestState %s is not one of opened, closed, merged, locked, or empty for all", quote(s.q.State))
	}
	if s.q.State != "" {
		query.Set("state", s.q.State)
	}
	if len(s.q.Labels) > 0 {
		query.Set("labels", strings.Join(s.q.Labels, ","))
	}
	first := question{what: s.what, url: s.at(query, "projects", strings.Trim(s.q.Project, "/"), "merge_requests")}
	merges, err := walk(ctx, s, first, lister[gitlabMerge]{
		read: gitlabPart[gitlabMerge](s), id: func(m gitlabMerge) string { return strconv.FormatInt(m.IID, 10) }, gone: rutter.CodeNotFound,
	})
	return values(merges, gitlabMerge.value), err
}

// pathExists asks for a folder, then for a file: GitLab has no question for either.
func (g gitlab) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	r, err := s.ask(ctx, question{what: s.what, url: s.at(url.Values{"path": {path}, "ref": {repo.Branch}, "per_page": {"1"}}, "projects", repo.RepositoryID, "repository", "tree")})
	if err != nil {
		return false, err
	}
	if !r.missing() {
		entries, err := array[gitlabEntry](r)
		if err != nil {
			return false, s.wrap(s.what, err)
		}
		if len(entries) > 0 {
			return true, nil
		}
	}
	r, err = s.ask(ctx, question{what: s.what, statusOnly: true, url: s.at(url.Values{"ref": {repo.Branch}}, "projects", repo.RepositoryID, "repository", "files", path)})
	if err != nil || !r.missing() {
		return err == nil, err
	}
	found, err := g.branch(ctx, s, s.what, repo.RepositoryID, repo.Branch)
	return false, s.absent(err, len(found) > 0)
}

type gitlabEntry struct {
	Path string `json:"path"`
}

func (e gitlabEntry) lacks() string { return unless(e.Path != "", "path") }
