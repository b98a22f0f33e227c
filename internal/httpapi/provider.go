package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// provider knows one forge's webhook (reference 8.5).
type provider struct {
	name string
	// header, when present, marks the provider's requests.
	header    string
	secretKey string
	verify    func(h http.Header, body []byte, secret string) bool
	isPush    func(h http.Header) bool
	parse     func(body []byte) (Push, error)
}

// providers are tried in order; Gitea sends GitHub's header too, so it comes first.
func providers() []*provider {
	return []*provider{
		{name: "Gitea", header: "X-Gitea-Event", secretKey: "webhook.gogs.secret", verify: hexSignature("X-Gitea-Signature"), isPush: eventIs("X-Gitea-Event", "push"), parse: parseGitHub},
		{name: "Gogs", header: "X-Gogs-Event", secretKey: "webhook.gogs.secret", verify: hexSignature("X-Gogs-Signature"), isPush: eventIs("X-Gogs-Event", "push"), parse: parseGitHub},
		{name: "GitHub", header: "X-GitHub-Event", secretKey: "webhook.github.secret", verify: prefixedSignature("X-Hub-Signature-256"), isPush: eventIs("X-GitHub-Event", "push"), parse: parseGitHub},
		{name: "GitLab", header: "X-Gitlab-Event", secretKey: "webhook.gitlab.secret", verify: token("X-Gitlab-Token"), isPush: eventIs("X-Gitlab-Event", "Push Hook", "Tag Push Hook", "System Hook"), parse: parseGitLab},
		{name: "Bitbucket Server", header: "X-Event-Key", secretKey: "webhook.bitbucketserver.secret", verify: prefixedSignature("X-Hub-Signature"), isPush: eventIs("X-Event-Key", "repo:refs_changed"), parse: parseBitbucketServer},
	}
}

func providerOf(h http.Header) *provider {
	for _, p := range providers() {
		if h.Get(p.header) != "" {
			return p
		}
	}
	return nil
}

func eventIs(header string, events ...string) func(http.Header) bool {
	return func(h http.Header) bool {
		for _, e := range events {
			if h.Get(header) == e {
				return true
			}
		}
		return false
	}
}

func hexSignature(header string) func(http.Header, []byte, string) bool {
	return func(h http.Header, body []byte, secret string) bool {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write(body)
		got, err := hex.DecodeString(h.Get(header))
		return err == nil && hmac.Equal(got, mac.Sum(nil))
	}
}

func prefixedSignature(header string) func(http.Header, []byte, string) bool {
	verify := hexSignature(header)
	return func(h http.Header, body []byte, secret string) bool {
		sum, ok := strings.CutPrefix(h.Get(header), "sha256=")
		return ok && verify(http.Header{header: []string{sum}}, body, secret)
	}
}

func token(header string) func(http.Header, []byte, string) bool {
	return func(h http.Header, _ []byte, secret string) bool {
		return subtle.ConstantTimeCompare([]byte(h.Get(header)), []byte(secret)) == 1
	}
}

func parseGitHub(body []byte) (Push, error) {
	var p struct {
		Ref        string `json:"ref"`
		Repository struct {
			HTMLURL       string `json:"html_url"`
			CloneURL      string `json:"clone_url"`
			SSHURL        string `json:"ssh_url"`
			DefaultBranch string `json:"default_branch"`
		} `json:"repository"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Push{}, fmt.Errorf("decode the push: %w", err)
	}
	r := p.Repository
	return Push{URLs: urls(r.HTMLURL, r.CloneURL, r.SSHURL), Ref: p.Ref, DefaultBranch: r.DefaultBranch}, nil
}

func parseGitLab(body []byte) (Push, error) {
	var p struct {
		Ref     string `json:"ref"`
		Project struct {
			WebURL        string `json:"web_url"`
			HTTPURL       string `json:"git_http_url"`
			SSHURL        string `json:"git_ssh_url"`
			DefaultBranch string `json:"default_branch"`
		} `json:"project"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Push{}, fmt.Errorf("decode the push: %w", err)
	}
	r := p.Project
	return Push{URLs: urls(r.WebURL, r.HTTPURL, r.SSHURL), Ref: p.Ref, DefaultBranch: r.DefaultBranch}, nil
}

func parseBitbucketServer(body []byte) (Push, error) {
	var p struct {
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
		} `json:"changes"`
		Repository struct {
			Links struct {
				Clone []struct {
					Href string `json:"href"`
				} `json:"clone"`
			} `json:"links"`
		} `json:"repository"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return Push{}, fmt.Errorf("decode the push: %w", err)
	}
	var push Push
	for _, l := range p.Repository.Links.Clone {
		push.URLs = append(push.URLs, urls(l.Href)...)
	}
	if len(p.Changes) == 1 { // several changes: ask for every ref
		push.Ref = p.Changes[0].Ref.ID
	}
	return push, nil
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
