package forge

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/rutterhq/rutter"
)

// FuzzAnswers reads whatever a service may send by each of the decoders. None of
// them may panic, read an element without its promised fields, or be led to another host.
func FuzzAnswers(f *testing.F) {
	for _, u := range providers() {
		for _, target := range []string{
			"/api/v3/orgs/acme/repos?per_page=2", "/api/v3/repos/acme/app-000/pulls?state=open&per_page=2", "/api/v3/repos/acme/app-000/branches/main",
			"/api/v4/groups/acme%2Fteam/projects?include_subgroups=true&with_shared=true&per_page=2", "/api/v4/projects/500/merge_requests?per_page=2",
			"/api/v1/orgs/acme/repos?limit=2", "/rest/api/1.0/projects/ACME/repos?limit=2", "/rest/api/1.0/projects/ACME/repos/app-000/pull-requests?limit=2",
			"/2.0/repositories/acme?pagelen=2", "/2.0/repositories/acme/app-000/pullrequests?pagelen=2",
			"/acme/My%20Team/_apis/git/repositories?api-version=6.0", "/acme/My%20Team/_apis/git/repositories/app-000/pullrequests?api-version=6.0&$top=2",
		} {
			r := httptest.NewRequestWithContext(f.Context(), http.MethodGet, target, nil)
			r.Header.Set("Authorization", "Bearer "+secretOf)
			r.Header.Set("Private-Token", secretOf)
			rec := httptest.NewRecorder()
			u.protocol.ServeHTTP(rec, r)
			if rec.Code == http.StatusOK {
				f.Add(rec.Body.String(), rec.Header().Get("Link"), "application/json")
			}
		}
	}
	for _, text := range []string{
		`{"repositories":[{"repositoryName":"a","repositoryId":"i","accountId":"1"}],"nextToken":"t"}`, `{"branches":["main"],"nextToken":"t"}`,
		`{"ResourceTagMappingList":[{"ResourceARN":"arn:aws:codecommit:eu-central-1:1:a"}],"PaginationToken":""}`, `{"__type":"a#ThrottlingException","message":"m"}`,
		`{"errors":[{"message":"m","exceptionName":"a.NoDefaultBranchException"}]}`, `{"token":"t","expires_at":"2026-01-01T00:00:00Z"}`,
	} {
		f.Add(text, `<http://h/api?page=2>; rel="next", <http://h/api?page=9>; rel="last"`, "application/json")
	}
	f.Fuzz(func(t *testing.T, body, link, kind string) {
		base := &url.URL{Scheme: "http", Host: "h", Path: "/api"}
		s := &session{Client: New(Options{}), q: rutter.ForgeQuery{Region: "eu-central-1"}, base: base, login: login{secrets: []string{secretOf}}}
		q := question{what: "x", url: s.at(url.Values{"page": {"1"}}, "list")}
		r := &reply{status: http.StatusOK, header: http.Header{"Link": {link}, "X-Total": {body}, "X-Total-Count": {kind}, "X-Ms-Continuationtoken": {link}}, body: []byte(body)}
		if isJSON(http.Header{"Content-Type": {kind}}, r.body) != nil {
			r.body = []byte("[" + body + "]")
		}
		_ = s.said(r.body)
		_ = awsFault(r.body)
		_ = serverException(r, "NoDefaultBranchException")
		newQuota("p", "h", "l").note(s.opts.Now(), http.Header{"Retry-After": {body}, "X-Ratelimit-Remaining": {link}, "Ratelimit-Reset": {kind}}, true)
		decodes(t, s, q, r, byNumber[githubRepo](s, 2))
		decodes(t, s, q, r, byNumber[githubBranch](s, 2))
		decodes(t, s, q, r, byNumber[githubPull](s, 2))
		decodes(t, s, q, r, gitlabPart[gitlabProject](s))
		decodes(t, s, q, r, gitlabPart[gitlabMerge](s))
		decodes(t, s, q, r, gitlabPart[gitlabEntry](s))
		decodes(t, s, q, r, giteaPart[giteaRepo](s))
		decodes(t, s, q, r, giteaPart[giteaLabel](s))
		decodes(t, s, q, r, giteaPart[giteaBranch](s))
		decodes(t, s, q, r, serverPart[serverRepo])
		decodes(t, s, q, r, serverPart[serverBranch])
		decodes(t, s, q, r, serverPart[serverPull])
		decodes(t, s, q, r, cloudPart[cloudRepo](s))
		decodes(t, s, q, r, cloudPart[cloudBranch](s))
		decodes(t, s, q, r, cloudPart[cloudPull](s))
		decodes(t, s, q, r, azureToken[azureRepo])
		decodes(t, s, q, r, azureToken[azureRef])
		decodes(t, s, q, r, azureSkip[azurePull])
		decodes(t, s, q, r, tokens(s, commitTarget+"ListRepositories", object{}, "nextToken", readNames))
		decodes(t, s, q, r, tokens(s, taggingTarget+"GetResources", object{}, "PaginationToken", readTags))
		object1[githubOwner](t, r)
		object1[giteaOwner](t, r)
		object1[appAnswer](t, r)
		object1[appInstallation](t, r)
		object1[commitRepos](t, r)
		object1[commitFolder](t, r)
		object1[serverEntry](t, r)
		if _, _, err := readBranches(r); err == nil && len(r.body) == 0 {
			t.Error("branches out of nothing")
		}
	})
}

// decodes checks what every decoder of a list holds to.
func decodes[T promise](t *testing.T, s *session, q question, r *reply, read func(question, *reply) (page[T], error)) {
	t.Helper()
	p, err := read(q, r)
	if err != nil {
		if rutter.CodeOf(err) != rutter.CodeUnavailable {
			t.Errorf("%v is %s", err, rutter.CodeOf(err))
		}
		return
	}
	for _, item := range p.items {
		if field := item.lacks(); field != "" {
			t.Errorf("an element without %s", field)
		}
	}
	if p.next != nil && !s.inside(p.next.url) {
		t.Errorf("the next page is at %s", p.next.url)
	}
}

func object1[T promise](t *testing.T, r *reply) {
	t.Helper()
	if v, err := one[T](r); err == nil && v.lacks() != "" {
		t.Errorf("an answer without %s", v.lacks())
	}
}
