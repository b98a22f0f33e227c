package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

func newSource(t *testing.T, opts Options, creds ...rutter.RepoCredential) *Source {
	t.Helper()
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	s, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.SetCredentials(creds, rutter.RepoTrust{})
	return s
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestFile(t *testing.T) {
	var content atomic.Value
	content.Store("a: 1\n")
	var asked, unchanged atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		text := content.Load().(string)
		etag := `W/"` + digest(text)[:20] + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer web.Close()
	dir := t.TempDir()
	s := newSource(t, Options{Dir: dir})
	repo := rutter.Repo{URL: web.URL + "/org/values.yaml?ref=main", File: true}
	check := func(s *Source, age time.Duration, want string) {
		t.Helper()
		snap, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{MaxAge: int64(age)})
		if err != nil {
			t.Fatal(err)
		}
		data, err := fs.ReadFile(snap, "values.yaml")
		if err != nil || string(data) != want || snap.Revision() != digest(want) {
			t.Errorf("got %q of %s, %v; want %q", data, snap.Revision(), err, want)
		}
		if entries, err := fs.ReadDir(snap, "."); err != nil || len(entries) != 1 {
			t.Errorf("the root holds %v, %v", entries, err)
		}
	}
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() {
			if _, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n > 2 {
		t.Errorf("30 askers cost %d requests", n)
	}
	check(s, time.Hour, "a: 1\n")
	before := unchanged.Load()
	check(s, 0, "a: 1\n")
	if unchanged.Load() != before+1 || s.Stats().Downloads != 1 {
		t.Errorf("what has not changed was sent again: %+v", s.Stats())
	}
	content.Store("a: 2\n")
	check(s, time.Hour, "a: 1\n")
	check(s, 0, "a: 2\n")
	repo.Revision = digest("a: 2\n")
	check(s, 0, "a: 2\n")
	repo.Revision = digest("a: 1\n")
	if _, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("pinned to another content: %v", err)
	}
	repo.Revision = ""
	_ = s.Close()
	check(newSource(t, Options{Dir: dir}), 0, "a: 2\n")
}

// TestLogin sends logins only where they belong.
func TestLogin(t *testing.T) {
	var seen []string
	serve := func(wanted bool) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			auth := r.Header.Get("Authorization")
			seen = append(seen, r.URL.Path+" "+auth)
			switch {
			case r.URL.Path == "/org/away":
				http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
			case wanted && auth == "":
				w.WriteHeader(http.StatusUnauthorized)
			default:
				_, _ = w.Write([]byte("x"))
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	home, other := serve(true), serve(false)
	away := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	s := newSource(t, Options{},
		rutter.RepoCredential{URL: home.URL + "/org/", Type: "git", Template: true, BearerToken: "t0ken"},
		rutter.RepoCredential{URL: home.URL + "/solo/values.yaml", Type: "helm", Username: "u", Password: "p"},
		rutter.RepoCredential{URL: home.URL + "/theirs", Type: "helm", Project: "theirs", BearerToken: "t0ken"})
	tests := []struct {
		url, project string
		code         rutter.Code
		want         []string
	}{
		{url: home.URL + "/org/a.yaml", want: []string{"/org/a.yaml Bearer t0ken"}},
		{url: home.URL + "/org/away?to=" + away + "/b.yaml", want: []string{"/org/away Bearer t0ken", "/b.yaml "}},
		{url: home.URL + "/org/away?to=" + home.URL + "/org/c.yaml", want: []string{"/org/away Bearer t0ken", "/org/c.yaml Bearer t0ken"}},
		{url: home.URL + "/org/away?to=/else/c.yaml", code: rutter.CodeForbidden, want: []string{"/org/away Bearer t0ken", "/else/c.yaml "}},
		{url: home.URL + "/organisation/a.yaml", code: rutter.CodeForbidden, want: []string{"/organisation/a.yaml "}},
		{url: home.URL + "/solo/values.yaml", want: []string{"/solo/values.yaml Basic dTpw"}},
		{url: home.URL + "/theirs/a.yaml", project: "mine", code: rutter.CodeForbidden, want: []string{"/theirs/a.yaml "}},
		{url: home.URL + "/theirs/a.yaml", project: "theirs", want: []string{"/theirs/a.yaml Bearer t0ken"}},
		{url: strings.Replace(home.URL, "://", "://me:pw@", 1) + "/else/a.yaml", want: []string{"/else/a.yaml Basic bWU6cHc="}},
		{url: home.URL + "/org/%2e%2e/theirs/a.yaml", code: rutter.CodeInvalid},
	}
	for _, tc := range tests {
		seen = nil
		_, err := s.Snapshot(t.Context(), rutter.Repo{URL: tc.url, File: true, Project: tc.project}, rutter.ResolveOptions{})
		if rutter.CodeOf(err) != tc.code || strings.Join(seen, ",") != strings.Join(tc.want, ",") {
			t.Errorf("%s: got %v, asked %q; want %q, %q", tc.url, err, seen, tc.code, tc.want)
		}
		if err != nil && (strings.Contains(err.Error(), "t0ken") || strings.Contains(err.Error(), "to=")) {
			t.Errorf("%s: the error tells too much: %v", tc.url, err)
		}
	}
}

func TestWhatIsNoFile(t *testing.T) {
	release := make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/bomb": // a compressed answer counts as what it unfolds to
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zeros(20 << 20))
		case "/slow":
			_, _ = fmt.Fprint(w, "some")
			w.(http.Flusher).Flush()
			<-release
		default:
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}
	}))
	defer web.Close()
	defer close(release)
	s := newSource(t, Options{Timeout: time.Second, MaxBytes: 2 << 20})
	tests := []struct {
		url, revision string
		code          rutter.Code
		want          string
	}{
		{web.URL + "/endless.yaml", "", rutter.CodeInvalid, "larger than 2097152"},
		{web.URL + "/bomb", "", rutter.CodeInvalid, "larger than"},
		{web.URL + "/slow", "", rutter.CodeUnavailable, "in time"},
		{web.URL + "/gone", "", rutter.CodeNotFound, "not found"},
		{web.URL + "/broken", "", rutter.CodeUnavailable, "500"},
		{web.URL + "/x", "main", rutter.CodeInvalid, "no revisions"},
		{web.URL, "", rutter.CodeInvalid, "names no file"},
		{"file:///etc/passwd", "", rutter.CodeInvalid, "not allowed"},
		{"ftp://example.com/x", "", rutter.CodeInvalid, "not allowed"},
		{"http://169.254.169.254/latest/user-data", "", rutter.CodeForbidden, "metadata"},
		{"http://[fe80::1]/x", "", rutter.CodeForbidden, "refused"},
		{"http://0.0.0.0/x", "", rutter.CodeForbidden, "refused"},
		{"http://2852039166/x", "", rutter.CodeForbidden, ""},
		{"", "", rutter.CodeInvalid, "empty"},
	}
	for _, tc := range tests {
		_, err := s.Snapshot(t.Context(), rutter.Repo{URL: tc.url, File: true, Revision: tc.revision}, rutter.ResolveOptions{})
		if strings.Contains(tc.url, "2852039166") { // resolvers differ in whether this is an address
			if err == nil {
				t.Errorf("%s was read", tc.url)
			}
			continue
		}
		if rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v (%s), want %s with %q", tc.url, err, rutter.CodeOf(err), tc.code, tc.want)
		}
	}
}

// zeros are n bytes of nothing, compressed.
func zeros(n int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(make([]byte, n))
	_ = w.Close()
	return b.Bytes()
}
