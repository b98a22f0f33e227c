package forge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"

	"github.com/rutterhq/rutter"
)

func hexSum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// signedWell signs a request as it came in again and compares.
func signedWell(r *http.Request, body []byte) bool {
	again, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+r.Host+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return false
	}
	for _, name := range []string{"Accept", "Content-Type", "X-Amz-Target"} {
		again.Header.Set(name, r.Header.Get(name))
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	service := "codecommit"
	if strings.HasPrefix(r.Header.Get("X-Amz-Target"), "ResourceGroups") {
		service = "tagging"
	}
	secret, id := secretOf, "AKIDEXAMPLE"
	if r.Header.Get("X-Amz-Security-Token") == "role-session" {
		secret, id = "role-secret", "ASIAROLE"
	}
	key := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: r.Header.Get("X-Amz-Security-Token")}
	if err := v4.NewSigner().SignHTTP(r.Context(), key, again, hexSum(body), service, "eu-central-1", at); err != nil {
		return false
	}
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// wantRepos are the branches that a provider should answer.
func (u under) wantRepos(all, withArchived bool) []rutter.ForgeRepo {
	var want []rutter.ForgeRepo
	for i := range manyRepos {
		if i == archived && u.archives && !withArchived {
			continue
		}
		for at, b := range branchesOf(i) {
			if at > 0 && !all {
				continue
			}
			r := rutter.ForgeRepo{Organization: u.org, Repository: repoName(i), Branch: b, Labels: u.repoLabels}
			if u.shas {
				r.SHA = shaOf(repoName(i), b)
			}
			want = append(want, r)
		}
	}
	return sortedRepos(want)
}

func TestRepositories(t *testing.T) {
	for _, u := range providers() {
		for _, c := range []struct{ all, archived bool }{{false, false}, {true, true}} {
			t.Run(fmt.Sprintf("%s all=%v", u.name, c.all), func(t *testing.T) {
				s := serve(t, u.protocol)
				q := u.ask(s)
				q.AllBranches, q.IncludeArchived = c.all, c.archived
				got, err := New(testOptions(u)).Repositories(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if got[i].RepositoryID == "" || !strings.Contains(got[i].URL, got[i].Repository) {
						t.Errorf("%s has id %q and URL %q", got[i].Repository, got[i].RepositoryID, got[i].URL)
					}
					if ssh := strings.HasPrefix(got[i].URL, "ssh://") || strings.HasPrefix(got[i].URL, "git@"); ssh == u.https {
						t.Errorf("%s has by default the URL %q", got[i].Repository, got[i].URL)
					}
					got[i].RepositoryID, got[i].URL = "", ""
				}
				if diff := cmp.Diff(u.wantRepos(c.all, c.archived), got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestPullRequests(t *testing.T) {
	for _, u := range providers() {
		if u.noPulls {
			continue
		}
		for _, labels := range [][]string{nil, {"preview"}} {
			t.Run(fmt.Sprintf("%s %v", u.name, labels), func(t *testing.T) {
				if labels != nil && u.noLabels {
					t.Skip("this provider has no labels")
				}
				s := serve(t, u.protocol)
				q := u.pullQuery(s)
				q.Labels = labels
				got, err := New(testOptions(u)).PullRequests(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				var want []rutter.ForgePullRequest
				for i := range manyPulls {
					if labels != nil && i%2 == 1 {
						continue
					}
					branch := fmt.Sprintf("feature/pr-%d", i)
					pr := rutter.ForgePullRequest{Number: int64(i + 1), Title: fmt.Sprintf("Change %d", i), Branch: branch, TargetBranch: "main", HeadSHA: shaOf(repoName(0), branch), Author: "ann"}
					if u.name == "bitbucket" {
						pr.HeadSHA = pr.HeadSHA[:12]
					}
					if !u.noLabels {
						pr.Labels = []string{"app"}
						if i%2 == 0 {
							pr.Labels = append(pr.Labels, "preview")
						}
					}
					want = append(want, pr)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

func TestPathExists(t *testing.T) {
	for _, u := range providers() {
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			c := New(testOptions(u))
			q := u.ask(s)
			q.AllBranches = true
			repos, err := c.Repositories(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			var repo rutter.ForgeRepo
			for _, r := range repos {
				if r.Branch == "feature/x" {
					repo = r
				}
			}
			for _, p := range []struct {
				path string
				want bool
			}{
				{"deploy", true},
				{"/deploy/", true},
				{"deploy/app.yaml", true},
				{"deploy/ü n.yaml", true},
				{"", true},
				{".", true},
				{"deploy/other.yaml", false},
				{"none", false},
				{"none/at/all", false},
			} {
				got, err := c.PathExists(t.Context(), q, repo, p.path)
				if err != nil || got != p.want {
					t.Errorf("%q: %v, %v; want %v", p.path, got, err, p.want)
				}
			}
			for _, p := range []string{"../x", "a/../../b", "a\x00"} {
				if _, err := c.PathExists(t.Context(), q, repo, p); rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Errorf("%q: %v", p, err)
				}
			}
			// What cannot be read has no paths that are missing.
			for _, gone := range []func(*http.Request, *recorder){refuseAll, func(r *http.Request, rec *recorder) { notFound.tamper(t, r, rec) }} {
				s.change(gone)
				if _, err := c.PathExists(t.Context(), q, repo, "other"); rutter.CodeOf(err) != rutter.CodeUnavailable {
					t.Errorf("a path in a repository that has gone: %v", err)
				}
			}
		})
	}
}

func TestCloneProtocol(t *testing.T) {
	for _, u := range providers() {
		for protocol, want := range map[string]string{"ssh": "git", "https": "https://", "ftp": ""} {
			if protocol == "ssh" && u.https {
				want = ""
			}
			t.Run(u.name+" "+protocol, func(t *testing.T) {
				s := serve(t, u.protocol)
				q := u.ask(s)
				q.CloneProtocol = protocol
				got, err := New(testOptions(u)).Repositories(t.Context(), q)
				if want == "" {
					if rutter.CodeOf(err) != rutter.CodeInvalid {
						t.Fatalf("%d repositories, %v", len(got), err)
					}
					return
				}
				if err != nil || !strings.HasPrefix(strings.TrimPrefix(got[0].URL, "ssh://"), want) {
					t.Fatalf("%v, %v", got, err)
				}
			})
		}
	}
}

// A user's repositories have a list of their own; an organization's never come from it.
func TestOwnerKinds(t *testing.T) {
	s := serve(t, githubServer("/api/v3", "Bearer "+secretOf))
	c := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond})
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "ann", Token: loginRef}
	got, err := c.Repositories(t.Context(), q)
	if err != nil || len(got) != 2 || got[0].Organization != "ann" {
		t.Fatalf("%v, %v", got, err)
	}
	q.Owner = "acme"
	s.change(func(r *http.Request, rec *recorder) {
		if strings.HasSuffix(r.URL.Path, "/orgs/acme/repos") {
			rec.Code = 404
			replaceBody(rec, `{"message":"Not Found"}`)
		}
	})
	if got, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Fatalf("%d repositories, %v", len(got), err)
	}
}

func TestNotFound(t *testing.T) {
	for _, u := range providers() {
		if u.name == "awsCodeCommit" {
			continue // an account has repositories or has none
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			c := New(testOptions(u))
			q := u.ask(s)
			q.Owner = "nobody"
			if _, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != rutter.CodeNotFound {
				t.Errorf("owner: %v", err)
			}
			q = u.pullQuery(s)
			if q.Repo != "" {
				q.Repo = "none"
			} else {
				q.Project = "acme/none"
			}
			if _, err := c.PullRequests(t.Context(), q); rutter.CodeOf(err) != rutter.CodeNotFound {
				t.Errorf("repository: %v", err)
			}
		})
	}
}

func TestBadLogin(t *testing.T) {
	for _, u := range providers() {
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			opts := testOptions(u)
			opts.Secrets = secrets("an-0ther")
			opts.AWS = func(ctx contextT) (AWSKey, error) {
				return AWSKey{ID: "AKIDEXAMPLE", Secret: "an-0ther", Session: "session"}, nil
			}
			_, err := New(opts).Repositories(t.Context(), u.ask(s))
			if rutter.CodeOf(err) != rutter.CodeForbidden || strings.Contains(err.Error(), "an-0ther") {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTagFiltersAndFIPS(t *testing.T) {
	s := serve(t, codeCommitServer())
	q := rutter.ForgeQuery{Provider: rutter.ForgeCodeCommit, API: s.URL, Region: "eu-central-1", TagFilters: map[string]string{"fleet": "", "stage": "prod"}, CloneProtocol: "https-fips"}
	got, err := New(Options{AWS: identity}).Repositories(t.Context(), q)
	if err != nil || len(got) != 4 || got[3].URL != "https://git-codecommit-fips.eu-central-1.amazonaws.com/v1/repos/app-003" {
		t.Fatalf("%v, %v", got, err)
	}
}

func TestGitLabProjectByNumber(t *testing.T) {
	s := serve(t, gitlabServer())
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: s.URL + "/api/v4/", Project: "500", Token: loginRef}
	got, err := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond}).PullRequests(t.Context(), q)
	if err != nil || len(got) != manyPulls {
		t.Fatalf("%d, %v", len(got), err)
	}
	q.State = "broken"
	if _, err := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond}).PullRequests(t.Context(), q); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Fatal(err)
	}
}

// A login that may no longer read code must not make projects disappear.
func TestGitLabWithoutCode(t *testing.T) {
	s := serve(t, gitlabServer())
	s.change(func(r *http.Request, rec *recorder) {
		if strings.HasSuffix(r.URL.Path, "/projects") {
			replaceBody(rec, strings.ReplaceAll(strings.ReplaceAll(rec.Body.String(), `"default_branch":"main"`, `"x":1`), `"empty_repo":false`, `"y":1`))
		}
	})
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitLab, API: s.URL, Owner: "acme/team", Token: loginRef, IncludeSubgroups: true, IncludeShared: true}
	got, err := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond}).Repositories(t.Context(), q)
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "read its code") {
		t.Fatalf("%d, %v", len(got), err)
	}
}

// GitHub leaves out, with status 200, what a token is not authorized for by
// single sign-on, and says so in a header.
func TestPartialResults(t *testing.T) {
	s := serve(t, githubServer("/api/v3", "Bearer "+secretOf))
	c := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond})
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "acme", Token: loginRef}
	for i, want := range []rutter.Code{"", rutter.CodeForbidden} {
		if i == 1 {
			s.change(func(_ *http.Request, rec *recorder) {
				rec.Header().Set("X-Github-Sso", "partial-results; organizations=21955855")
			})
		}
		if got, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != want {
			t.Errorf("%d: %d, %v", i, len(got), err)
		}
	}
}

func TestInvalidQueries(t *testing.T) {
	app := "app"
	for _, c := range []struct {
		reason string
		q      rutter.ForgeQuery
		want   rutter.Code
	}{
		{"no such provider", rutter.ForgeQuery{Provider: "sourceforge", Owner: "a"}, rutter.CodeUnsupported},
		{"no owner", rutter.ForgeQuery{Provider: rutter.ForgeGitHub}, rutter.CodeInvalid},
		{"an owner that is a path", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "../users"}, rutter.CodeInvalid},
		{"an owner that leads up", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: ".."}, rutter.CodeInvalid},
		{"Gitea has no public API", rutter.ForgeQuery{Provider: rutter.ForgeGitea, Owner: "a"}, rutter.CodeInvalid},
		{"nor has Bitbucket Server", rutter.ForgeQuery{Provider: rutter.ForgeBitbucketServer, Owner: "a"}, rutter.CodeInvalid},
		{"no team project", rutter.ForgeQuery{Provider: rutter.ForgeAzureDevOps, Owner: "a"}, rutter.CodeInvalid},
		{"a region that is a host", rutter.ForgeQuery{Provider: rutter.ForgeCodeCommit, Region: "x.example.com/"}, rutter.CodeInvalid},
		{"no scheme", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "a", API: "git.example.com"}, rutter.CodeInvalid},
		{"a file", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "a", API: "file:///etc"}, rutter.CodeInvalid},
		{"a login in the address", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "a", API: "https://u:hidden@git.example.com"}, rutter.CodeInvalid},
		{"two logins", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "a", Token: loginRef, AppSecret: app}, rutter.CodeInvalid},
		{"an App at GitLab", rutter.ForgeQuery{Provider: rutter.ForgeGitLab, Owner: "a", AppSecret: app}, rutter.CodeInvalid},
		{"a Secret that is not there", rutter.ForgeQuery{Provider: rutter.ForgeGitHub, Owner: "a", Token: &rutter.SecretRef{Name: "none"}}, rutter.CodeNotFound},
		{"a user without password", rutter.ForgeQuery{Provider: rutter.ForgeBitbucketCloud, Owner: "a", User: "u"}, rutter.CodeInvalid},
		{"certificates that are not there", rutter.ForgeQuery{Provider: rutter.ForgeGitLab, Owner: "a", CA: &rutter.SecretRef{Name: "ca", Key: "x"}}, rutter.CodeInvalid},
	} {
		_, err := New(Options{Secrets: secrets(secretOf), Pause: time.Millisecond}).Repositories(t.Context(), c.q)
		if rutter.CodeOf(err) != c.want || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}
