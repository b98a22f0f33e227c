package forge

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// azure speaks the API of Azure DevOps.
type azure struct{}

const (
	azureVersion = "6.0"
	azureRefs    = 1000
	refsHeads    = "refs/heads/"
)

func (azure) api(q rutter.ForgeQuery) (string, error) {
	if err := segment("organization", q.Owner); err != nil {
		return "", err
	}
	if err := segment("teamProject", q.Project); err != nil {
		return "", err
	}
	if q.API == "" {
		return "https://dev.azure.com", nil
	}
	return strings.TrimRight(strings.TrimSpace(q.API), "/"), nil
}

type azureRepo struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	RemoteURL     string `json:"remoteUrl"`
	DefaultBranch string `json:"defaultBranch"`
	IsDisabled    bool   `json:"isDisabled"`
}

func (r azureRepo) lacks() string {
	switch {
	case r.ID == "" || r.Name == "":
		return "id and name"
	case r.RemoteURL == "":
		return "remoteUrl"
	}
	return ""
}

type azureRef struct {
	Name     string `json:"name"`
	ObjectID string `json:"objectId"`
}

func (r azureRef) lacks() string {
	return unless(strings.HasPrefix(r.Name, refsHeads) && r.ObjectID != "", "name and objectId")
}

type azurePull struct {
	ID         int64  `json:"pullRequestId"`
	Title      string `json:"title"`
	Source     string `json:"sourceRefName"`
	Target     string `json:"targetRefName"`
	LastCommit struct {
		ID string `json:"commitId"`
	} `json:"lastMergeSourceCommit"`
	CreatedBy struct {
		UniqueName string `json:"uniqueName"`
	} `json:"createdBy"`
	Labels []struct {
		Name   string `json:"name"`
		Active *bool  `json:"active"`
	} `json:"labels"`
}

func (p azurePull) lacks() string {
	switch {
	case p.ID == 0:
		return "pullRequestId"
	case p.Source == "" || p.Target == "":
		return "sourceRefName and targetRefName"
	case p.LastCommit.ID == "":
		return "lastMergeSourceCommit"
	}
	return ""
}

// value takes the part of an author's name that is before the @ of the address.
func (p azurePull) value() rutter.ForgePullRequest {
	author, _, _ := strings.Cut(p.CreatedBy.UniqueName, "@")
	pr := rutter.ForgePullRequest{
		Number: p.ID, Title: p.Title, Branch: strings.TrimPrefix(p.Source, refsHeads), TargetBranch: strings.TrimPrefix(p.Target, refsHeads),
		HeadSHA: p.LastCommit.ID, Author: author,
	}
	for _, l := range p.Labels {
		if l.Active == nil || *l.Active {
			pr.Labels = append(pr.Labels, l.Name)
		}
	}
	return pr
}

type azurePage struct {
	Count *int            `json:"count"`
	Value json.RawMessage `json:"value"`
}

func (p azurePage) lacks() string { return unless(p.Count != nil && p.Value != nil, "count and value") }

// azureItems reads a part, which says how many elements it has itself.
func azureItems[T promise](r *reply) ([]T, error) {
	outer, err := one[azurePage](r)
	if err != nil {
		return nil, err
	}
	items, err := elements[T](outer.Value)
	if err == nil && len(items) != *outer.Count {
		err = rutter.Errorf(rutter.CodeUnavailable, "the answer promises %d elements and has %d", *outer.Count, len(items))
	}
	return items, err
}

// azureToken reads a part that is followed by another by a token.
func azureToken[T promise](q question, r *reply) (page[T], error) {
	items, err := azureItems[T](r)
	p := page[T]{items: items, total: -1}
	if token := r.header.Get("X-Ms-Continuationtoken"); err == nil && token != "" {
		p.next = with(q, "continuationToken", token)
	}
	return p, err
}

// azureSkip reads a part that is followed by another when it is full.
func azureSkip[T promise](q question, r *reply) (page[T], error) {
	items, err := azureItems[T](r)
	p := page[T]{items: items, total: -1}
	if err == nil && len(items) >= perPage {
		before, _ := strconv.Atoi(q.url.Query().Get("$skip")) // the first has none
		p.next = with(q, "$skip", strconv.Itoa(before+len(items)))
	}
	return p, err
}

// with is a question with another parameter.
func with(q question, key, value string) *question {
	params := q.url.Query()
	params.Set(key, value)
	u := *q.url
	u.RawQuery = params.Encode()
	q.url = &u
	return &q
}

func (azure) question(s *session, what string, params url.Values, parts ...string) question {
	if params == nil {
		params = url.Values{}
	}
	params.Set("api-version", azureVersion)
	return question{what: what, url: s.at(params, append([]string{s.q.Owner, s.q.Project, "_apis", "git", "repositories"}, parts...)...)}
}

func (a azure) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	if s.q.CloneProtocol != "" && s.q.CloneProtocol != "https" {
		return nil, s.fail(s.what, rutter.CodeInvalid, "cloneProtocol %s is not one that Azure DevOps has here: use https", quote(s.q.CloneProtocol))
	}
	repos, err := walk(ctx, s, a.question(s, s.what, nil), lister[azureRepo]{
		read: azureToken[azureRepo], id: func(r azureRepo) string { return r.ID }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r azureRepo) ([]rutter.ForgeRepo, error) {
		// A repository in which nothing is has no default branch; one that is switched off cannot be read.
		if r.IsDisabled || r.DefaultBranch == "" && !s.q.AllBranches {
			return nil, nil
		}
		branch := strings.TrimPrefix(r.DefaultBranch, refsHeads)
		if s.q.AllBranches {
			branch = ""
		}
		refs, err := a.refs(ctx, s, "the branches of "+quote(s.q.Project+"/"+r.Name), r.ID, branch)
		return values(refs, func(ref azureRef) rutter.ForgeRepo {
			return rutter.ForgeRepo{
				Organization: s.q.Owner, Repository: r.Name, RepositoryID: r.ID, URL: r.RemoteURL,
				Branch: strings.TrimPrefix(ref.Name, refsHeads), SHA: ref.ObjectID,
			}
		}), err
	})
}

// refs are all branches, or the one that is named: the filter is by how names begin.
func (a azure) refs(ctx context.Context, s *session, what, id, branch string) ([]azureRef, error) {
	q := a.question(s, what, url.Values{"filter": {"heads/" + branch}, "$top": {strconv.Itoa(azureRefs)}}, id, "refs")
	refs, err := walk(ctx, s, q, lister[azureRef]{read: azureToken[azureRef], id: func(r azureRef) string { return r.Name }, pinned: true})
	if err != nil || branch == "" {
		return refs, err
	}
	for _, ref := range refs {
		if ref.Name == refsHeads+branch {
			return []azureRef{ref}, nil
		}
	}
	return nil, s.fail(what, rutter.CodeUnavailable, "branch %s is not there, although the repository says so: check it", quote(branch))
}

func (a azure) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if err := segment("repo", s.q.Repo); err != nil {
		return nil, s.wrap(s.what, err)
	}
	q := a.question(s, s.what, url.Values{"searchCriteria.status": {"active"}, "$top": {strconv.Itoa(perPage)}}, s.q.Repo, "pullrequests")
	pulls, err := walk(ctx, s, q, lister[azurePull]{
		read: azureSkip[azurePull], id: func(p azurePull) string { return strconv.FormatInt(p.ID, 10) }, gone: rutter.CodeNotFound,
	})
	return values(pulls, azurePull.value), err
}

func (a azure) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	params := url.Values{"path": {"/" + path}, "versionDescriptor.version": {repo.Branch}, "versionDescriptor.versionType": {"branch"}, "$format": {"json"}}
	q := a.question(s, s.what, params, repo.RepositoryID, "items")
	q.statusOnly = true
	r, err := s.ask(ctx, q)
	if err != nil || !r.missing() {
		return err == nil, err
	}
	found, err := a.refs(ctx, s, s.what, repo.RepositoryID, repo.Branch)
	return false, s.absent(err, len(found) > 0)
}
