package httpapi

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/rutterhq/rutter"
)

func serve(t *testing.T, pushed *[]Push) string {
	t.Helper()
	s, err := Listen(t.Context(), Options{
		Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Ready: func() error { return nil }, Metrics: http.NotFoundHandler(),
		Units: func() []rutter.Report { return nil },
		Secrets: func() map[string]string {
			return map[string]string{"webhook.github.secret": "s3cret", "webhook.gitlab.secret": "tok"}
		},
		Pushed: func(p Push) int { *pushed = append(*pushed, p); return 1 },
		Pulled: func(PullRequest) int { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Start(t.Context()) }()
	return "http://" + s.Addr() + "/api/webhook"
}

func sign(body, secret string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// TestWebhook is scenario V5: what is wrong gets its answer, wakes nobody, and
// leaves the process alive.
func TestWebhook(t *testing.T) {
	var pushed []Push
	url := serve(t, &pushed)
	const github = `{"ref":"refs/heads/main","repository":{"clone_url":"https://git.example.com/org/fleet.git","default_branch":"main"}}`
	const gitlab = `{"ref":"refs/heads/main","project":{"git_http_url":"https://git.example.com/org/fleet.git","default_branch":"main"}}`
	for name, tc := range map[string]struct {
		method string
		header map[string]string
		body   io.Reader
		status int
		pushes int
	}{
		"github":          {http.MethodPost, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": sign(github, "s3cret")}, strings.NewReader(github), 200, 1},
		"gitlab":          {http.MethodPost, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "tok"}, strings.NewReader(gitlab), 200, 1},
		"ping":            {http.MethodPost, map[string]string{"X-GitHub-Event": "ping", "X-Hub-Signature-256": sign(github, "s3cret")}, strings.NewReader(github), 200, 0},
		"wrong signature": {http.MethodPost, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": sign(github, "guess")}, strings.NewReader(github), 401, 0},
		"no signature":    {http.MethodPost, map[string]string{"X-GitHub-Event": "push"}, strings.NewReader(github), 401, 0},
		"wrong token":     {http.MethodPost, map[string]string{"X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "no"}, strings.NewReader(gitlab), 401, 0},
		"not configured":  {http.MethodPost, map[string]string{"X-Gitea-Event": "push"}, strings.NewReader(github), 404, 0},
		"no provider":     {http.MethodPost, nil, strings.NewReader(github), 400, 0},
		"get":             {http.MethodGet, nil, nil, 405, 0},
		"nothing nested":  {http.MethodPost, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": sign(`{}`, "s3cret")}, strings.NewReader(`{}`), 400, 0},
		"no json":         {http.MethodPost, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": sign(`[`, "s3cret")}, strings.NewReader(`[`), 400, 0},
		"too large":       {http.MethodPost, map[string]string{"X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=00"}, bytes.NewReader(make([]byte, maxPayload+1)), 413, 0},
	} {
		t.Run(name, func(t *testing.T) {
			pushed = nil
			req, err := http.NewRequestWithContext(t.Context(), tc.method, url, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tc.header {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != tc.status || len(pushed) != tc.pushes {
				t.Errorf("status %d, %d pushes; want %d, %d", resp.StatusCode, len(pushed), tc.status, tc.pushes)
			}
		})
	}
}

func TestConcerns(t *testing.T) {
	push := Push{URLs: []string{"https://git.example.com/org/fleet"}, Ref: "refs/heads/main", DefaultBranch: "main"}
	tag := Push{URLs: push.URLs, Ref: "refs/tags/v1.2.3", DefaultBranch: "main"}
	for name, tc := range map[string]struct {
		push Push
		repo rutter.Repo
		want bool
	}{
		"same":           {push, rutter.Repo{URL: "https://git.example.com/org/fleet.git", Revision: "main"}, true},
		"scp form":       {push, rutter.Repo{URL: "git@git.example.com:org/fleet.git", Revision: "main"}, true},
		"ssh with port":  {push, rutter.Repo{URL: "ssh://git@git.example.com:2222/org/fleet", Revision: "main"}, true},
		"full ref":       {push, rutter.Repo{URL: "https://git.example.com/org/fleet", Revision: "refs/heads/main"}, true},
		"head":           {push, rutter.Repo{URL: "https://git.example.com/org/fleet"}, true},
		"other branch":   {push, rutter.Repo{URL: "https://git.example.com/org/fleet", Revision: "dev"}, false},
		"other repo":     {push, rutter.Repo{URL: "https://git.example.com/org/fleet-of-others", Revision: "main"}, false},
		"other host":     {push, rutter.Repo{URL: "https://git.example.org/org/fleet", Revision: "main"}, false},
		"range over tag": {tag, rutter.Repo{URL: "https://git.example.com/org/fleet", Revision: "1.x"}, true},
		"tag, not head":  {tag, rutter.Repo{URL: "https://git.example.com/org/fleet"}, false},
	} {
		if got := tc.push.Concerns(tc.repo); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"ref":"x","repository":{"clone_url":"y"},"changes":[{"ref":{"id":"z"}}]}`))
	f.Fuzz(func(_ *testing.T, body []byte) {
		for _, p := range providers() {
			for _, event := range []string{"push", "pull_request", "Merge Request Hook", "System Hook", "pr:opened", "repo:push", "pullrequest:created", "repo:refs_changed"} {
				e, err := p.read(http.Header{http.CanonicalHeaderKey(p.header): {event}, "X-Event-Key": {event}}, body)
				if err != nil {
					continue
				}
				if e.push != nil {
					e.push.Concerns(rutter.Repo{URL: "https://git.example.com/org/fleet"})
					e.push.Lists(rutter.ForgeQuery{Provider: e.push.At.Provider, Owner: "org"}, false)
				}
				if e.pull != nil {
					e.pull.Concerns(rutter.ForgeQuery{Provider: e.pull.At.Provider, Owner: "org", Repo: "fleet"}, true)
				}
			}
		}
	})
}
