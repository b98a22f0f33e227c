package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/rutterhq/rutter"
)

// event is what a webhook tells: a push or a change of a pull request. One that
// is neither concerns nobody.
type event struct {
	push *Push
	pull *PullRequest
}

// decode reads a payload.
func decode[T any](body []byte) (T, error) {
	var p T
	if err := json.Unmarshal(body, &p); err != nil {
		return p, fmt.Errorf("decode the payload: %w", err)
	}
	return p, nil
}

// hubPayload is what GitHub sends, and Gitea and Gogs after its model.
type hubPayload struct {
	Action     string `json:"action"`
	Number     int64  `json:"number"`
	Ref        string `json:"ref"`
	Repository struct {
		FullName      string `json:"full_name"`
		HTMLURL       string `json:"html_url"`
		CloneURL      string `json:"clone_url"`
		SSHURL        string `json:"ssh_url"`
		DefaultBranch string `json:"default_branch"`
	} `json:"repository"`
}

// hubActions are those after which a list of pull requests, or what is
// generated of one, may be another (reference 5.12, and what Gitea calls them).
var hubActions = []string{
	"opened", "closed", "reopened", "synchronize", "labeled", "unlabeled", "edited",
	"synchronized", "label_updated", "label_cleared",
}

// readHub reads events of a service that speaks as GitHub does; header names
// the event.
func readHub(provider, header string) func(http.Header, []byte) (event, error) {
	return func(h http.Header, body []byte) (event, error) {
		kind := h.Get(header)
		pull := strings.HasPrefix(kind, "pull_request") && !strings.HasPrefix(kind, "pull_request_review") && !strings.HasSuffix(kind, "_comment")
		if kind != "push" && kind != "repository" && !pull {
			return event{}, nil
		}
		p, err := decode[hubPayload](body)
		if err != nil {
			return event{}, err
		}
		r := p.Repository
		at := placeOf(provider, r.HTMLURL, r.FullName)
		switch {
		case !pull:
			return event{push: &Push{URLs: urls(r.HTMLURL, r.CloneURL, r.SSHURL), Ref: p.Ref, DefaultBranch: r.DefaultBranch, At: at}}, nil
		case slices.Contains(hubActions, p.Action):
			return event{pull: &PullRequest{At: at, Number: p.Number}}, nil
		}
		return event{}, nil
	}
}

type gitLabPayload struct {
	Kind    string `json:"object_kind"`
	Ref     string `json:"ref"`
	Project struct {
		ID            int64  `json:"id"`
		Path          string `json:"path_with_namespace"`
		WebURL        string `json:"web_url"`
		HTTPURL       string `json:"git_http_url"`
		SSHURL        string `json:"git_ssh_url"`
		DefaultBranch string `json:"default_branch"`
	} `json:"project"`
	Attributes struct {
		IID    int64  `json:"iid"`
		Action string `json:"action"`
	} `json:"object_attributes"`
}

// gitLabActions change a list of merge requests, or what is generated of one.
var gitLabActions = []string{"open", "close", "reopen", "update", "merge"}

func readGitLab(h http.Header, body []byte) (event, error) {
	kind := h.Get("X-Gitlab-Event")
	if !slices.Contains([]string{"Push Hook", "Tag Push Hook", "Merge Request Hook", "System Hook"}, kind) {
		return event{}, nil
	}
	p, err := decode[gitLabPayload](body)
	if err != nil {
		return event{}, err
	}
	r := p.Project
	at := placeOf(rutter.ForgeGitLab, r.WebURL, r.Path)
	if r.ID != 0 {
		at.ID = strconv.FormatInt(r.ID, 10)
	}
	switch {
	case kind == "Merge Request Hook" || p.Kind == "merge_request":
		if !slices.Contains(gitLabActions, p.Attributes.Action) {
			return event{}, nil
		}
		return event{pull: &PullRequest{At: at, Number: p.Attributes.IID}}, nil
	case kind == "System Hook" && r.WebURL == "" && r.HTTPURL == "":
		return event{}, nil // of a user, a key, a group
	}
	return event{push: &Push{URLs: urls(r.WebURL, r.HTTPURL, r.SSHURL), Ref: p.Ref, DefaultBranch: r.DefaultBranch, At: at}}, nil
}

type bitbucketServerRepo struct {
	Slug    string `json:"slug"`
	Project struct {
		Key string `json:"key"`
	} `json:"project"`
	Links struct {
		Clone []struct {
			Href string `json:"href"`
		} `json:"clone"`
	} `json:"links"`
}

func (r bitbucketServerRepo) place() Place {
	at := Place{Provider: rutter.ForgeBitbucketServer, Owner: r.Project.Key, Repo: r.Slug}
	for _, l := range r.Links.Clone {
		if u, err := url.Parse(l.Href); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			at.Host = strings.ToLower(u.Hostname())
		}
	}
	return at
}

type bitbucketServerPayload struct {
	Changes []struct {
		Ref struct {
			ID string `json:"id"`
		} `json:"ref"`
	} `json:"changes"`
	Repository  bitbucketServerRepo `json:"repository"`
	PullRequest struct {
		ID    int64 `json:"id"`
		ToRef struct {
			Repository bitbucketServerRepo `json:"repository"`
		} `json:"toRef"`
	} `json:"pullRequest"`
}

func readBitbucketServer(h http.Header, body []byte) (event, error) {
	kind := h.Get("X-Event-Key")
	pull := slices.Contains([]string{"pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted"}, kind)
	if kind != "repo:refs_changed" && !pull {
		return event{}, nil
	}
	p, err := decode[bitbucketServerPayload](body)
	if err != nil {
		return event{}, err
	}
	if pull {
		return event{pull: &PullRequest{At: p.PullRequest.ToRef.Repository.place(), Number: p.PullRequest.ID}}, nil
	}
	push := Push{At: p.Repository.place()}
	for _, l := range p.Repository.Links.Clone {
		push.URLs = append(push.URLs, urls(l.Href)...)
	}
	if len(p.Changes) == 1 { // several changes: ask for every ref
		push.Ref = p.Changes[0].Ref.ID
	}
	return event{push: &push}, nil
}

type bitbucketCloudPayload struct {
	Repository struct {
		FullName string `json:"full_name"`
		Links    struct {
			HTML struct {
				Href string `json:"href"`
			} `json:"html"`
		} `json:"links"`
	} `json:"repository"`
	Push struct {
		Changes []struct {
			New, Old *struct {
				Type string `json:"type"`
				Name string `json:"name"`
			}
		} `json:"changes"`
	} `json:"push"`
	PullRequest struct {
		ID int64 `json:"id"`
	} `json:"pullrequest"`
}

func readBitbucketCloud(h http.Header, body []byte) (event, error) {
	kind := h.Get("X-Event-Key")
	pull := slices.Contains([]string{"pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected"}, kind)
	if kind != "repo:push" && !pull {
		return event{}, nil
	}
	p, err := decode[bitbucketCloudPayload](body)
	if err != nil {
		return event{}, err
	}
	page := p.Repository.Links.HTML.Href
	at := placeOf(rutter.ForgeBitbucketCloud, page, p.Repository.FullName)
	if pull {
		return event{pull: &PullRequest{At: at, Number: p.PullRequest.ID}}, nil
	}
	push := Push{At: at, URLs: urls(page)}
	if len(p.Push.Changes) == 1 {
		change := p.Push.Changes[0]
		ref := change.New
		if ref == nil {
			ref = change.Old
		}
		switch {
		case ref == nil:
		case ref.Type == "tag":
			push.Ref = "refs/tags/" + ref.Name
		default:
			push.Ref = "refs/heads/" + ref.Name
		}
	}
	return event{push: &push}, nil
}

type azurePayload struct {
	EventType string `json:"eventType"`
	Resource  struct {
		PullRequestID int64 `json:"pullRequestId"`
		RefUpdates    []struct {
			Name string `json:"name"`
		} `json:"refUpdates"`
		Repository struct {
			Name          string `json:"name"`
			RemoteURL     string `json:"remoteUrl"`
			URL           string `json:"url"`
			DefaultBranch string `json:"defaultBranch"`
			Project       struct {
				Name string `json:"name"`
			} `json:"project"`
		} `json:"repository"`
	} `json:"resource"`
}

func readAzure(_ http.Header, body []byte) (event, error) {
	p, err := decode[azurePayload](body)
	if err != nil {
		return event{}, err
	}
	r := p.Resource.Repository
	page := r.RemoteURL
	if page == "" {
		page = r.URL
	}
	at := Place{Provider: rutter.ForgeAzureDevOps, Host: hostOf(page), Project: r.Project.Name, Repo: r.Name}
	u, err := url.Parse(page)
	switch organization, isOld := strings.CutSuffix(at.Host, ".visualstudio.com"); {
	case isOld: // the service's former address, of the same organization
		at.Owner, at.Host = organization, publicHosts[rutter.ForgeAzureDevOps]
	case err == nil && at.Host == publicHosts[rutter.ForgeAzureDevOps]:
		at.Owner, _, _ = strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	}
	switch p.EventType {
	case "git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged":
		return event{pull: &PullRequest{At: at, Number: p.Resource.PullRequestID}}, nil
	case "git.push":
		push := Push{At: at, URLs: urls(r.RemoteURL), DefaultBranch: strings.TrimPrefix(r.DefaultBranch, "refs/heads/")}
		if at.Owner != "" {
			push.URLs = append(push.URLs, "ssh://git@ssh.dev.azure.com/v3/"+at.Owner+"/"+at.Project+"/"+at.Repo)
		}
		if len(p.Resource.RefUpdates) == 1 {
			push.Ref = p.Resource.RefUpdates[0].Name
		}
		return event{push: &push}, nil
	}
	return event{}, nil
}

func urls(in ...string) []string {
	var out []string
	for _, u := range in {
		if u != "" {
			out = append(out, u)
		}
	}
	return out
}
