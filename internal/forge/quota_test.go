package forge

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// What has not changed costs the service an answer without content.
func TestConditionalRequests(t *testing.T) {
	for _, u := range providers() {
		if u.name == "awsCodeCommit" {
			continue // it has only questions that cannot be asked conditionally
		}
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			c := New(testOptions(u))
			first, err := c.Repositories(t.Context(), u.ask(s))
			if err != nil {
				t.Fatal(err)
			}
			before := c.Stats()
			again, err := c.Repositories(t.Context(), u.ask(s))
			if err != nil || len(again) != len(first) {
				t.Fatal(len(again), err)
			}
			after := c.Stats()
			// That a repository is empty is a 404 with two providers, once with another question after it.
			if asked, same := after.Requests-before.Requests, after.NotModified-before.NotModified; asked < 2 || asked-same > 2 {
				t.Errorf("of %d requests %d were answered with 304", asked, same)
			}
			// Another login sees what it is shown, not what somebody else was shown.
			c.opts.Secrets = secrets("an-0ther")
			s.requests()
			if _, err := c.Repositories(t.Context(), u.ask(s)); rutter.CodeOf(err) != rutter.CodeForbidden {
				t.Errorf("another login: %v", err)
			}
			for _, r := range s.requests() {
				if r.Header.Get("If-None-Match") != "" {
					t.Error("another login is compared with what the first one was shown")
				}
			}
		})
	}
}

// What changes is seen, page by page.
func TestChangeBehindAnETag(t *testing.T) {
	s := serve(t, githubServer("/api/v3", "Bearer "+secretOf))
	c := New(Options{Secrets: secrets(secretOf)})
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "acme", Repo: repoName(0), Token: loginRef}
	if _, err := c.PullRequests(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	s.change(func(r *http.Request, rec *recorder) {
		if r.URL.Query().Get("page") == "2" {
			fresh := newRecorder()
			r.Header.Del("If-None-Match")
			githubServer("/api/v3", "Bearer "+secretOf).ServeHTTP(fresh, r)
			*rec = *fresh
			rec.Header().Set("ETag", `"new"`)
			replaceBody(rec, strings.Replace(fresh.Body.String(), "Change 101", "Renamed", 1))
		}
	})
	got, err := c.PullRequests(t.Context(), q)
	if err != nil || len(got) != manyPulls || got[101].Title != "Renamed" {
		t.Fatal(len(got), err)
	}
}

func TestShelfIsBounded(t *testing.T) {
	s := newShelf(10_000)
	for i := range 100 {
		s.put(strconv.Itoa(i), &reply{header: http.Header{"Etag": {`"x"`}}, body: make([]byte, 500)})
	}
	if s.used > 10_000 || len(s.items) != s.order.Len() || len(s.items) == 0 || s.get("0") != nil || s.get("99") == nil {
		t.Fatal(s.used, len(s.items))
	}
	s.put("99", &reply{header: http.Header{}, body: nil})
	if s.get("99") != nil {
		t.Fatal("an answer without a mark is kept, and the old one with it")
	}
	s.put("big", &reply{header: http.Header{"Etag": {`"x"`}}, body: make([]byte, 9000)})
	if s.get("big") != nil {
		t.Fatal("one answer takes nearly all")
	}
}

// All who ask the same at the same time share one walk.
func TestSharedWalk(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	hold := make(chan struct{})
	s.change(func(*http.Request, *recorder) { <-hold })
	c := New(testOptions(u))
	var wg sync.WaitGroup
	answers := make([][]rutter.ForgePullRequest, 10)
	for i := range answers {
		wg.Go(func() {
			got, err := c.PullRequests(t.Context(), u.pullQuery(s))
			if err != nil || len(got) != manyPulls {
				t.Error(len(got), err)
				return
			}
			got[0].Number = int64(i) // the answer is the asker's own
			answers[i] = got
		})
	}
	time.Sleep(100 * time.Millisecond)
	close(hold)
	wg.Wait()
	for i, got := range answers {
		if len(got) > 0 && got[0].Number != int64(i) {
			t.Errorf("asker %d has the answer of asker %d", i, got[0].Number)
		}
	}
	if n := len(s.requests()); n != 5 {
		t.Errorf("%d requests: three pages, and two looked at again, are 5", n)
	}
}

// A refusal for asking too often is waited out when that is soon enough.
func TestWaitsForQuota(t *testing.T) {
	for _, u := range providers() {
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			var refusals atomic.Int64
			s.change(func(r *http.Request, rec *recorder) {
				if refusals.Add(1) > 1 {
					return
				}
				rec.Code = http.StatusTooManyRequests
				rec.Header().Set("Retry-After", "0.05")
				if u.name == "awsCodeCommit" {
					rec.Code = http.StatusBadRequest
					rec.Header().Del("Retry-After") // it says only that it is too much
				}
				replaceBody(rec, `{"__type":"ThrottlingException","message":"Rate exceeded"}`)
			})
			c := New(testOptions(u))
			got, err := c.Repositories(t.Context(), u.ask(s))
			if err != nil || len(got) < manyRepos-2 {
				t.Fatal(len(got), err)
			}
			if st := c.Stats(); u.name != "awsCodeCommit" && (st.Waits == 0 || st.Refused != 0 || len(st.Quotas) != 1) {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A quota that comes back too late is an error that says when, and nothing is
// asked until then.
func TestRefusesEarly(t *testing.T) {
	back := time.Now().Add(20 * time.Minute).Truncate(time.Second)
	for _, c := range []struct {
		reason  string
		status  int
		body    string
		headers map[string]string
		// seconds tells that the time is only known to be about that.
		about bool
	}{
		{"GitHub's quota", 403, `{"message":"API rate limit exceeded"}`, map[string]string{"X-RateLimit-Limit": "5000", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": strconv.FormatInt(back.Unix(), 10)}, false},
		{"GitHub's second limit", 403, `{"message":"You have exceeded a secondary rate limit"}`, map[string]string{"Retry-After": "1200", "X-RateLimit-Remaining": "4000"}, true},
		{"GitLab's", 429, `{"message":"Retry later"}`, map[string]string{"RateLimit-Limit": "60", "RateLimit-Remaining": "0", "RateLimit-Reset": strconv.FormatInt(back.Unix(), 10)}, false},
		{"a draft of a standard", 429, `{}`, map[string]string{"RateLimit-Limit": "60;w=60", "RateLimit-Remaining": "0", "RateLimit-Reset": "1200"}, true},
		{"a date", 503, `{}`, map[string]string{"Retry-After": back.UTC().Format(http.TimeFormat)}, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			u := providers()[0]
			s := serve(t, u.protocol)
			s.change(func(r *http.Request, rec *recorder) {
				rec.Code = c.status
				replaceBody(rec, c.body)
				for name, value := range c.headers {
					rec.Header().Set(name, value)
				}
			})
			client := New(testOptions(u))
			for range 2 {
				_, err := client.Repositories(t.Context(), u.ask(s))
				if rutter.CodeOf(err) != rutter.CodeUnavailable {
					t.Fatal(err)
				}
				want := back.UTC().Format(time.RFC3339)
				if c.about {
					want = want[:10]
				}
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %s in it", err, want)
				}
			}
			if n := len(s.requests()); n != 1 {
				t.Errorf("%d requests, 1 was enough to know", n)
			}
			st := client.Stats()
			if st.Refused != 2 || len(st.Quotas) != 1 || st.Quotas[0].Until.Before(time.Now()) || st.Quotas[0].Login != "team/login" {
				t.Errorf("%+v", st)
			}
		})
	}
}

// The last request that the quota allows is a good one; the next is not sent.
func TestQuotaRunsOut(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	var left atomic.Int64
	left.Store(11)
	reset := time.Now().Add(time.Hour).Unix()
	s.change(func(_ *http.Request, rec *recorder) {
		rec.Header().Set("X-Ratelimit-Limit", "5000")
		rec.Header().Set("X-Ratelimit-Remaining", fmt.Sprint(max(left.Add(-1), 0)))
		rec.Header().Set("X-Ratelimit-Reset", fmt.Sprint(reset))
	})
	opts := testOptions(u)
	opts.Parallel = 1
	c := New(opts)
	_, err := c.Repositories(t.Context(), u.ask(s))
	if rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), time.Unix(reset, 0).UTC().Format(time.RFC3339)) {
		t.Fatal(err)
	}
	if n := len(s.requests()); n != 11 {
		t.Errorf("%d requests with a quota of 11", n)
	}
	if q := c.Stats().Quotas[0]; q.Left != 0 || q.Limit != 5000 || q.Reset.Unix() != reset {
		t.Errorf("%+v", q)
	}
}

// The asker's own time counts: who has a second does not wait for two.
func TestQuotaAndDeadline(t *testing.T) {
	u := providers()[0]
	s := serve(t, u.protocol)
	s.change(func(_ *http.Request, rec *recorder) {
		rec.Code = http.StatusTooManyRequests
		rec.Header().Set("Retry-After", "20")
	})
	opts := testOptions(u)
	opts.MaxWait = time.Hour
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	_, err := New(opts).Repositories(ctx, u.ask(s))
	if rutter.CodeOf(err) != rutter.CodeUnavailable || time.Since(began) > 5*time.Second {
		t.Fatal(time.Since(began), err)
	}
}

// Who may ask again at once need not wait.
func TestRetryAtOnce(t *testing.T) {
	q := newQuota("p", "h", "l")
	now := time.Now()
	q.note(now, http.Header{"Retry-After": {"0"}}, true)
	if q.until.After(now) {
		t.Error(q.until.Sub(now))
	}
	q.note(now, http.Header{}, true)
	if q.until.Sub(now) != time.Minute {
		t.Error(q.until.Sub(now))
	}
	q.note(now, http.Header{"Retry-After": {"1e300"}}, false)
	if q.until.Sub(now) != longestBan {
		t.Error(q.until.Sub(now))
	}
}

// A failure in passing is asked again, a few times.
func TestTriesAgain(t *testing.T) {
	for _, u := range providers() {
		t.Run(u.name, func(t *testing.T) {
			s := serve(t, u.protocol)
			var asked atomic.Int64
			s.change(func(_ *http.Request, rec *recorder) {
				if n := asked.Add(1); n < 12 && n%3 != 0 {
					rec.Code = http.StatusBadGateway
					rec.Header().Set("Content-Type", "text/html")
					replaceBody(rec, "<html>502</html>")
				}
			})
			opts := testOptions(u)
			opts.Parallel = 1
			got, err := New(opts).Repositories(t.Context(), u.ask(s))
			if err != nil || len(got) < manyRepos-2 {
				t.Fatal(len(got), err)
			}
		})
	}
}
