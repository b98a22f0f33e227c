package chart

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	helm "helm.sh/helm/v4/pkg/registry"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/registry"
	"github.com/rutterhq/rutter/internal/source/registrytest"
	"github.com/rutterhq/rutter/internal/source/unpack"
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

// values reads the values file that tells charts apart.
func values(t *testing.T, s *Source, repo rutter.Repo, age time.Duration) (content, revision string, err error) {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{MaxAge: int64(age)})
	if err != nil {
		return "", "", err
	}
	data, err := fs.ReadFile(snap, "values.yaml")
	return strings.TrimPrefix(string(data), "is: "), snap.Revision(), err
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// site is a Helm repository: files by path, with ETags, and a record of who asked.
type site struct {
	*httptest.Server

	mu    sync.Mutex
	files map[string][]byte
	// user and password are wanted, when they are set.
	user, password string
	// redirect sends paths elsewhere.
	redirect map[string]string
	plain    bool
	seen     []string
}

func newSite(t *testing.T, tls bool) *site {
	t.Helper()
	s := &site{files: map[string][]byte{}, redirect: map[string]string{}}
	s.Server = httptest.NewUnstartedServer(s)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// ServeHTTP implements http.Handler.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, password, login := r.BasicAuth()
	line := r.Method + " " + r.URL.Path
	if login {
		line += " as " + user
	}
	if r.Header.Get("If-None-Match") != "" {
		line += " if changed"
	}
	s.seen = append(s.seen, line)
	if s.user != "" && (user != s.user || password != s.password) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if to, ok := s.redirect[r.URL.Path]; ok {
		http.Redirect(w, r, to, http.StatusFound)
		return
	}
	data, ok := s.files[r.URL.Path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	etag := `"` + sumOf(data)[:16] + `"`
	if !s.plain {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write(data)
}

func (s *site) put(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

// asked returns the requests since the last call.
func (s *site) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// entry is a line of the index that a test writes.
type entry struct{ name, version, url, digest string }

func indexOf(entries ...entry) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nentries:\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "  %s:\n  - version: %q\n    urls:\n    - %q\n", e.name, e.version, e.url)
		if e.digest != "" {
			fmt.Fprintf(&b, "    digest: %s\n", e.digest)
		}
	}
	return []byte(b.String())
}

func TestIndexVersions(t *testing.T) {
	web := newSite(t, false)
	var entries []entry
	for _, version := range []string{"1.0.0", "1.1.0", "v1.2.0", "1.3.0-rc.1", "2.0.0+build.5", "0.9.0"} {
		data := registrytest.Chart(t, "app", strings.TrimPrefix(version, "v"), version)
		path := "/charts/files/app-" + strings.ReplaceAll(version, "+", "-") + ".tgz"
		web.put(path, data)
		entries = append(entries, entry{"app", version, strings.TrimPrefix(path, "/charts/"), sumOf(data)})
	}
	entries[0].url = web.URL + "/charts/" + entries[0].url // absolute
	entries[1].url = "/charts/" + entries[1].url           // of the host
	entries[2].digest = ""
	web.put("/charts/index.yaml", indexOf(entries...))
	s := newSource(t, Options{})
	tests := []struct{ revision, want, problem string }{
		{revision: "1.0.0", want: "1.0.0"},
		{revision: "v1.0.0", want: "1.0.0"},
		{revision: "1.2.0", want: "v1.2.0"},
		{revision: "v1.2.0", want: "v1.2.0"},
		{revision: "", want: "2.0.0+build.5"},
		{revision: "*", want: "2.0.0+build.5"},
		{revision: "^1.0.0", want: "v1.2.0"},
		{revision: "1.1", want: "1.1.0"},
		{revision: "~1.1.0", want: "1.1.0"},
		{revision: ">=1.0.0 <1.2.0", want: "1.1.0"},
		{revision: "1.3.0-rc.1", want: "1.3.0-rc.1"},
		{revision: ">1.2.0-0 <2.0.0", want: "1.3.0-rc.1"},
		{revision: "2.0.0", want: "2.0.0+build.5"},
		{revision: "2.0.0+build.5", want: "2.0.0+build.5"},
		{revision: "3.x", problem: "none of the 6 versions"},
		{revision: "main", problem: "neither a version nor a constraint"},
		{revision: "1.0.0/../..", problem: "neither a version nor a constraint"},
	}
	for _, tc := range tests {
		content, revision, err := values(t, s, rutter.Repo{URL: web.URL + "/charts/", Chart: "app", Revision: tc.revision}, time.Hour)
		switch {
		case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || !strings.Contains(err.Error(), `"app"`)):
			t.Errorf("%q: got %v, want an error with %q", tc.revision, err, tc.problem)
		case tc.problem == "" && (err != nil || content != tc.want || revision != tc.want):
			t.Errorf("%q: got %q (%q), %v; want %q", tc.revision, content, revision, err, tc.want)
		}
	}
	if got := s.Stats(); got.Indexes != 1 {
		t.Errorf("the index was read more than once: %+v", got)
	}
	if _, _, err := values(t, s, rutter.Repo{URL: web.URL + "/charts", Chart: "gone"}, time.Hour); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a chart that is not there: %v", err)
	}
	if _, _, err := values(t, s, rutter.Repo{URL: web.URL + "/nowhere", Chart: "app"}, time.Hour); rutter.CodeOf(err) != rutter.CodeNotFound {
		t.Errorf("a repository that is not there: %v", err)
	}
}

func TestFreshness(t *testing.T) {
	web := newSite(t, false)
	one, two := registrytest.Chart(t, "app", "1.0.0", "one"), registrytest.Chart(t, "app", "1.0.0", "two")
	repo := rutter.Repo{URL: web.URL, Chart: "app", Revision: "1.x"}
	for _, digests := range []bool{true, false} {
		t.Run(fmt.Sprintf("digests %v", digests), func(t *testing.T) {
			publish := func(data []byte) {
				e := entry{name: "app", version: "1.0.0", url: "app.tgz"}
				if digests {
					e.digest = sumOf(data)
				}
				web.put("/app.tgz", data)
				web.put("/index.yaml", indexOf(e))
			}
			publish(one)
			dir := t.TempDir()
			s := newSource(t, Options{Dir: dir})
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if content, _, err := values(t, s, repo, 0); err != nil || content != "one" {
						t.Errorf("%q, %v", content, err)
					}
				})
			}
			all.Wait()
			if got := s.Stats(); got.Downloads != 1 || got.Indexes != 1 {
				t.Errorf("50 askers cost %+v", got)
			}
			before := s.Stats()
			if _, _, err := values(t, s, repo, time.Hour); err != nil || s.Stats() != before {
				t.Errorf("an answer of a moment ago was not used: %v, %+v", err, s.Stats())
			}
			web.asked()
			if _, _, err := values(t, s, repo, 0); err != nil || s.Stats().Downloads != 1 || s.Stats().Indexes != 1 {
				t.Errorf("nothing has changed: %v, %+v", err, s.Stats())
			}
			for _, line := range web.asked() {
				if !strings.HasSuffix(line, "if changed") {
					t.Errorf("asked without a validator: %s", line)
				}
			}
			first, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			publish(two)
			second, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{})
			if err != nil {
				t.Fatal(err)
			}
			a, _ := first.Hash(rutter.InputFile, "values.yaml")
			b, _ := second.Hash(rutter.InputFile, "values.yaml")
			if a == b || first.Revision() != second.Revision() {
				t.Errorf("a version that was pushed again: %s %s, %s %s", a, b, first.Revision(), second.Revision())
			}
			if data, err := fs.ReadFile(first, "values.yaml"); err != nil || string(data) != "one" {
				t.Errorf("the first snapshot reads %q, %v", data, err)
			}
			_ = s.Close()
			again := newSource(t, Options{Dir: dir})
			if content, _, err := values(t, again, repo, 0); err != nil || content != "two" || digests && again.Stats().Downloads != 0 {
				t.Errorf("after a restart: %q, %v, %+v", content, err, again.Stats())
			}
		})
	}
}

// TestIndexAndChartChangeTogether reads a chart that was pushed again while an
// older index is still good enough.
func TestIndexAndChartChangeTogether(t *testing.T) {
	web := newSite(t, false)
	one, two := registrytest.Chart(t, "app", "1.0.0", "one"), registrytest.Chart(t, "app", "1.0.0", "two")
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(one)}, entry{"other", "1.0.0", "other.tgz", ""}))
	web.put("/other.tgz", registrytest.Chart(t, "other", "1.0.0", "x"))
	s := newSource(t, Options{})
	if _, _, err := values(t, s, rutter.Repo{URL: web.URL, Chart: "other"}, 0); err != nil {
		t.Fatal(err)
	}
	web.put("/app.tgz", two)
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(two)}))
	if content, _, err := values(t, s, rutter.Repo{URL: web.URL, Chart: "app"}, time.Hour); err != nil || content != "two" {
		t.Errorf("%q, %v", content, err)
	}
	web.put("/app.tgz", one)
	s2 := newSource(t, Options{})
	web.asked()
	for range 3 {
		if _, _, err := values(t, s2, rutter.Repo{URL: web.URL, Chart: "app"}, time.Hour); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "refused") {
			t.Errorf("an archive with another digest: %v", err)
		}
	}
	downloads := 0
	for _, line := range web.asked() {
		if strings.Contains(line, "app.tgz") {
			downloads++
		}
	}
	if downloads != 1 {
		t.Errorf("the wrong archive was fetched %d times", downloads)
	}
}

func TestLoginStaysAtHome(t *testing.T) {
	const user, password = "robot", "s3cr3t-pw"
	data := registrytest.Chart(t, "app", "1.0.0", "x")
	setup := func(t *testing.T) (home, away *site) {
		home, away = newSite(t, false), newSite(t, false)
		home.user, home.password = user, password
		home.put("/team/charts/app.tgz", data)
		home.put("/team/other/app.tgz", data)
		away.put("/app.tgz", data)
		return home, away
	}
	tests := []struct {
		name string
		// link is the chart's address in the index; HOME and AWAY are replaced.
		link     string
		redirect map[string]string
		pass     bool
		cred     rutter.RepoCredential
		code     rutter.Code
		wantAway []string
		want     string
	}{
		{name: "relative", link: "app.tgz"},
		{name: "on the same host", link: "HOME/team/charts/app.tgz"},
		{name: "on another host", link: "AWAY/app.tgz", wantAway: []string{"GET /app.tgz"}},
		{name: "on another host, passed", link: "AWAY/app.tgz", pass: true, wantAway: []string{"GET /app.tgz as robot"}},
		{name: "outside of the prefix", link: "../other/app.tgz", code: rutter.CodeForbidden, want: "passCredentials"},
		{name: "outside of the prefix, passed", link: "../other/app.tgz", pass: true},
		{name: "outside by encoded dots", link: "x/%2e%2e/%2e%2e/other/app.tgz", code: rutter.CodeInvalid, want: "path with"},
		{name: "outside by a backslash", link: `x/..%5c..%5cother/app.tgz`, code: rutter.CodeInvalid, want: "path with"},
		{name: "redirected elsewhere", link: "moved.tgz", redirect: map[string]string{"/team/charts/moved.tgz": "AWAY/app.tgz"}, wantAway: []string{"GET /app.tgz"}},
		{name: "redirected elsewhere, passed", link: "moved.tgz", pass: true, redirect: map[string]string{"/team/charts/moved.tgz": "AWAY/app.tgz"}, wantAway: []string{"GET /app.tgz"}},
		{name: "index redirected elsewhere", link: "app.tgz", redirect: map[string]string{"/team/charts/index.yaml": "AWAY/index.yaml"}, wantAway: []string{"GET /index.yaml"}},
		{name: "login in the index", link: "http://thief:pw@AWAYHOST/app.tgz", wantAway: []string{"GET /app.tgz"}},
		{name: "template", link: "app.tgz", cred: rutter.RepoCredential{URL: "HOME/te", Template: true}},
		{name: "template of a host that begins alike", link: "app.tgz", cred: rutter.RepoCredential{URL: "HOST1", Template: true}, code: rutter.CodeForbidden, want: "no credential"},
		{name: "https only", link: "app.tgz", cred: rutter.RepoCredential{URL: "https://HOMEHOST", Template: true}, code: rutter.CodeForbidden, want: "no credential"},
		{name: "another project's", link: "app.tgz", cred: rutter.RepoCredential{URL: "HOME", Template: true, Project: "other"}, code: rutter.CodeForbidden, want: "no credential"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			home, away := setup(t)
			// The same machine by another name is another host.
			names := strings.NewReplacer("HOMEHOST", home.Listener.Addr().String(), "AWAYHOST", strings.Replace(away.Listener.Addr().String(), "127.0.0.1", "localhost", 1),
				"HOST1", home.URL[:len(home.URL)-1], "HOME", home.URL, "AWAY", strings.Replace(away.URL, "127.0.0.1", "localhost", 1))
			index := indexOf(entry{"app", "1.0.0", names.Replace(tc.link), ""})
			home.put("/team/charts/index.yaml", index)
			away.put("/index.yaml", index)
			for from, to := range tc.redirect {
				home.redirect[from] = names.Replace(to)
			}
			cred := tc.cred
			if cred.URL == "" {
				cred.URL = "HOME/team/charts"
			}
			cred.URL, cred.Type, cred.Username, cred.Password = names.Replace(cred.URL), "helm", user, password
			s := newSource(t, Options{}, cred)
			_, _, err := values(t, s, rutter.Repo{URL: home.URL + "/team/charts", Chart: "app", Project: "mine", PassCredentials: tc.pass}, 0)
			if rutter.CodeOf(err) != tc.code || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), password)) {
				t.Errorf("got %v (%s), want %q with %q", err, rutter.CodeOf(err), tc.code, tc.want)
			}
			if got := away.asked(); strings.Join(got, "\n") != strings.Join(tc.wantAway, "\n") {
				t.Errorf("the other host was asked %q, want %q", got, tc.wantAway)
			}
		})
	}
}

func TestClientCertificatesAndAuthorities(t *testing.T) {
	web := newSite(t, true)
	data := registrytest.Chart(t, "app", "1.0.0", "x")
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(data)}))
	web.put("/app.tgz", data)
	repo := rutter.Repo{URL: web.URL, Chart: "app"}
	s := newSource(t, Options{})
	if _, _, err := values(t, s, repo, 0); rutter.CodeOf(err) != rutter.CodeUnavailable || !strings.Contains(err.Error(), "argocd-tls-certs-cm") {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
	s.SetCredentials([]rutter.RepoCredential{{URL: web.URL, Type: "helm", Insecure: true}}, rutter.RepoTrust{})
	if _, _, err := values(t, s, repo, time.Hour); err != nil {
		t.Errorf("insecure: %v", err)
	}
	s.SetCredentials(nil, rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": "no PEM"}})
	if _, _, err := values(t, s, repo, time.Hour); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Errorf("an authority that is none: %v", err)
	}
	s.SetCredentials([]rutter.RepoCredential{{URL: web.URL, Type: "helm", TLSClientCert: "x", TLSClientKey: "y"}}, rutter.RepoTrust{})
	if _, _, err := values(t, s, repo, time.Hour); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "tlsClientCert") {
		t.Errorf("a client certificate that is none: %v", err)
	}
	if lines := web.asked(); len(lines) != 2 {
		t.Errorf("asked %q", lines)
	}
}

func TestProxy(t *testing.T) {
	web := newSite(t, false)
	data := registrytest.Chart(t, "app", "1.0.0", "x")
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(data)}))
	web.put("/app.tgz", data)
	var through []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through = append(through, r.URL.Host+r.URL.Path)
		web.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	repo := rutter.Repo{URL: "http://charts.example.test/", Chart: "app"}
	s := newSource(t, Options{}, rutter.RepoCredential{URL: repo.URL, Type: "helm", Proxy: proxy.URL})
	if _, _, err := values(t, s, repo, 0); err != nil || len(through) != 2 {
		t.Errorf("%q, %v", through, err)
	}
	s.SetCredentials([]rutter.RepoCredential{{URL: "http://169.254.169.254", Type: "helm", Proxy: proxy.URL}}, rutter.RepoTrust{})
	if _, _, err := values(t, s, rutter.Repo{URL: "http://169.254.169.254", Chart: "app"}, 0); rutter.CodeOf(err) != rutter.CodeForbidden || len(through) != 2 {
		t.Errorf("the metadata service by way of the proxy: %v, %q", err, through)
	}
}

func TestHostileRepositories(t *testing.T) {
	web := newSite(t, false)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "index.yaml") {
			_, _ = w.Write([]byte("entries:\n  app:\n"))
		}
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(w, "  - version: 1.0.%d\n    urls: [x]\n", i); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	pack := func(files map[string]string) []byte { return registrytest.TarGzip(t, files) }
	tests := []struct {
		name  string
		chart string
		url   string
		data  []byte
		want  string
	}{
		{name: "name of dots", chart: "..", want: "no name of a chart"},
		{name: "name of one dot", chart: ".", want: "no name of a chart"},
		{name: "name with a slash", chart: "a/../../b", want: "no name of a chart"},
		{name: "name with an escape", chart: "a\x1b[0m", want: "no name of a chart"},
		{name: "no Chart.yaml", data: pack(map[string]string{"app/values.yaml": "x"}), want: "no Chart.yaml"},
		{name: "Chart.yaml at the top", data: pack(map[string]string{"Chart.yaml": "name: app\nversion: 1.0.0\n"}), want: "lies in one folder"},
		{name: "Chart.yaml with a name of dots", data: pack(map[string]string{"app/Chart.yaml": "name: ..\nversion: 1.0.0\n"}), want: "no name of a chart"},
		{name: "Chart.yaml with a path for a version", data: pack(map[string]string{"app/Chart.yaml": "name: app\nversion: ../../1.0.0\n"}), want: "no version of a chart"},
		{name: "escaping", data: pack(map[string]string{"app/Chart.yaml": "name: app\nversion: 1.0.0\n", "app/../../sentinel": "x"}), want: ".. in its name"},
		{name: "bomb", data: pack(map[string]string{"app/Chart.yaml": "name: app\nversion: 1.0.0\n", "app/files/zero": strings.Repeat("\x00", 20<<20)}), want: "times its size"},
		{name: "large", data: pack(map[string]string{"app/Chart.yaml": "name: app\nversion: 1.0.0\n", "app/files/noise": noise(2 << 20)}), want: "larger than 1048576"},
		{name: "no archive", data: []byte("<html>login</html>"), want: "damaged"},
		{name: "endless chart", url: endless.URL + "/chart.tgz", want: "damaged"},
		{name: "file", url: "file:///etc/passwd", want: "protocol \"file\" is not allowed"},
		{name: "metadata service", url: "http://169.254.169.254/latest/user-data", want: "169.254.169.254 is refused"},
		{name: "registry without a tag", url: "oci://example.com/app", want: "has no tag"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			s := newSource(t, Options{Dir: dir, MaxBytes: 1 << 20, DownloadTimeout: 5 * time.Second})
			chart, url := tc.chart, tc.url
			if chart == "" {
				chart = "app"
			}
			if url == "" {
				url = "app.tgz"
			}
			web.put("/bad/index.yaml", indexOf(entry{"app", "1.0.0", url, ""}))
			web.put("/bad/app.tgz", tc.data)
			_, _, err := values(t, s, rutter.Repo{URL: web.URL + "/bad", Chart: chart}, 0)
			if code := rutter.CodeOf(err); err == nil || !strings.Contains(err.Error(), tc.want) || code != rutter.CodeInvalid && code != rutter.CodeForbidden {
				t.Errorf("got %v (%s), want an error with %q", err, code, tc.want)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				t.Errorf("left behind %q", left)
			}
		})
	}
	s := newSource(t, Options{MaxIndexBytes: 1 << 20})
	if _, _, err := values(t, s, rutter.Repo{URL: endless.URL, Chart: "app"}, 0); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("an endless index: %v", err)
	}
}

// TestStoreIsNotShared has an index name the digest of a chart of another
// repository, which needs a login.
func TestStoreIsNotShared(t *testing.T) {
	private, thief := newSite(t, false), newSite(t, false)
	secret := registrytest.Chart(t, "app", "1.0.0", "secret")
	private.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(secret)}))
	private.put("/app.tgz", secret)
	private.user, private.password = "u", "p"
	thief.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(secret)}, entry{"same", "1.0.0", private.URL + "/app.tgz", sumOf(secret)}))
	s := newSource(t, Options{}, rutter.RepoCredential{URL: private.URL, Type: "helm", Username: "u", Password: "p"})
	if content, _, err := values(t, s, rutter.Repo{URL: private.URL, Chart: "app"}, 0); err != nil || content != "secret" {
		t.Fatalf("%q, %v", content, err)
	}
	for _, chart := range []string{"app", "same"} {
		if content, _, err := values(t, s, rutter.Repo{URL: thief.URL, Chart: chart}, 0); err == nil {
			t.Errorf("%s: another repository's chart was handed out: %q", chart, content)
		}
	}
}

func TestNamedRepositories(t *testing.T) {
	web := newSite(t, false)
	data := registrytest.Chart(t, "app", "1.0.0", "x")
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(data)}))
	web.put("/app.tgz", data)
	web.user, web.password = "u", "p-w"
	s := newSource(t, Options{},
		rutter.RepoCredential{URL: web.URL, Name: "ours", Type: "helm", Username: "u", Password: "p-w"},
		rutter.RepoCredential{URL: web.URL, Name: "theirs", Type: "helm", Project: "other"})
	for _, url := range []string{"@ours", "alias:ours"} {
		if _, _, err := values(t, s, rutter.Repo{URL: url, Chart: "app"}, time.Hour); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"@theirs", "alias:nobody", "@"} {
		if _, _, err := values(t, s, rutter.Repo{URL: url, Chart: "app", Project: "mine"}, time.Hour); rutter.CodeOf(err) != rutter.CodeNotFound {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// push pushes a chart with Helm's own client.
func push(t *testing.T, reg *registrytest.Registry, repository, name, version, content string, opts ...helm.ClientOption) {
	t.Helper()
	client, err := helm.NewClient(append([]helm.ClientOption{helm.ClientOptWriter(io.Discard), helm.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "none"))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Push(registrytest.Chart(t, name, version, "is: "+content), reg.Host+"/"+repository+"/"+name+":"+version); err != nil {
		t.Fatal(err)
	}
}

func TestChartsInRegistries(t *testing.T) {
	const user, password = "robot", "s3cr3t-pw"
	reg := registrytest.Start(t, registrytest.Options{User: user, Password: password})
	login := []helm.ClientOption{helm.ClientOptPlainHTTP(), helm.ClientOptBasicAuth(user, password)}
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0-rc.1", "2.0.0+build.5"} {
		push(t, reg, "team/charts", "app", version, version, login...)
	}
	reg.Push(t, "team/charts/artifact", "1.0.0", "application/vnd.oci.empty.v1+json", registrytest.Layer{MediaType: registry.LayerGzip, Data: registrytest.TarGzip(t, map[string]string{"a": "b"})})
	// A prefix without a scheme, as the reference writes those of registries.
	cred := rutter.RepoCredential{URL: reg.Host + "/team", Name: "team", Type: "helm", EnableOCI: true, PlainHTTP: true, Username: user, Password: password}
	s := newSource(t, Options{}, cred)
	tests := []struct{ url, chart, revision, want, problem string }{
		{url: reg.Host + "/team/charts", chart: "app", revision: "1.0.0", want: "1.0.0"},
		{url: "oci://" + reg.Host + "/team/charts", chart: "app", revision: "1.0.0", want: "1.0.0"},
		{url: "oci://" + reg.Host + "/team", chart: "charts/app", revision: "v1.1.0", want: "1.1.0"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "^1.0.0", want: "1.1.0"},
		{url: reg.Host + "/team/charts", chart: "app", revision: ">=1.0.0-0 <2.0.0", want: "1.2.0-rc.1"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "", want: "2.0.0+build.5"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "2.0.0+build.5", want: "2.0.0+build.5"},
		{url: "@team", chart: "charts/app", revision: "1.0.0", want: "1.0.0"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "9.9.9", problem: "not found"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "^9", problem: "none of its 4 tags"},
		{url: reg.Host + "/team/charts", chart: "app", revision: "latest", problem: "neither a version"},
		{url: reg.Host + "/team/charts", chart: "..", revision: "1.0.0", problem: "no name of a chart"},
		{url: reg.Host + "/team/charts", chart: "../other/app", revision: "1.0.0", problem: "no name of a chart"},
		{url: reg.Host + "/team/charts", chart: "artifact", revision: "1.0.0", problem: "is no chart"},
		{url: reg.Host + "/team/charts", chart: "gone", revision: "1.0.0", problem: "considered the repository credential \"team\""},
	}
	for _, tc := range tests {
		content, revision, err := values(t, s, rutter.Repo{URL: tc.url, Chart: tc.chart, Revision: tc.revision}, time.Hour)
		switch {
		case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem) || strings.Contains(err.Error(), password)):
			t.Errorf("%s %s %q: got %v, want an error with %q", tc.url, tc.chart, tc.revision, err, tc.problem)
		case tc.problem == "" && (err != nil || content != tc.want || revision != tc.want):
			t.Errorf("%s %s %q: got %q (%q), %v; want %q", tc.url, tc.chart, tc.revision, content, revision, err, tc.want)
		}
	}
	if got := s.Stats(); got.Downloads != 4 {
		t.Errorf("%d versions were downloaded: %+v", 4, got)
	}
	push(t, reg, "team/charts", "app", "1.0.0", "again", login...)
	if content, revision, err := values(t, s, rutter.Repo{URL: reg.Host + "/team/charts", Chart: "app", Revision: "1.0.0"}, 0); err != nil || content != "again" || revision != "1.0.0" {
		t.Errorf("a version that was pushed again: %q (%q), %v", content, revision, err)
	}
}

// TestIndexLeadsToRegistry has an index name a chart in a registry: the login is
// the registry's own, never the index's.
func TestIndexLeadsToRegistry(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{User: "r", Password: "registry-pw"})
	push(t, reg, "charts", "app", "1.0.0", "from the registry", helm.ClientOptPlainHTTP(), helm.ClientOptBasicAuth("r", "registry-pw"))
	reg.Seen()
	web := newSite(t, false)
	web.user, web.password = "w", "web-pw"
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "oci://" + reg.Host + "/charts/app:1.0.0", ""}))
	repo := rutter.Repo{URL: web.URL, Chart: "app", Revision: "1.0.0", PassCredentials: true}
	index := rutter.RepoCredential{URL: web.URL, Type: "helm", Username: "w", Password: "web-pw"}
	s := newSource(t, Options{}, index, rutter.RepoCredential{URL: reg.Host, Type: "oci", PlainHTTP: true})
	if _, _, err := values(t, s, repo, 0); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("without the registry's login: %v", err)
	}
	for _, r := range reg.Seen() {
		if r.Authorization != "" {
			t.Errorf("the registry was sent %q", r.Authorization)
		}
	}
	s.SetCredentials([]rutter.RepoCredential{index, {URL: reg.Host, Type: "oci", PlainHTTP: true, Username: "r", Password: "registry-pw"}}, rutter.RepoTrust{})
	if content, revision, err := values(t, s, repo, 0); err != nil || content != "from the registry" || revision != "1.0.0" {
		t.Errorf("%q (%q), %v", content, revision, err)
	}
}

// TestB20SecretComesBack removes the Secret of a private registry and adds it
// again: each is seen at once, whatever age of answers is good enough.
func TestB20SecretComesBack(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{User: "u", Password: "p-w"})
	push(t, reg, "team", "dep", "1.0.0", "x", helm.ClientOptPlainHTTP(), helm.ClientOptBasicAuth("u", "p-w"))
	open := rutter.RepoCredential{URL: reg.Host, Type: "helm", Template: true, PlainHTTP: true}
	cred := rutter.RepoCredential{URL: reg.Host + "/team", Name: "registry-team", Type: "helm", EnableOCI: true, PlainHTTP: true, Username: "u", Password: "p-w"}
	wrong := cred
	wrong.Password = "wr0ng-pw"
	s := newSource(t, Options{}, open, cred)
	repo := rutter.Repo{URL: "oci://" + reg.Host + "/team", Chart: "dep", Revision: "1.x"}
	for round := range 2 {
		if _, _, err := values(t, s, repo, time.Hour); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		s.SetCredentials([]rutter.RepoCredential{open}, rutter.RepoTrust{})
		if _, _, err := values(t, s, repo, time.Hour); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "the credential template for "+reg.Host+", which has no login") {
			t.Errorf("round %d, removed: %v", round, err)
		}
		s.SetCredentials([]rutter.RepoCredential{open, wrong}, rutter.RepoTrust{})
		if _, _, err := values(t, s, repo, time.Hour); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), `"registry-team" for `+reg.Host+"/team") || strings.Contains(err.Error(), "-pw") {
			t.Errorf("round %d, wrong: %v", round, err)
		}
		s.SetCredentials([]rutter.RepoCredential{open, cred}, rutter.RepoTrust{})
	}
}

func TestDamageIsFetchedAgain(t *testing.T) {
	web := newSite(t, false)
	data := registrytest.Chart(t, "app", "1.0.0", "content")
	web.put("/index.yaml", indexOf(entry{"app", "1.0.0", "app.tgz", sumOf(data)}))
	web.put("/app.tgz", data)
	dir := t.TempDir()
	s := newSource(t, Options{Dir: dir})
	repo := rutter.Repo{URL: web.URL, Chart: "app"}
	if _, _, err := values(t, s, repo, 0); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	packs, _ := filepath.Glob(filepath.Join(dir, "*.pack"))
	if len(packs) != 1 {
		t.Fatalf("packs %q", packs)
	}
	damage(t, packs[0])
	s = newSource(t, Options{Dir: dir, Limits: unpack.Limits{}})
	if content, _, err := values(t, s, repo, 0); err != nil || content != "content" || s.Stats().Downloads != 1 {
		t.Errorf("%q, %v, %+v", content, err, s.Stats())
	}
}

// noise cannot be packed.
func noise(n int) string {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return string(data)
}

func damage(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[0] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
