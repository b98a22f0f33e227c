package forge

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// bitbucketCloud speaks version 2.0 of the API of bitbucket.org.
type bitbucketCloud struct{}

// cloudPulls is how many pull requests a page may have at most.
const cloudPulls = 50

func (bitbucketCloud) api(q rutter.ForgeQuery) (string, error) {
	if err := segment("owner", q.Owner); err != nil {
		return "", err
	}
	if q.API == "" {
		return "https://api.bitbucket.org/2.0", nil
	}
	return strings.TrimRight(strings.TrimSpace(q.API), "/"), nil
}

type cloudRepo struct {
	UUID       string `json:"uuid"`
	Slug       string `json:"slug"`
	MainBranch *struct {
		Name string `json:"name"`
	} `json:"mainbranch"`
	Links struct {
		Clone []cloneLink `json:"clone"`
	} `json:"links"`
}

func (r cloudRepo) lacks() string {
	switch {
	case r.UUID == "" || r.Slug == "":
		return "uuid and slug"
	case r.MainBranch != nil && r.MainBranch.Name == "":
		return "name of its mainbranch"
	}
	return ""
}

type cloudBranch struct {
	Name   string `json:"name"`
	Target struct {
		Hash string `json:"hash"`
	} `json:"target"`
}

func (b cloudBranch) lacks() string {
	return unless(b.Name != "" && b.Target.Hash != "", "name and target")
}

type cloudEnd struct {
	Branch struct {
		Name string `json:"name"`
	} `json:"branch"`
	Commit struct {
		Hash string `json:"hash"`
	} `json:"commit"`
}

type cloudPull struct {
	ID          int64    `json:"id"`
	Title       string   `json:"title"`
	Source      cloudEnd `json:"source"`
	Destination cloudEnd `json:"destination"`
	Author      struct {
		Nickname string `json:"nickname"`
	} `json:"author"`
}

func (p cloudPull) lacks() string {
	switch {
	case p.ID == 0:
		return "id"
	case p.Source.Branch.Name == "" || p.Source.Commit.Hash == "":
		return "source"
	case p.Destination.Branch.Name == "":
		return "destination"
	}
	return ""
}

func (p cloudPull) value() rutter.ForgePullRequest {
	return rutter.ForgePullRequest{
		Number: p.ID, Title: p.Title, Branch: p.Source.Branch.Name, TargetBranch: p.Destination.Branch.Name, HeadSHA: p.Source.Commit.Hash, Author: p.Author.Nickname,
	}
}

type cloudPage struct {
	Values json.RawMessage `json:"values"`
	Next   string          `json:"next"`
	Size   *int            `json:"size"`
}

func (p cloudPage) lacks() string { return unless(p.Values != nil, "values") }

func cloudPart[T promise](s *session) func(question, *reply) (page[T], error) {
	return func(q question, r *reply) (page[T], error) {
		outer, err := one[cloudPage](r)
		if err != nil {
			return page[T]{}, err
		}
		p := page[T]{total: -1}
		if p.items, err = elements[T](outer.Values); err != nil {
			return p, err
		}
		if outer.Size != nil {
			p.total = *outer.Size
		}
		if outer.Next != "" {
			p.next, err = s.follow(q, outer.Next)
		}
		return p, err
	}
}

func (b bitbucketCloud) repositories(ctx context.Context, s *session) ([]rutter.ForgeRepo, error) {
	first := question{what: s.what, url: s.at(url.Values{"pagelen": {strconv.Itoa(perPage)}, "sort": {"created_on"}}, "repositories", s.q.Owner)}
	repos, err := walk(ctx, s, first, lister[cloudRepo]{
		read: cloudPart[cloudRepo](s), id: func(r cloudRepo) string { return r.UUID }, gone: rutter.CodeNotFound,
	})
	if err != nil {
		return nil, err
	}
	return each(ctx, s, repos, func(ctx context.Context, r cloudRepo) ([]rutter.ForgeRepo, error) {
		if r.MainBranch == nil {
			return nil, nil // nothing is in it
		}
		return b.branches(ctx, s, r)
	})
}

func (b bitbucketCloud) branches(ctx context.Context, s *session, r cloudRepo) ([]rutter.ForgeRepo, error) {
	address, err := cloneURL(s.q, linkOf(r.Links.Clone, "ssh"), linkOf(r.Links.Clone, "https"))
	if err != nil {
		return nil, s.wrap(s.what, err)
	}
	var found []cloudBranch
	what := "the branches of " + quote(s.q.Owner+"/"+r.Slug)
	if s.q.AllBranches {
		query := url.Values{"pagelen": {strconv.Itoa(perPage)}}
		found, err = walk(ctx, s, question{what: what, url: s.at(query, "repositories", s.q.Owner, r.Slug, "refs", "branches")}, lister[cloudBranch]{
			read: cloudPart[cloudBranch](s), id: func(b cloudBranch) string { return b.Name },
		})
	} else {
		found, err = b.branch(ctx, s, what, r.Slug, r.MainBranch.Name)
	}
	if err != nil {
		return nil, err
	}
	out := make([]rutter.ForgeRepo, 0, len(found))
	for _, branch := range found {
		out = append(out, rutter.ForgeRepo{Organization: s.q.Owner, Repository: r.Slug, RepositoryID: r.UUID, URL: address, Branch: branch.Name, SHA: branch.Target.Hash})
	}
	return out, nil
}

// branch asks for one that must be there.
func (bitbucketCloud) branch(ctx context.Context, s *session, what, repo, branch string) ([]cloudBranch, error) {
	parts := append([]string{"repositories", s.q.Owner, repo, "refs", "branches"}, strings.Split(branch, "/")...)
	r, err := s.ask(ctx, question{what: what, url: s.at(nil, parts...)})
	if err != nil {
		return nil, err
	}
	if r.missing() {
		return nil, s.fail(what, rutter.CodeUnavailable, "branch %s is not there, although the repository says so%s: check it, and the login's access", quote(branch), s.said(r.body))
	}
	b, err := one[cloudBranch](r)
	if err != nil {
		return nil, s.wrap(what, err)
	}
	return []cloudBranch{b}, nil
}

// pullRequests have hashes of 12 characters: more Bitbucket does not give away
// without being asked for each.
func (bitbucketCloud) pullRequests(ctx context.Context, s *session) ([]rutter.ForgePullRequest, error) {
	if err := segment("repo", s.q.Repo); err != nil {
		return nil, s.wrap(s.what, err)
	}
	query := url.Values{"state": {"OPEN"}, "sort": {"created_on"}, "pagelen": {strconv.Itoa(cloudPulls)}}
	first := question{what: s.what, url: s.at(query, "repositories", s.q.Owner, s.q.Repo, "pullrequests")}
	pulls, err := walk(ctx, s, first, lister[cloudPull]{
		read: cloudPart[cloudPull](s), id: func(p cloudPull) string { return strconv.FormatInt(p.ID, 10) }, gone: rutter.CodeNotFound,
	})
	return values(pulls, cloudPull.value), err
}

// pathExists asks in the branch's commit: a branch may have a slash in its name.
func (b bitbucketCloud) pathExists(ctx context.Context, s *session, repo rutter.ForgeRepo, path string) (bool, error) {
	if err := segment("sha", repo.SHA); err != nil {
		return false, s.wrap(s.what, err)
	}
	parts := append([]string{"repositories", s.q.Owner, repo.Repository, "src", repo.SHA}, strings.Split(path, "/")...)
	r, err := s.ask(ctx, question{what: s.what, statusOnly: true, url: s.at(url.Values{"format": {"meta"}}, parts...)})
	if err != nil || !r.missing() {
		return err == nil, err
	}
	found, err := b.branch(ctx, s, s.what, repo.Repository, repo.Branch)
	return false, s.absent(err, len(found) > 0)
}
