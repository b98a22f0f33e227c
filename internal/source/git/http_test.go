package git

import (
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rutterhq/rutter"
)

// webServer serves an origin over smart HTTP and notes every Authorization
// header that arrives.
type webServer struct {
	*httptest.Server

	allow func(r *http.Request) bool

	mu   sync.Mutex
	auth []string
}

func serveHTTP(t *testing.T, o *origin, tls bool, allow func(r *http.Request) bool) *webServer {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(o.bare), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_PROTOCOL=version=2"}}
	s := &webServer{allow: allow}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a := r.Header.Get("Authorization"); a != "" {
			s.mu.Lock()
			s.auth = append(s.auth, a)
			s.mu.Unlock()
		}
		if s.allow != nil && !s.allow(r) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// A server that knows the repository by other names as well.
		if i := strings.Index(r.URL.Path, "/fleet.git/"); i > 0 {
			r.URL.Path = r.URL.Path[i:]
		}
		if i := strings.Index(r.URL.Path, "/fleet/"); i >= 0 {
			r.URL.Path = strings.Replace(r.URL.Path[i:], "/fleet/", "/fleet.git/", 1)
		}
		backend.ServeHTTP(w, r)
	})
	if tls {
		s.Server = httptest.NewTLSServer(handler)
		s.Config.ErrorLog = nil
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *webServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.auth...)
}

func basic(user, password string) func(r *http.Request) bool {
	return func(r *http.Request) bool {
		u, p, ok := r.BasicAuth()
		return ok && u == user && p == password
	}
}

func TestHTTPLogin(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	const secret = "s3cr3t-'$x`%0a"
	s := serveHTTP(t, o, false, basic("ann", secret))
	url := s.URL + "/team/fleet.git"
	args := filepath.Join(t.TempDir(), "args")
	logger, log := logged()
	f := newFetcher(t, Options{Logger: logger, Git: wrapGit(t, `printf '%s\n' "$*" >> `+args)})
	ask := func(project string) error {
		s, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main", Project: project}, rutter.ResolveOptions{})
		if err == nil {
			wantFile(t, s, "f", "1")
		}
		return err
	}
	deny := func(what, words string) {
		t.Helper()
		err := ask("")
		if rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(), url) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v; want words %q", what, err, words)
		}
	}
	deny("no credential", "no credential")
	// A commit is asked for without a look-up: the refused login is the fetch's.
	for range 2 {
		if _, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: strings.Repeat("a", 40)}, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Errorf("a commit without a credential: %v", err)
		}
	}
	if n := f.Stats().Rebuilds; n != 0 {
		t.Errorf("a refused login was taken for a damaged mirror, %d times", n)
	}
	good := rutter.RepoCredential{URL: url, Username: "ann", Password: secret}
	f.SetCredentials([]rutter.RepoCredential{good}, rutter.RepoTrust{})
	if err := ask(""); err != nil {
		t.Errorf("right password: %v", err)
	}
	bad := good
	bad.Password = "s3cr3t-wrong"
	f.SetCredentials([]rutter.RepoCredential{bad}, rutter.RepoTrust{})
	deny("wrong password", "refused the login")
	f.SetCredentials([]rutter.RepoCredential{good}, rutter.RepoTrust{})
	if err := ask(""); err != nil {
		t.Errorf("right password again: a failure outlived its credential: %v", err)
	}
	good.Project = "team"
	f.SetCredentials([]rutter.RepoCredential{good}, rutter.RepoTrust{})
	deny("another project's credential", "no credential")
	if err := ask("team"); err != nil {
		t.Errorf("the project's own credential: %v", err)
	}
	if got, err := os.ReadFile(args); err != nil || len(got) == 0 || strings.Contains(string(got), "s3cr3t") {
		t.Errorf("a secret is on a command line: %q, %v", got, err)
	}
	if strings.Contains(log.String(), "s3cr3t") {
		t.Errorf("a secret is in the log: %s", log)
	}
	noSecretOnDisk(t, f.opts.Dir, "s3cr3t")
}

func noSecretOnDisk(t *testing.T, dir, secret string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "sessions", "*", "tmp", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestPasswordInURL(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, basic("ann", "s3cr3t"))
	f := newFetcher(t, Options{})
	with := func(user string) string { return strings.Replace(s.URL, "://", "://"+user+"@", 1) + "/fleet.git" }
	wantFile(t, snap(t, f, with("ann:s3cr3t"), "main"), "f", "1")
	_, err := resolve(t.Context(), f, with("ann:s3cr3t-no"), "main")
	if rutter.CodeOf(err) != rutter.CodeForbidden || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a wrong password in the URL: %v", err)
	}
	if _, err := resolve(t.Context(), f, with("ann"), "main"); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("another asker without a password is served: %v", err)
	}
	// A mirror that a login filled is not there for who has none.
	commit := o.git("-C", o.work, "rev-parse", "HEAD")
	if _, err := f.Snapshot(t.Context(), rutter.Repo{URL: s.URL + "/fleet.git", Revision: commit}, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("a commit that is mirrored for somebody else: %v", err)
	}
}

func TestCredentialDoesNotFollowRedirects(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	other := serveHTTP(t, o, false, func(r *http.Request) bool { return r.Header.Get("Authorization") != "" })
	var target atomic.Value // of the address that the first server sends on to
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, fmt.Sprint(target.Load())+"/fleet.git"+r.URL.Path[strings.Index(r.URL.Path, "/info/"):]+"?"+r.URL.RawQuery, http.StatusFound) //nolint:gocritic // git asks for nothing else
	}))
	t.Cleanup(first.Close)
	target.Store(other.URL)
	url := first.URL + "/team/moved.git"
	for name, cred := range map[string]rutter.RepoCredential{
		"password":        {URL: url, Username: "ann", Password: "s3cr3t"},
		"template":        {URL: first.URL, Template: true, Username: "ann", Password: "s3cr3t"},
		"bearer token":    {URL: url, BearerToken: "s3cr3t"},
		"bearer template": {URL: first.URL + "/team", Template: true, BearerToken: "s3cr3t"},
	} {
		f := newFetcher(t, Options{})
		f.SetCredentials([]rutter.RepoCredential{cred}, rutter.RepoTrust{})
		_, err := f.Snapshot(t.Context(), rutter.Repo{URL: url, Revision: "main"}, rutter.ResolveOptions{})
		if err == nil {
			t.Errorf("%s: the other host let us in", name)
		}
		if got := other.seen(); len(got) != 0 {
			t.Errorf("%s: the other host got %q", name, got)
		}
	}

	// Without a credential a redirect is followed; with one it stays good for
	// what it is bound to: the same host and path.
	open := serveHTTP(t, o, false, nil)
	target.Store(open.URL)
	wantFile(t, snap(t, newFetcher(t, Options{}), url, "main"), "f", "1")
	if got := open.seen(); len(got) != 0 {
		t.Errorf("a credential appeared from nowhere: %q", got)
	}
}

func TestRedirectOnTheSameHost(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, basic("ann", "s3cr3t"))
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for from, to := range map[string]string{"/team/fleet/": "/team/fleet.git/", "/team/old/": "/others/fleet.git/", "/team/older/": "/team/fleet.git/"} {
			if rest, ok := strings.CutPrefix(r.URL.Path, from); ok {
				http.Redirect(w, r, to+rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
				return
			}
		}
		inner.ServeHTTP(w, r)
	})
	tests := []struct {
		path   string
		bound  string
		prefix bool
		ok     bool
		reason string
	}{
		{"/team/fleet", "/team/fleet", false, true, "the same repository with .git"},
		{"/team/older", "/team/older", false, false, "another repository is not what the credential is for"},
		{"/team/older", "/team", true, true, "a template covers it"},
		{"/team/old", "/team", true, false, "outside of the template"},
	}
	for _, tt := range tests {
		f := newFetcher(t, Options{})
		f.SetCredentials([]rutter.RepoCredential{{URL: s.URL + tt.bound, Template: tt.prefix, Username: "ann", Password: "s3cr3t"}}, rutter.RepoTrust{})
		_, err := f.Snapshot(t.Context(), rutter.Repo{URL: s.URL + tt.path, Revision: "main"}, rutter.ResolveOptions{})
		if (err == nil) != tt.ok {
			t.Errorf("%s with a credential for %s: %v (%s)", tt.path, tt.bound, err, tt.reason)
		}
	}
}

func TestBearerToken(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer t0k3n" })
	f := newFetcher(t, Options{})
	f.SetCredentials([]rutter.RepoCredential{{URL: s.URL + "/fleet", BearerToken: "t0k3n"}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, s.URL+"/fleet.git", "main"), "f", "1")
	f.SetCredentials([]rutter.RepoCredential{{URL: s.URL + "/fleet", BearerToken: "t0k3n\nX-Evil: 1"}}, rutter.RepoTrust{})
	if _, err := resolve(t.Context(), f, s.URL+"/fleet.git", "main"); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("a token with a line break: %v", err)
	}
}

func TestOwnAuthority(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, true, nil)
	url := s.URL + "/fleet.git"
	f := newFetcher(t, Options{})
	if _, err := resolve(t.Context(), f, url, "main"); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "argocd-tls-certs-cm") {
		t.Errorf("an unknown authority: %v", err)
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	f.SetCredentials(nil, rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": ca}})
	wantFile(t, snap(t, f, url, "main"), "f", "1")
	f.SetCredentials([]rutter.RepoCredential{{URL: url, Insecure: true}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, url, "main"), "f", "1")
}

func TestProxyAndNoProxy(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, nil)
	var proxied []string
	var mu sync.Mutex
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		proxied = append(proxied, r.Host)
		mu.Unlock()
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(proxy.Close)
	url := s.URL + "/fleet.git"
	f := newFetcher(t, Options{})
	f.SetCredentials([]rutter.RepoCredential{{URL: url, Proxy: proxy.URL}}, rutter.RepoTrust{})
	if _, err := resolve(t.Context(), f, url, "main"); rutter.CodeOf(err) != rutter.CodeUnavailable || len(proxied) == 0 {
		t.Errorf("by a proxy that fails: %v, %d requests", err, len(proxied))
	}
	f.SetCredentials([]rutter.RepoCredential{{URL: url, Proxy: proxy.URL, NoProxy: "127.0.0.1"}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, url, "main"), "f", "1")
}

func TestErrorsSayWhatToDo(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	s := serveHTTP(t, o, false, nil)
	closed := httptest.NewServer(http.NotFoundHandler())
	gone := closed.URL
	closed.Close()
	tests := []struct {
		url   string
		code  rutter.Code
		words []string
	}{
		{s.URL + "/nothing.git", rutter.CodeNotFound, []string{"not found or no access", "add a repository Secret", "/nothing.git"}},
		{"file://" + o.bare + "x", rutter.CodeNotFound, []string{"not found or no access"}},
		{gone + "/fleet.git", rutter.CodeUnavailable, []string{"did not answer"}},
		{"http://does-not-exist.invalid/fleet.git", rutter.CodeUnavailable, []string{"did not answer"}},
	}
	f := newFetcher(t, Options{})
	for _, tt := range tests {
		_, err := resolve(t.Context(), f, tt.url, "main")
		if rutter.CodeOf(err) != tt.code {
			t.Errorf("%s: %v; want code %s", tt.url, err, tt.code)
			continue
		}
		for _, w := range tt.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v; want the words %q", tt.url, err, w)
			}
		}
	}
	before := f.Stats().Lookups
	for range 3 {
		_, err := f.Resolve(t.Context(), rutter.Repo{URL: gone + "/fleet.git"}, rutter.ResolveOptions{MaxAge: 1 << 60})
		if err == nil {
			t.Error("a failure turned into an answer")
		}
	}
	if n := f.Stats().Lookups - before; n != 0 {
		t.Errorf("%d more look-ups for a failure of a moment ago, want 0", n)
	}
}
