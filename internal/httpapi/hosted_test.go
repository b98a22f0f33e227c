package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

// hook is a request of a hosting service.
type hook struct {
	header map[string]string
	body   string
}

// listen serves webhooks and returns what they tell.
func listen(t *testing.T, secrets map[string]string) (send func(hook) int, pushes *[]Push, pulls *[]PullRequest) {
	t.Helper()
	pushes, pulls = &[]Push{}, &[]PullRequest{}
	s, err := Listen(t.Context(), Options{
		Addr: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler), Ready: func() error { return nil }, Metrics: http.NotFoundHandler(),
		Units: func() []rutter.Report { return nil }, Secrets: func() map[string]string { return secrets },
		Pushed: func(p Push) int { *pushes = append(*pushes, p); return 1 },
		Pulled: func(p PullRequest) int { *pulls = append(*pulls, p); return 1 },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Start(t.Context()) }()
	return func(h hook) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr()+"/api/webhook", strings.NewReader(h.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range h.header {
			req.Header.Set(k, v)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}, pushes, pulls
}

var hookSecrets = map[string]string{
	"webhook.github.secret": "s3cret", "webhook.gitlab.secret": "s3cret", "webhook.gogs.secret": "s3cret",
	"webhook.bitbucket.uuid": "s3cret", "webhook.bitbucketserver.secret": "s3cret",
	"webhook.azuredevops.username": "me", "webhook.azuredevops.password": "s3cret",
}

const (
	hubPull   = `{"action":%q,"number":7,"pull_request":{"id":1},"repository":{"full_name":"Org/fleet","html_url":"https://git.example.com/Org/fleet","default_branch":"main"}}`
	labPull   = `{"object_kind":"merge_request","project":{"id":42,"path_with_namespace":"org/sub/fleet","web_url":"https://git.example.com/org/sub/fleet"},"object_attributes":{"iid":7,"action":%q}}`
	serverPR  = `{"pullRequest":{"id":7,"fromRef":{"repository":{"slug":"fork","project":{"key":"~ME"}}},"toRef":{"repository":{"slug":"fleet","project":{"key":"ORG"},"links":{"clone":[{"href":"ssh://git@git.example.com:7999/org/fleet.git","name":"ssh"},{"href":"https://git.example.com/scm/org/fleet.git","name":"http"}]}}}}}`
	cloudPR   = `{"pullrequest":{"id":7},"repository":{"full_name":"org/fleet","links":{"html":{"href":"https://bitbucket.org/org/fleet"}}}}`
	azurePR   = `{"eventType":"git.pullrequest.updated","resource":{"pullRequestId":7,"repository":{"name":"fleet","remoteUrl":"https://org@dev.azure.com/org/team%20a/_git/fleet","project":{"name":"team a"}}}}`
	azureOld  = `{"eventType":"git.pullrequest.created","resource":{"pullRequestId":7,"repository":{"name":"fleet","url":"https://org.visualstudio.com/DefaultCollection/_apis/git/repositories/1","project":{"name":"team a"}}}}`
	azurePush = `{"eventType":"git.push","resource":{"refUpdates":[{"name":"refs/heads/main"}],"repository":{"name":"fleet","remoteUrl":"https://org@dev.azure.com/org/team/_git/fleet","defaultBranch":"refs/heads/main","project":{"name":"team"}}}}`
	cloudPush = `{"push":{"changes":[{"new":{"type":"branch","name":"main"}}]},"repository":{"full_name":"org/fleet","links":{"html":{"href":"https://bitbucket.org/org/fleet"}}}}`
)

func hubHook(header, signature, prefix, event, body string) hook {
	return hook{map[string]string{header: event, signature: prefix + strings.TrimPrefix(sign(body, "s3cret"), "sha256=")}, body}
}

func github(event, body string) hook {
	return hubHook("X-GitHub-Event", "X-Hub-Signature-256", "sha256=", event, body)
}

func gitlab(event, body string) hook {
	return hook{map[string]string{"X-Gitlab-Event": event, "X-Gitlab-Token": "s3cret"}, body}
}

func azure(body string) hook {
	return hook{map[string]string{"X-Vss-Activityid": "1", "Authorization": "Basic bWU6czNjcmV0"}, body}
}

// TestPullRequests is reference 5.12: which events of which service tell of a
// change of a pull request, and where it is.
func TestPullRequests(t *testing.T) {
	send, pushes, pulls := listen(t, hookSecrets)
	hub := Place{Host: "git.example.com", Owner: "Org", Repo: "fleet"}
	at := func(p Place, provider string) *Place { p.Provider = provider; return &p }
	lab := &Place{Provider: rutter.ForgeGitLab, Host: "git.example.com", Owner: "org/sub", Repo: "fleet", ID: "42"}
	az := &Place{Provider: rutter.ForgeAzureDevOps, Host: "dev.azure.com", Owner: "org", Project: "team a", Repo: "fleet"}
	type row struct {
		hook hook
		want *Place
	}
	cases := map[string]row{
		"gitea":               {hubHook("X-Gitea-Event", "X-Gitea-Signature", "", "pull_request", fmt.Sprintf(hubPull, "synchronized")), at(hub, rutter.ForgeGitea)},
		"gitea labels":        {hubHook("X-Gitea-Event", "X-Gitea-Signature", "", "pull_request_label", fmt.Sprintf(hubPull, "label_updated")), at(hub, rutter.ForgeGitea)},
		"gitea review":        {hubHook("X-Gitea-Event", "X-Gitea-Signature", "", "pull_request_approved", fmt.Sprintf(hubPull, "reviewed")), nil},
		"github review":       {github("pull_request_review", fmt.Sprintf(hubPull, "edited")), nil},
		"github comment":      {github("pull_request_review_comment", fmt.Sprintf(hubPull, "edited")), nil},
		"github issue":        {github("issues", fmt.Sprintf(hubPull, "opened")), nil},
		"gitlab system hook":  {gitlab("System Hook", fmt.Sprintf(labPull, "open")), lab},
		"gitlab approval":     {gitlab("Merge Request Hook", fmt.Sprintf(labPull, "approved")), nil},
		"gitlab user created": {gitlab("System Hook", `{"event_name":"user_create","email":"a@example.com"}`), nil},
		"azure":               {azure(azurePR), az},
		"azure, old address":  {azure(azureOld), az},
		"azure, other event":  {azure(`{"eventType":"build.complete"}`), nil},
	}
	for action, wakes := range map[string]bool{"opened": true, "closed": true, "reopened": true, "synchronize": true, "labeled": true, "unlabeled": true, "edited": true, "assigned": false, "review_requested": false} {
		c := row{hook: github("pull_request", fmt.Sprintf(hubPull, action))}
		if wakes {
			c.want = at(hub, rutter.ForgeGitHub)
		}
		cases["github "+action] = c
	}
	for _, action := range []string{"open", "close", "reopen", "update", "merge"} {
		cases["gitlab "+action] = row{gitlab("Merge Request Hook", fmt.Sprintf(labPull, action)), lab}
	}
	for event, wakes := range map[string]bool{"pr:opened": true, "pr:from_ref_updated": true, "pr:modified": true, "pr:merged": true, "pr:declined": true, "pr:deleted": true, "pr:comment:added": false} {
		c := row{hook: hook{map[string]string{"X-Event-Key": event, "X-Hub-Signature": sign(serverPR, "s3cret")}, serverPR}}
		if wakes {
			c.want = &Place{Provider: rutter.ForgeBitbucketServer, Host: "git.example.com", Owner: "ORG", Repo: "fleet"}
		}
		cases["bitbucket server "+event] = c
	}
	for event, wakes := range map[string]bool{"pullrequest:created": true, "pullrequest:updated": true, "pullrequest:fulfilled": true, "pullrequest:rejected": true, "pullrequest:approved": false} {
		c := row{hook: hook{map[string]string{"X-Event-Key": event, "X-Hook-UUID": "s3cret"}, cloudPR}}
		if wakes {
			c.want = &Place{Provider: rutter.ForgeBitbucketCloud, Host: "bitbucket.org", Owner: "org", Repo: "fleet"}
		}
		cases["bitbucket "+event] = c
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			*pulls, *pushes = nil, nil
			if status := send(tc.hook); status != http.StatusOK {
				t.Fatalf("status %d", status)
			}
			var want []PullRequest
			if tc.want != nil {
				want = []PullRequest{{At: *tc.want, Number: 7}}
			}
			if d := cmp.Diff(want, *pulls); d != "" || len(*pushes) != 0 {
				t.Errorf("%s, pushes %v", d, *pushes)
			}
		})
	}
}

// TestPullRequestsAreVerified: nobody is woken by who cannot prove to be the service.
func TestPullRequestsAreVerified(t *testing.T) {
	send, pushes, pulls := listen(t, hookSecrets)
	open := fmt.Sprintf(hubPull, "opened")
	for name, tc := range map[string]struct {
		hook   hook
		status int
	}{
		"github":             {hook{map[string]string{"X-GitHub-Event": "pull_request", "X-Hub-Signature-256": sign(open, "guess")}, open}, 401},
		"gitlab":             {hook{map[string]string{"X-Gitlab-Event": "Merge Request Hook", "X-Gitlab-Token": "guess"}, labPull}, 401},
		"azure, no login":    {hook{map[string]string{"X-Vss-Activityid": "1"}, azurePR}, 401},
		"azure, other login": {hook{map[string]string{"X-Vss-Activityid": "1", "Authorization": "Basic bWU6Z3Vlc3M="}, azurePR}, 401},
		"bitbucket":          {hook{map[string]string{"X-Event-Key": "pullrequest:created", "X-Hook-UUID": "guess"}, cloudPR}, 401},
		"bitbucket server":   {hook{map[string]string{"X-Event-Key": "pr:opened"}, serverPR}, 401},
		"names nothing":      {github("pull_request", `{"action":"opened"}`), 400},
		"no json":            {azure(`[`), 400},
	} {
		if status := send(tc.hook); status != tc.status || len(*pushes)+len(*pulls) != 0 {
			t.Errorf("%s: status %d, want %d; %v %v", name, status, tc.status, *pushes, *pulls)
		}
	}
	unknown, _, _ := listen(t, map[string]string{})
	if status := unknown(azure(azurePR)); status != http.StatusNotFound {
		t.Errorf("Azure DevOps without a secret: %d", status)
	}
}

func TestPushesOfOtherServices(t *testing.T) {
	send, pushes, _ := listen(t, hookSecrets)
	for name, tc := range map[string]struct {
		hook hook
		repo rutter.Repo
	}{
		"azure":     {azure(azurePush), rutter.Repo{URL: "https://dev.azure.com/org/team/_git/fleet"}},
		"azure ssh": {azure(azurePush), rutter.Repo{URL: "git@ssh.dev.azure.com:v3/org/team/fleet", Revision: "main"}},
		"bitbucket": {hook{map[string]string{"X-Event-Key": "repo:push", "X-Hook-UUID": "s3cret"}, cloudPush}, rutter.Repo{URL: "git@bitbucket.org:org/fleet.git", Revision: "main"}},
	} {
		*pushes = nil
		if status := send(tc.hook); status != http.StatusOK || len(*pushes) != 1 || !(*pushes)[0].Concerns(tc.repo) {
			t.Errorf("%s: %d, %+v", name, status, *pushes)
		}
	}
}

func TestPullRequestConcerns(t *testing.T) {
	hub := PullRequest{At: Place{Provider: rutter.ForgeGitHub, Host: "github.com", Owner: "Org", Repo: "Fleet"}}
	enterprise := PullRequest{At: Place{Provider: rutter.ForgeGitHub, Host: "ghe.example.com", Owner: "org", Repo: "fleet"}}
	lab := PullRequest{At: Place{Provider: rutter.ForgeGitLab, Host: "gitlab.example.com", Owner: "org/sub", Repo: "fleet", ID: "42"}}
	gitea := PullRequest{At: Place{Provider: rutter.ForgeGitea, Host: "git.example.com", Owner: "org", Repo: "fleet"}}
	server := PullRequest{At: Place{Provider: rutter.ForgeBitbucketServer, Owner: "ORG", Repo: "fleet"}}
	az := PullRequest{At: Place{Provider: rutter.ForgeAzureDevOps, Host: "dev.azure.com", Owner: "org", Project: "team", Repo: "fleet"}}
	for name, tc := range map[string]struct {
		event PullRequest
		query rutter.ForgeQuery
		want  bool
	}{
		"same, other case":        {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "org", Repo: "fleet"}, true},
		"public API written out":  {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: "https://api.github.com/", Owner: "org", Repo: "fleet"}, true},
		"other repo":              {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "org", Repo: "fleets"}, false},
		"other owner":             {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "orga", Repo: "fleet"}, false},
		"other provider":          {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitea, Owner: "org", Repo: "fleet"}, false},
		"other host":              {hub, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: "https://ghe.example.com/api/v3", Owner: "org", Repo: "fleet"}, false},
		"enterprise":              {enterprise, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: "https://ghe.example.com/api/v3", Owner: "org", Repo: "fleet"}, true},
		"enterprise, not public":  {enterprise, rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "org", Repo: "fleet"}, false},
		"gitlab by number":        {lab, rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: "https://gitlab.example.com", Project: "42"}, true},
		"gitlab by path":          {lab, rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: "https://gitlab.example.com", Project: "org/sub/fleet"}, true},
		"gitlab by escaped path":  {lab, rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: "https://gitlab.example.com", Project: "org%2Fsub%2Ffleet"}, true},
		"gitlab, other number":    {lab, rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: "https://gitlab.example.com", Project: "4"}, false},
		"gitlab.com, same number": {lab, rutter.ForgeQuery{Provider: rutter.ForgeGitLab, Project: "42"}, false},
		"from inside the cluster": {gitea, rutter.ForgeQuery{Provider: rutter.ForgeGitea, API: "http://gitea.gitea.svc:3000", Owner: "org", Repo: "fleet"}, true},
		"by a loopback address":   {gitea, rutter.ForgeQuery{Provider: rutter.ForgeGitea, API: "http://127.0.0.1:3000", Owner: "org", Repo: "fleet"}, true},
		"host that is not told":   {server, rutter.ForgeQuery{Provider: rutter.ForgeBitbucketServer, API: "https://bb.example.com/rest", Owner: "org", Repo: "fleet"}, true},
		"azure":                   {az, rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, Owner: "org", Project: "Team", Repo: "fleet"}, true},
		"azure, other project":    {az, rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, Owner: "org", Project: "other", Repo: "fleet"}, false},
		"azure, other org":        {az, rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, Owner: "other", Project: "team", Repo: "fleet"}, false},
	} {
		if got := tc.event.Concerns(tc.query, true); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if tc.event.Concerns(tc.query, false) {
			t.Errorf("%s: a list of repositories", name)
		}
	}
}

func TestPushLists(t *testing.T) {
	hub := Place{Provider: rutter.ForgeGitHub, Host: "github.com", Owner: "Org", Repo: "fleet"}
	main := Push{At: hub, Ref: "refs/heads/main", DefaultBranch: "main"}
	dev := Push{At: hub, Ref: "refs/heads/dev", DefaultBranch: "main"}
	tag := Push{At: hub, Ref: "refs/tags/v1", DefaultBranch: "main"}
	lab := Push{At: Place{Provider: rutter.ForgeGitLab, Host: "gitlab.com", Owner: "org/sub", Repo: "fleet"}}
	of := func(owner string, all bool) rutter.ForgeQuery {
		return rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: owner, AllBranches: all}
	}
	group := func(owner string, sub bool) rutter.ForgeQuery {
		return rutter.ForgeQuery{Provider: rutter.ForgeGitLab, Owner: owner, IncludeSubgroups: sub}
	}
	for name, tc := range map[string]struct {
		push  Push
		query rutter.ForgeQuery
		want  bool
	}{
		"owner's":                     {main, of("org", false), true},
		"another owner's":             {main, of("orga", false), false},
		"branch that is not listed":   {dev, of("org", false), false},
		"branch, when all are listed": {dev, of("org", true), true},
		"tag":                         {tag, of("org", true), false},
		"created or renamed":          {Push{At: hub, DefaultBranch: "main"}, of("org", false), true},
		"group itself":                {lab, group("org/sub", false), true},
		"group above":                 {lab, group("org", false), false},
		"group above, with below":     {lab, group("org", true), true},
		"group with that beginning":   {lab, group("or", true), false},
		"group by its number":         {lab, group("42", false), true},
	} {
		if got := tc.push.Lists(tc.query, false); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
		if tc.push.Lists(tc.query, true) {
			t.Errorf("%s: a list of pull requests", name)
		}
	}
}
