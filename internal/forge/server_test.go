package forge

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// What the services of the tests hold: so many repositories and pull requests
// that every provider needs several pages.
const (
	manyRepos = 120
	manyPulls = 230
	archived  = 3
	empty     = 5
	branchy   = 8
	secretOf  = "s3cr3t-t0ken"
)

func repoName(i int) string { return fmt.Sprintf("app-%03d", i) }

func shaOf(repo, branch string) string {
	sum := sha256.Sum256([]byte(repo + "\x00" + branch))
	return hex.EncodeToString(sum[:20])
}

// branchesOf are the branches of a repository, the default one first.
func branchesOf(i int) []string {
	switch i {
	case empty:
		return nil
	case branchy:
		return []string{"main", "feature/x"}
	}
	return []string{"main"}
}

func repoIndex(name string) int {
	i, err := strconv.Atoi(strings.TrimPrefix(name, "app-"))
	if err != nil || i < 0 || i >= manyRepos || !strings.HasPrefix(name, "app-") {
		return -1
	}
	return i
}

// hasPath says what lies in every branch.
func hasPath(path string) bool {
	return path == "deploy" || path == "deploy/app.yaml" || path == "deploy/ü n.yaml"
}

type object = map[string]any

// service is a hosting service that speaks one provider's documented protocol.
type service struct {
	*httptest.Server

	mu   sync.Mutex
	seen []*http.Request
	// tamper changes an answer before it is sent.
	tamper func(r *http.Request, rec *httptest.ResponseRecorder)
	// noETags makes the service answer everything anew.
	noETags bool
}

// serve starts a service. Answers have ETags, as most of them give.
func serve(t *testing.T, protocol http.Handler) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		protocol.ServeHTTP(rec, r)
		r.Body = io.NopCloser(bytes.NewReader(body))
		s.mu.Lock()
		s.seen = append(s.seen, r)
		tamper, noETags := s.tamper, s.noETags
		s.mu.Unlock()
		if rec.Code == http.StatusOK && r.Method == http.MethodGet && !noETags {
			sum := sha256.Sum256(append([]byte(rec.Header().Get("Link")), rec.Body.Bytes()...))
			tag := `W/"` + hex.EncodeToString(sum[:8]) + `"`
			rec.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				rec.Code = http.StatusNotModified
				rec.Body.Reset()
			}
		}
		if tamper != nil {
			tamper(r, rec)
		}
		maps.Copy(w.Header(), rec.Header())
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes())
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) change(f func(r *http.Request, rec *httptest.ResponseRecorder)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tamper = f
}

// requests returns those since the last call.
func (s *service) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) //nolint:errchkjson // plain data of the test
}

// guard refuses requests without the login in the header of the provider.
func guard(header, value string, refused any, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value {
			answer(w, http.StatusUnauthorized, refused)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func intOf(r *http.Request, key string, otherwise int) int {
	if n, err := strconv.Atoi(r.URL.Query().Get(key)); err == nil {
		return n
	}
	return otherwise
}

// slice is the part of n elements from start on.
func slice(n, start, most int, element func(int) any) []any {
	out := []any{}
	for i := start; i < n && i < start+most; i++ {
		out = append(out, element(i))
	}
	return out
}

func schemeOf(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// pages answers with a numbered page and the Link header for the others.
func pages(w http.ResponseWriter, r *http.Request, sizeKey string, n int, element func(int) any) {
	size, page := intOf(r, sizeKey, 30), intOf(r, "page", 1)
	last := (n + size - 1) / size
	to := func(page int, rel string) string {
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(page))
		return fmt.Sprintf(`<%s://%s%s?%s>; rel="%s"`, schemeOf(r), r.Host, r.URL.EscapedPath(), q.Encode(), rel)
	}
	var links []string
	if page > 1 {
		links = append(links, to(page-1, "prev"))
	}
	if page < last {
		links = append(links, to(page+1, "next"), to(last, "last"))
	}
	if links != nil {
		w.Header().Set("Link", strings.Join(links, ", "))
	}
	answer(w, http.StatusOK, slice(n, (page-1)*size, size, element))
}

// under is a test of one provider: how it is asked, and what speaks for it.
type under struct {
	name     string
	protocol http.Handler
	query    rutter.ForgeQuery
	// suffix is what api has after the host.
	suffix string
	// org is the organization that answers name.
	org string
	// archives says that the provider tells archived repositories; shas that it
	// tells commits; https that its default is that protocol.
	archives, shas, https, noPulls, noLabels bool
	repoLabels                               []string
	// linked says that the next page is named in the Link header.
	linked bool
}

func (u under) ask(s *service) rutter.ForgeQuery {
	q := u.query
	q.API = s.URL + u.suffix
	return q
}

// pullQuery asks for the pull requests of one repository.
func (u under) pullQuery(s *service) rutter.ForgeQuery {
	q := u.ask(s)
	q.Repo = repoName(0)
	if q.Provider == rutter.ForgeGitLab {
		q.Project, q.Repo, q.State = "acme/team/"+repoName(0), "", "opened"
	}
	return q
}

func testOptions(u under) Options {
	return Options{
		Secrets: secrets(secretOf),
		AWS:     identity,
		Timeout: 5 * time.Second,
		MaxWait: 2 * time.Second,
		Pause:   time.Millisecond,
	}
}

func replaceBody(rec *httptest.ResponseRecorder, body string) {
	rec.Body = bytes.NewBufferString(body)
}
