package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rutterhq/rutter"
)

type (
	recorder = httptest.ResponseRecorder
	contextT = context.Context
)

// refuseAll is a service of which nothing can be read any more.
func refuseAll(_ *http.Request, rec *recorder) {
	rec.Code = http.StatusNotFound
	rec.Header().Set("Content-Type", "text/html")
	replaceBody(rec, "<html>404</html>")
}

// isList tells the requests for the list itself from those about its elements.
func isList(r *http.Request) bool {
	path := r.URL.Path
	return strings.HasSuffix(path, "/repos") || strings.HasSuffix(path, "/projects") || strings.HasSuffix(path, "/pulls") ||
		strings.HasSuffix(path, "/merge_requests") || strings.HasSuffix(path, "/pull-requests") || strings.HasSuffix(path, "/pullrequests") ||
		strings.HasSuffix(path, "/repositories") || strings.HasSuffix(path, "/repositories/acme") || strings.HasSuffix(r.Header.Get("X-Amz-Target"), "ListRepositories")
}

// inner is the list within an answer, as text, and what is around it.
func inner(t *testing.T, body string) (before, list, after string) {
	t.Helper()
	var raw any
	if err := json.Unmarshal([]byte(body), &raw); err != nil {
		return "", "", ""
	}
	if start := strings.Index(body, "["); start >= 0 {
		return body[:start], body[start : strings.LastIndex(body, "]")+1], body[strings.LastIndex(body, "]")+1:]
	}
	return "", "", ""
}

type rubbishCase struct {
	reason string
	tamper func(t *testing.T, r *http.Request, rec *recorder)
	// pages says that it takes a list of several parts.
	pages bool
	code  rutter.Code
}

// rubbish is what a service may answer instead of the truth. In none of these
// cases may a list come back, and least of all a shorter one.
var rubbish = []rubbishCase{
	{"a page with status 200", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Header().Set("Content-Type", "text/html; charset=utf-8")
		replaceBody(rec, "<!DOCTYPE html><html><body>We will be back soon.</body></html>")
	}, false, rutter.CodeUnavailable},
	{"a page that calls itself JSON", func(_ *testing.T, _ *http.Request, rec *recorder) {
		replaceBody(rec, "<html></html>")
	}, false, rutter.CodeUnavailable},
	{"an empty list that calls itself a page", func(t *testing.T, _ *http.Request, rec *recorder) {
		before, _, after := inner(t, rec.Body.String())
		replaceBody(rec, strings.Replace(before, `"count":120`, `"count":0`, 1)+"[]"+after)
		rec.Header().Set("Content-Type", "text/html")
	}, false, rutter.CodeUnavailable},
	{"half of the answer", func(_ *testing.T, _ *http.Request, rec *recorder) {
		replaceBody(rec, rec.Body.String()[:rec.Body.Len()/2])
	}, false, rutter.CodeUnavailable},
	{"an answer that ends early", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Header().Set("Content-Length", "100000")
	}, false, rutter.CodeUnavailable},
	{"nothing", func(_ *testing.T, _ *http.Request, rec *recorder) { replaceBody(rec, "") }, false, rutter.CodeUnavailable},
	{"null", func(_ *testing.T, _ *http.Request, rec *recorder) { replaceBody(rec, "null") }, false, rutter.CodeUnavailable},
	{"an empty object", func(_ *testing.T, _ *http.Request, rec *recorder) { replaceBody(rec, "{}") }, false, rutter.CodeUnavailable},
	{"an excuse with status 200", func(_ *testing.T, _ *http.Request, rec *recorder) {
		replaceBody(rec, `{"message":"server is in maintenance","error":"down"}`)
	}, false, rutter.CodeUnavailable},
	{"lists that are null", func(_ *testing.T, _ *http.Request, rec *recorder) {
		replaceBody(rec, `{"count":0,"value":null,"values":null,"isLastPage":true,"repositories":null,"branches":null}`)
	}, false, rutter.CodeUnavailable},
	{"a number", func(_ *testing.T, _ *http.Request, rec *recorder) { replaceBody(rec, "17") }, false, rutter.CodeUnavailable},
	{"elements of nothing", func(t *testing.T, _ *http.Request, rec *recorder) {
		before, _, after := inner(t, rec.Body.String())
		replaceBody(rec, before+"[{},{}]"+after)
	}, false, rutter.CodeUnavailable},
	{"elements that are null", func(t *testing.T, _ *http.Request, rec *recorder) {
		before, _, after := inner(t, rec.Body.String())
		replaceBody(rec, before+"[null]"+after)
	}, false, rutter.CodeUnavailable},
	{"two answers", func(_ *testing.T, _ *http.Request, rec *recorder) {
		replaceBody(rec, rec.Body.String()+rec.Body.String())
	}, false, rutter.CodeUnavailable},
	{"a server error", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Code = http.StatusInternalServerError
		replaceBody(rec, `{"message":"boom"}`)
	}, false, rutter.CodeUnavailable},
	{"a 404 of something in front", refuse404, false, rutter.CodeUnavailable},
	{"no content", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Code = http.StatusNoContent
		replaceBody(rec, "")
	}, false, rutter.CodeUnavailable},
	{"an unfounded 304", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Code = http.StatusNotModified
		replaceBody(rec, "")
	}, false, rutter.CodeUnavailable},
	{"an empty list with a used-up quota", func(t *testing.T, _ *http.Request, rec *recorder) {
		before, _, after := inner(t, rec.Body.String())
		replaceBody(rec, strings.Replace(before, `"count":120`, `"count":0`, 1)+"[]"+after)
		rec.Header().Del("Link")
		rec.Header().Del("X-Total-Count")
		rec.Header().Set("X-Ratelimit-Remaining", "0")
	}, false, rutter.CodeUnavailable},
	{"the service sends us elsewhere", func(_ *testing.T, _ *http.Request, rec *recorder) {
		rec.Code = http.StatusFound
		rec.Header().Set("Location", "http://login.example.com/")
	}, false, rutter.CodeForbidden},
	{"the second page cannot be read", func(_ *testing.T, r *http.Request, rec *recorder) {
		if laterPart(r) {
			replaceBody(rec, rec.Body.String()[:rec.Body.Len()/2])
		}
	}, true, rutter.CodeUnavailable},
	{"the second page is not there", func(t *testing.T, r *http.Request, rec *recorder) {
		if laterPart(r) {
			refuse404(t, r, rec)
		}
	}, true, rutter.CodeUnavailable},
}

func refuse404(_ *testing.T, r *http.Request, rec *recorder) { refuseAll(r, rec) }

// laterPart tells the second and further parts of a list.
func laterPart(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	q := r.URL.Query()
	return q.Get("page") != "" && q.Get("page") != "1" || q.Get("start") != "" || q.Get("$skip") != "" || bytes.Contains(body, []byte("token-"))
}

func TestRubbish(t *testing.T) {
	for _, u := range providers() {
		for _, c := range rubbish {
			t.Run(u.name+" "+c.reason, func(t *testing.T) {
				s := serve(t, u.protocol)
				s.change(func(r *http.Request, rec *recorder) {
					if isList(r) {
						c.tamper(t, r, rec)
					}
				})
				if !c.pages || u.name != "azureDevOps" { // which has its repositories in one part
					got, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
					checkRubbish(t, "repositories", len(got), err, c.code)
				}
				if u.noPulls {
					return
				}
				pulls, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
				checkRubbish(t, "pull requests", len(pulls), err, c.code)
			})
		}
	}
}

func checkRubbish(t *testing.T, what string, n int, err error, code rutter.Code) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: %d, and no error", what, n)
	}
	text := err.Error()
	if rutter.CodeOf(err) != code {
		t.Errorf("%s: %s is %s, want %s", what, text, rutter.CodeOf(err), code)
	}
	if strings.Contains(text, secretOf) || strings.Contains(text, "per_page") || strings.Contains(text, "?") {
		t.Errorf("%s: the error says too much: %s", what, text)
	}
	if !strings.Contains(text, "127.0.0.1") || !strings.Contains(text, "acme") && !strings.Contains(text, "ACME") && !strings.Contains(text, "repositories of") {
		t.Errorf("%s: the error does not say where and what: %s", what, text)
	}
}

// notFound is an answer of the API itself about something that was just listed.
var notFound = rubbishCase{"not found", func(_ *testing.T, _ *http.Request, rec *recorder) {
	rec.Code = http.StatusNotFound
	replaceBody(rec, `{"message":"Not Found"}`)
}, false, rutter.CodeUnavailable}

// The elements of a list vanish one by one too, when what is asked about each is rubbish.
func TestRubbishBelowTheList(t *testing.T) {
	for _, u := range providers() {
		for _, c := range append(slices.Clone(rubbish[:18]), notFound) {
			t.Run(u.name+" "+c.reason, func(t *testing.T) {
				s := serve(t, u.protocol)
				s.change(func(r *http.Request, rec *recorder) {
					path := r.URL.Path
					if !isList(r) && (strings.Contains(path, repoName(7)) || strings.Contains(path, "/507/") || strings.Contains(path, "id-7/") || strings.Contains(r.Header.Get("X-Amz-Target"), "BatchGet")) {
						c.tamper(t, r, rec)
					}
				})
				q := u.ask(s)
				got, err := New(testOptions(u)).Repositories(t.Context(), q)
				if err == nil {
					t.Fatalf("%d repositories, and no error", len(got))
				}
				if rutter.CodeOf(err) != c.code {
					t.Errorf("%v is %s, want %s", err, rutter.CodeOf(err), c.code)
				}
			})
		}
	}
}

// setNext makes an answer name another next page.
func setNext(t *testing.T, u under, rec *recorder, next string) {
	t.Helper()
	if u.linked {
		rec.Header().Set("Link", "<"+next+`>; rel="next"`)
		return
	}
	var body object
	if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
		t.Error(err)
	}
	body["next"] = next
	text, _ := json.Marshal(body) //nolint:errchkjson // it was JSON before
	replaceBody(rec, string(text))
}

func TestNextPages(t *testing.T) {
	for _, u := range providers() {
		if !u.linked && u.name != "bitbucket" {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			var elsewhere atomic.Int64
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				elsewhere.Add(1)
				answer(w, 200, []any{})
			}))
			defer other.Close()
			s := serve(t, u.protocol)
			s.noETags = true
			for reason, next := range map[string]func(r *http.Request) string{
				"another host":   func(r *http.Request) string { return other.URL + r.URL.RequestURI() },
				"another scheme": func(r *http.Request) string { return "https://" + r.Host + r.URL.RequestURI() },
				"another login":  func(r *http.Request) string { return "http://u:p@" + r.Host + r.URL.RequestURI() + "&x=1" },
				"the same page":  func(r *http.Request) string { return "http://" + r.Host + r.URL.RequestURI() },
				"no address":     func(*http.Request) string { return "http://[::1" },
				"above the API":  func(r *http.Request) string { return "http://" + r.Host + "/secret" },
				"the page again": func(r *http.Request) string {
					return "http://" + r.Host + r.URL.Path + "?page=1&x=" + r.URL.Query().Get("x") + "1"
				},
			} {
				s.change(func(r *http.Request, rec *recorder) {
					if isList(r) {
						setNext(t, u, rec, next(r))
					}
				})
				got, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
				checkRubbish(t, reason, len(got), err, rutter.CodeUnavailable)
			}
			if elsewhere.Load() != 0 {
				t.Errorf("another host was asked %d times", elsewhere.Load())
			}
		})
	}
}

// A proxy that takes the Link header away must not make a list shorter.
func TestWithoutLinks(t *testing.T) {
	for _, u := range providers() {
		if !u.linked {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			s.change(func(_ *http.Request, rec *recorder) { rec.Header().Del("Link") })
			got, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
			if len(got) != manyPulls && err == nil {
				t.Errorf("%d pull requests of %d", len(got), manyPulls)
			}
		})
	}
}

// Nor must an empty page that stands in for one.
func TestWithoutLinksAndPages(t *testing.T) {
	for _, u := range providers() {
		if u.name != "gitlab" && u.name != "gitea" {
			continue // GitHub promises no length
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			s.change(func(r *http.Request, rec *recorder) {
				rec.Header().Del("Link")
				if laterPart(r) {
					replaceBody(rec, "[]")
				}
			})
			got, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
			checkRubbish(t, "pull requests", len(got), err, rutter.CodeUnavailable)
		})
	}
}

// A server that repeats elements has left out others.
func TestRepeatedElements(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	s.change(func(r *http.Request, rec *recorder) {
		if r.URL.Query().Get("page") == "3" {
			text, _ := json.Marshal(slice(30, 0, 30, githubPullOf))
			replaceBody(rec, string(text))
		}
	})
	got, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
	checkRubbish(t, "pull requests", len(got), err, rutter.CodeUnavailable)
}

// Empty pages that lead to themselves are not followed for long.
func TestCircle(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	s.change(func(r *http.Request, rec *recorder) {
		if isList(r) {
			replaceBody(rec, "[]")
			setNext(t, u, rec, "http://"+r.Host+r.URL.RequestURI())
		}
	})
	got, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
	checkRubbish(t, "pull requests", len(got), err, rutter.CodeUnavailable)
	if n := len(s.requests()); n > 3 {
		t.Errorf("%d requests", n)
	}
}

// What an answer counts itself has to be in it, and what was listed be described.
func TestShortAnswers(t *testing.T) {
	for _, u := range providers() {
		s := serve(t, u.protocol)
		s.change(func(r *http.Request, rec *recorder) {
			switch {
			case u.name == "azureDevOps" && isList(r):
				replaceBody(rec, strings.Replace(rec.Body.String(), `"count":120`, `"count":121`, 1))
			case strings.HasSuffix(r.Header.Get("X-Amz-Target"), "BatchGetRepositories"):
				replaceBody(rec, `{"repositories":[],"errors":[]}`)
			}
		})
		got, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
		if short := u.name == "azureDevOps" || u.name == "awsCodeCommit"; short != (rutter.CodeOf(err) == rutter.CodeUnavailable) {
			t.Errorf("%s: %d, %v", u.name, len(got), err)
		}
	}
}

// Services that promise how long a list is are held to it.
func TestPromisedLength(t *testing.T) {
	for _, u := range providers() {
		header := map[string]string{"gitlab": "X-Total", "gitea": "X-Total-Count", "github": "Link"}[u.name]
		if header == "" {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			s.change(func(r *http.Request, rec *recorder) {
				if !isList(r) {
					return
				}
				before, _, after := inner(t, rec.Body.String())
				replaceBody(rec, before+"[]"+after)
				rec.Header().Set("Link", `<http://`+r.Host+r.URL.Path+`?page=3>; rel="last"`)
				rec.Header().Set("X-Total", "120")
			})
			got, err := New(testOptions(u)).Repositories(t.Context(), u.ask(s))
			checkRubbish(t, "repositories", len(got), err, rutter.CodeUnavailable)
		})
	}
}

// A pull request that is closed while the list is read moves the others up: one
// of them would be between two pages, unseen.
func TestListThatMoves(t *testing.T) {
	for _, u := range providers() {
		if u.noPulls || u.name == "azureDevOps" {
			continue
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			var asked atomic.Int64
			s.change(func(r *http.Request, rec *recorder) {
				// After the first page was read its first element goes away, for good.
				if asked.Add(1) == 1 || laterPart(r) {
					return
				}
				rec.Code = http.StatusOK
				var body any
				fresh := httptest.NewRecorder()
				r.Header.Del("If-None-Match")
				u.protocol.ServeHTTP(fresh, r)
				if err := json.Unmarshal(fresh.Body.Bytes(), &body); err != nil {
					t.Error(err)
				}
				rec.Header().Del("ETag")
				replaceBody(rec, without(t, body))
			})
			got, err := New(testOptions(u)).PullRequests(t.Context(), u.pullQuery(s))
			if err == nil && (len(got) != manyPulls-1 || got[0].Number != 2) {
				t.Errorf("%d pull requests, the first of them is %d", len(got), got[0].Number)
			}
			if err != nil && rutter.CodeOf(err) != rutter.CodeUnavailable {
				t.Error(err)
			}
		})
	}
}

func without(t *testing.T, body any) string {
	t.Helper()
	switch x := body.(type) {
	case []any:
		body = x[1:]
	case object:
		x["values"] = x["values"].([]any)[1:]
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
