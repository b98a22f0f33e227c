package oci

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/registry"
	"github.com/rutterhq/rutter/internal/source/registrytest"
	"github.com/rutterhq/rutter/internal/source/unpack"
)

const emptyConfig = "application/vnd.oci.empty.v1+json"

func newSource(t *testing.T, opts Options, trust rutter.RepoTrust, creds ...rutter.RepoCredential) *Source {
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
	s.SetCredentials(creds, trust)
	return s
}

// plain is a credential by which a registry without TLS is used.
func plain(reg *registrytest.Registry) rutter.RepoCredential {
	return rutter.RepoCredential{URL: "oci://" + reg.Host, Type: "oci", PlainHTTP: true, Template: true}
}

func layer(mediaType string, data []byte) registrytest.Layer {
	return registrytest.Layer{MediaType: mediaType, Data: data}
}

func read(t *testing.T, s *Source, repo rutter.Repo, file string) (content, revision string, err error) {
	t.Helper()
	snap, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{})
	if err != nil {
		return "", "", err
	}
	data, err := fs.ReadFile(snap, file)
	return string(data), snap.Revision(), err
}

func TestMediaTypes(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{})
	s := newSource(t, Options{}, rutter.RepoTrust{}, plain(reg))
	files := map[string]string{"a.yaml": "kind: ConfigMap\n", "d/b.yaml": "x"}
	zipped, tarred := registrytest.TarGzip(t, files), registrytest.Tar(t, files)
	chart := registrytest.Chart(t, "app", "1.0.0", "x: 1\n")
	tests := []struct {
		name   string
		config string
		layers []registrytest.Layer
		file   string
		want   string
	}{
		{"argo", emptyConfig, []registrytest.Layer{layer(registry.LayerGzip, zipped)}, "a.yaml", ""},
		{"argo-plain", emptyConfig, []registrytest.Layer{layer(registry.Layer, tarred)}, "a.yaml", ""},
		{"flux", "application/vnd.cncf.flux.config.v1+json", []registrytest.Layer{layer(registry.FluxContent, zipped)}, "d/b.yaml", ""},
		{"helm", registry.HelmConfig, []registrytest.Layer{layer(registry.HelmChart, chart)}, "Chart.yaml", ""},
		{"helm-with-proof", registry.HelmConfig, []registrytest.Layer{layer("application/vnd.cncf.helm.chart.provenance.v1.prov", []byte("signed")), layer(registry.HelmChart, chart)}, "values.yaml", ""},
		{"with-others", emptyConfig, []registrytest.Layer{layer("application/spdx+json", []byte("{}")), layer(registry.LayerGzip, zipped)}, "a.yaml", ""},
		{"two", emptyConfig, []registrytest.Layer{layer(registry.LayerGzip, zipped), layer(registry.Layer, tarred)}, "", "2 layers that could be used"},
		{"none", emptyConfig, nil, "", "no layer that can be used"},
		{"unknown", emptyConfig, []registrytest.Layer{layer("application/vnd.oci.image.layer.v1.tar+zstd", []byte("zstd"))}, "", "tar+zstd"},
		{"no-archive", emptyConfig, []registrytest.Layer{layer(registry.LayerGzip, []byte("text"))}, "", "damaged"},
		{"escaping", emptyConfig, []registrytest.Layer{layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"../../sentinel": "x"}))}, "", ".. in its name"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			digest := reg.Push(t, "apps/"+tc.name, "v1", tc.config, tc.layers...)
			repo := rutter.Repo{URL: "oci://" + reg.Host + "/apps/" + tc.name, Revision: "v1"}
			content, revision, err := read(t, s, repo, tc.file)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "apps/"+tc.name) || rutter.CodeOf(err) != rutter.CodeInvalid {
					t.Errorf("got %v, want an error with %q", err, tc.want)
				}
				return
			}
			if err != nil || content == "" || revision != digest {
				t.Errorf("got %q of %q, %v; want that of %q", content, revision, err, digest)
			}
		})
	}
}

func TestRevisions(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{})
	s := newSource(t, Options{}, rutter.RepoTrust{}, plain(reg))
	digests := map[string]string{}
	for _, tag := range []string{"1.0.0", "v1.1.0", "1.2.0-rc.1", "1.2.3_build.7", "main", "latest", "2.0"} {
		digests[tag] = reg.Push(t, "app", tag, emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"tag": tag})))
	}
	digests["index"] = digests["main"]
	reg.PushIndex(t, "app", "index", digests["main"])
	reg.PushIndex(t, "app", "many", digests["main"], digests["latest"])
	tests := []struct{ revision, want, problem string }{
		{revision: "", want: "latest"},
		{revision: "main", want: "main"},
		{revision: "1.0.0", want: "1.0.0"},
		{revision: "v1.1.0", want: "v1.1.0"},
		{revision: "1.2.0-rc.1", want: "1.2.0-rc.1"},
		{revision: "1.2.3+build.7", want: "1.2.3_build.7"},
		{revision: "^1.0.0", want: "1.2.3_build.7"},
		{revision: "~1.1", want: "v1.1.0"},
		{revision: ">=1.1.0 <1.2.1-0", want: "1.2.0-rc.1"},
		{revision: "2.0", want: "2.0"},
		{revision: "1.1", want: "v1.1.0"},
		{revision: "index", want: "index"},
		{revision: digests["1.0.0"], want: "1.0.0"},
		{revision: "3.x", problem: "none of its"},
		{revision: "gone", problem: "not found"},
		{revision: "many", problem: "index of 2 manifests"},
		{revision: "no tag!", problem: "no tag, no digest"},
		{revision: "sha256:" + strings.Repeat("0", 64), problem: "not found"},
		{revision: "../../x", problem: "no tag, no digest"},
	}
	for _, tc := range tests {
		content, revision, err := read(t, s, rutter.Repo{URL: "OCI://" + strings.ToUpper(reg.Host) + "/app", Revision: tc.revision}, "tag")
		switch {
		case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)):
			t.Errorf("%q: got %v, want an error with %q", tc.revision, err, tc.problem)
		case tc.problem == "" && (err != nil || tc.revision != "index" && (content != tc.want || revision != digests[tc.want])):
			t.Errorf("%q: got %q (%s), %v; want %q", tc.revision, content, revision, err, tc.want)
		}
	}
}

// TestRegistryWithoutHead asks one that answers only GET, and one that does not
// tell digests.
func TestRegistryWithoutHead(t *testing.T) {
	for _, status := range []int{http.StatusMethodNotAllowed, http.StatusOK} {
		reg := registrytest.Start(t, registrytest.Options{})
		digest := reg.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "x"})))
		reg.Hook(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodHead {
				w.WriteHeader(status)
			}
			return r.Method == http.MethodHead
		})
		s := newSource(t, Options{}, rutter.RepoTrust{}, plain(reg))
		if _, revision, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: "v1"}, "f"); err != nil || revision != digest {
			t.Errorf("%d: got %q, %v", status, revision, err)
		}
	}
}

func TestLogin(t *testing.T) {
	const user, password = "robot", "s3cr3t-pw"
	tests := []struct {
		name  string
		opts  registrytest.Options
		creds func(host string) []rutter.RepoCredential
		// problem and names are what the error says; empty for success.
		problem rutter.Code
		names   string
	}{
		{
			name: "password", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: "oci://" + host + "/team/app", Type: "oci", Username: user, Password: password}}
			},
		},
		{
			name: "token", opts: registrytest.Options{User: user, Password: password, Token: true},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: "oci://" + host + "/team/", Type: "oci", Template: true, Username: user, Password: password}}
			},
		},
		{
			name: "registered for a prefix without a scheme", opts: registrytest.Options{User: user, Password: password, Token: true},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: host + "/team", Type: "helm", EnableOCI: true, Username: user, Password: password}}
			},
		},
		{
			name: "wrong password", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: "oci://" + host + "/team", Name: "the-team", Type: "oci", Username: user, Password: "wr0ng-pw"}}
			},
			problem: rutter.CodeForbidden, names: `"the-team" for oci://`,
		},
		{
			name: "wrong password for a token", opts: registrytest.Options{User: user, Password: password, Token: true},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: host, Template: true, Type: "oci", Username: user, Password: "wr0ng-pw"}}
			},
			problem: rutter.CodeForbidden, names: "the credential template for 127.0.0.1",
		},
		{
			name: "none", opts: registrytest.Options{User: user, Password: password},
			creds:   func(string) []rutter.RepoCredential { return nil },
			problem: rutter.CodeForbidden, names: "no credential",
		},
		{
			name: "of a neighbour", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: "oci://" + host + "/tea", Type: "oci", Username: user, Password: password}}
			},
			problem: rutter.CodeForbidden, names: "no credential",
		},
		{
			name: "of another project", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{{URL: "oci://" + host, Template: true, Type: "oci", Project: "other", Username: user, Password: password}}
			},
			problem: rutter.CodeForbidden, names: "no credential",
		},
		{
			name: "of its own project before all others", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{
					{URL: "oci://" + host, Template: true, Type: "oci", Username: user, Password: "wr0ng-pw"},
					{URL: "oci://" + host, Template: true, Type: "oci", Project: "mine", Username: user, Password: password},
				}
			},
		},
		{
			name: "the longest prefix", opts: registrytest.Options{User: user, Password: password},
			creds: func(host string) []rutter.RepoCredential {
				return []rutter.RepoCredential{
					{URL: "oci://" + host + "/team/a", Template: true, Type: "oci", Username: user, Password: password},
					{URL: "oci://" + host + "/team", Template: true, Type: "oci", Username: user, Password: "wr0ng-pw"},
				}
			},
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			tc.opts.TLS = true
			reg := registrytest.Start(t, tc.opts)
			reg.Push(t, "team/app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "content"})))
			s := newSource(t, Options{}, rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": reg.CA}}, tc.creds(reg.Host)...)
			content, _, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/team/app", Revision: "v1", Project: "mine"}, "f")
			if rutter.CodeOf(err) != tc.problem || tc.problem == "" && content != "content" {
				t.Fatalf("got %q, %v (%s); want %q", content, err, rutter.CodeOf(err), tc.problem)
			}
			if err != nil && (!strings.Contains(err.Error(), tc.names) || strings.Contains(err.Error(), "-pw")) {
				t.Errorf("got %v, want an error that has %q and no password", err, tc.names)
			}
		})
	}
}

// TestSecretComesBack is the second half of scenario B20.
func TestSecretComesBack(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{User: "u", Password: "p-w", TLS: true, Token: true})
	reg.Push(t, "team/app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "content"})))
	trust := rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": reg.CA}}
	cred := rutter.RepoCredential{URL: reg.Host + "/team", Type: "oci", Username: "u", Password: "p-w"}
	s := newSource(t, Options{}, trust, cred)
	repo := rutter.Repo{URL: "oci://" + reg.Host + "/team/app", Revision: "v1"}
	hour := rutter.ResolveOptions{MaxAge: int64(time.Hour)}
	for i := range 3 {
		if _, err := s.Snapshot(t.Context(), repo, hour); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		s.SetCredentials(nil, trust)
		if _, err := s.Snapshot(t.Context(), repo, hour); rutter.CodeOf(err) != rutter.CodeForbidden {
			t.Fatalf("round %d: without the Secret: %v", i, err)
		}
		s.SetCredentials([]rutter.RepoCredential{cred}, trust)
	}
}

func TestSharedWork(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{})
	reg.Push(t, "app", "1.0.0", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "one"})))
	dir := t.TempDir()
	s := newSource(t, Options{Dir: dir}, rutter.RepoTrust{}, plain(reg))
	repo := rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: "1.0.0"}
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.Stats(); got.Downloads != 1 || got.Lookups > 2 {
		t.Errorf("50 askers cost %+v", got)
	}
	before := s.Stats()
	if _, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{MaxAge: int64(time.Hour)}); err != nil || s.Stats() != before {
		t.Errorf("an answer of a moment ago was not used: %+v, %v", s.Stats(), err)
	}
	reg.Push(t, "app", "1.0.0", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "two"})))
	if content, _, err := read(t, s, repo, "f"); err != nil || content != "two" {
		t.Errorf("a tag that moved: %q, %v", content, err)
	}
	_ = s.Close()
	again := newSource(t, Options{Dir: dir}, rutter.RepoTrust{}, plain(reg))
	if content, _, err := read(t, again, repo, "f"); err != nil || content != "two" || again.Stats().Downloads != 0 {
		t.Errorf("after a restart: %q, %v, %+v", content, err, again.Stats())
	}
	if _, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{}); rutter.CodeOf(err) != rutter.CodeUnavailable {
		t.Errorf("a closed source: %v", err)
	}
}

// TestRealmElsewhere has a registry ask for the password on another host.
func TestRealmElsewhere(t *testing.T) {
	var stolen []string
	thief := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		stolen = append(stolen, r.Header.Get("Authorization"))
	}))
	defer thief.Close()
	for _, realm := range []string{
		strings.Replace(thief.URL, "127.0.0.1", "localhost", 1), "http://127.0.0.1:1/token", "https://user@127.0.0.1/token", "file:///etc/passwd", "nonsense",
	} {
		reg := registrytest.Start(t, registrytest.Options{User: "u", Password: "p-w", TLS: true, Token: true, Realm: realm})
		s := newSource(t, Options{}, rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": reg.CA, "localhost": reg.CA}},
			rutter.RepoCredential{URL: reg.Host, Template: true, Type: "oci", Username: "u", Password: "p-w", Insecure: true})
		_, _, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: "v1"}, "f")
		if code := rutter.CodeOf(err); code != rutter.CodeForbidden && code != rutter.CodeInvalid {
			t.Errorf("%s: got %v", realm, err)
		}
	}
	if len(stolen) > 0 {
		t.Errorf("the login was sent to %q", stolen)
	}
}

// TestLayerElsewhere has layers served by another host, as large registries do.
func TestLayerElsewhere(t *testing.T) {
	data := registrytest.TarGzip(t, map[string]string{"f": "content"})
	var seen []string
	cdn := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("Authorization")+r.Header.Get("Cookie"))
		_, _ = w.Write(data)
	}))
	defer cdn.Close()
	for _, token := range []bool{false, true} {
		reg := registrytest.Start(t, registrytest.Options{User: "u", Password: "p-w", Token: token})
		reg.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, data))
		cred := plain(reg)
		cred.Username, cred.Password = "u", "p-w"
		s := newSource(t, Options{}, rutter.RepoTrust{}, cred)
		reg.Hook(func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			http.Redirect(w, r, strings.Replace(cdn.URL, "127.0.0.1", "localhost", 1)+"/blob?signature=abc", http.StatusTemporaryRedirect)
			return true
		})
		if content, _, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: "v1"}, "f"); err != nil || content != "content" {
			t.Errorf("token %v: %q, %v", token, content, err)
		}
	}
	for _, auth := range seen {
		if auth != "" {
			t.Errorf("the other host was sent %q", auth)
		}
	}
	if len(seen) != 2 {
		t.Errorf("the other host was asked %d times", len(seen))
	}
}

// TestHostileRegistry has a registry answer what it should not.
func TestHostileRegistry(t *testing.T) {
	endless := func(w http.ResponseWriter, header string) {
		w.WriteHeader(http.StatusOK)
		if _, err := w.Write([]byte(header)); err != nil {
			return
		}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
	tests := []struct {
		name     string
		revision string
		answer   func(w http.ResponseWriter, r *http.Request) bool
		code     rutter.Code
		want     string
	}{
		{"endless manifest", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			endless(w, `{"layers":[`)
			return true
		}, rutter.CodeInvalid, "larger than"},
		{"endless layer", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			endless(w, "x")
			return true
		}, rutter.CodeInvalid, "damaged"},
		{"endless tags", ">1", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/tags/") {
				return false
			}
			endless(w, `{"tags":["`)
			return true
		}, rutter.CodeInvalid, "larger than"},
		{"pages without end", ">1", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/tags/") {
				return false
			}
			w.Header().Set("Link", `</v2/app/tags/list?last=x&n=1000>; rel="next"`)
			_, _ = w.Write([]byte(`{"tags":["x"]}`))
			return true
		}, rutter.CodeUnavailable, "no end"},
		{"another manifest", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/manifests/") {
				return false
			}
			_, _ = w.Write([]byte(`{"layers":[]}`))
			return true
		}, rutter.CodeUnavailable, "another content"},
		{"another layer", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				return false
			}
			_, _ = w.Write(registrytest.TarGzip(t, map[string]string{"f": "evil"}))
			return true
		}, rutter.CodeUnavailable, "another content"},
		{"redirects without end", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, rutter.CodeInvalid, "redirects more than"},
		{"redirect to the metadata service", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
			return true
		}, rutter.CodeForbidden, "169.254.169.254 is refused"},
		{"redirect to a file", "v1", func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
			return true
		}, rutter.CodeForbidden, "refused"},
		{"silence", "v1", func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, rutter.CodeUnavailable, "in time"},
		{"failure", "v1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}, rutter.CodeUnavailable, "502"},
		{"rate limit", "v1", func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}, rutter.CodeUnavailable, "rate"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			reg := registrytest.Start(t, registrytest.Options{})
			reg.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "good"})))
			dir := t.TempDir()
			s := newSource(t, Options{Dir: dir, LookupTimeout: 2 * time.Second, MaxBytes: 1 << 20, Limits: unpack.Limits{TotalBytes: 1 << 20}}, rutter.RepoTrust{}, plain(reg))
			if tc.name == "silence" {
				s = newSource(t, Options{LookupTimeout: 100 * time.Millisecond}, rutter.RepoTrust{}, plain(reg))
			}
			reg.Hook(tc.answer)
			repo := rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: tc.revision}
			_, err := s.Snapshot(t.Context(), repo, rutter.ResolveOptions{})
			if rutter.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v (%s), want %s with %q", err, rutter.CodeOf(err), tc.code, tc.want)
			}
			left, _ := filepath.Glob(filepath.Join(dir, "*"))
			if len(left) > 0 {
				t.Errorf("left behind %q", left)
			}
			reg.Hook(nil)
			if tc.revision == "v1" {
				if content, _, err := read(t, s, repo, "f"); err != nil || content != "good" {
					t.Errorf("afterwards: %q, %v", content, err)
				}
			}
		})
	}
}

func TestBomb(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{})
	reg.Push(t, "bomb", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": strings.Repeat("\x00", 20<<20)})))
	reg.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "good"})))
	dir := t.TempDir()
	s := newSource(t, Options{Dir: dir}, rutter.RepoTrust{}, plain(reg))
	if _, _, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/bomb", Revision: "v1"}, "f"); rutter.CodeOf(err) != rutter.CodeInvalid || !strings.Contains(err.Error(), "times its size") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind %v", entries)
	}
	if content, _, err := read(t, s, rutter.Repo{URL: "oci://" + reg.Host + "/app", Revision: "v1"}, "f"); err != nil || content != "good" {
		t.Errorf("a neighbour: %q, %v", content, err)
	}
}

func TestTLSAndURLs(t *testing.T) {
	reg := registrytest.Start(t, registrytest.Options{TLS: true})
	reg.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "good"})))
	open := registrytest.Start(t, registrytest.Options{})
	open.Push(t, "app", "v1", emptyConfig, layer(registry.LayerGzip, registrytest.TarGzip(t, map[string]string{"f": "good"})))
	ca := rutter.RepoTrust{CAs: map[string]string{"127.0.0.1": reg.CA}}
	tests := []struct {
		name  string
		url   string
		trust rutter.RepoTrust
		cred  rutter.RepoCredential
		code  rutter.Code
		want  string
	}{
		{"trusted", "oci://" + reg.Host + "/app", ca, rutter.RepoCredential{}, "", ""},
		{"not trusted", "oci://" + reg.Host + "/app", rutter.RepoTrust{}, rutter.RepoCredential{}, rutter.CodeUnavailable, "argocd-tls-certs-cm"},
		{"insecure", "oci://" + reg.Host + "/app", rutter.RepoTrust{}, rutter.RepoCredential{URL: reg.Host, Template: true, Type: "oci", Insecure: true}, "", ""},
		{"insecure elsewhere", "oci://" + reg.Host + "/app", rutter.RepoTrust{}, rutter.RepoCredential{URL: "oci://other", Template: true, Type: "oci", Insecure: true}, rutter.CodeUnavailable, "not trusted"},
		{"no TLS, and nobody said so", "oci://" + open.Host + "/app", rutter.RepoTrust{}, rutter.RepoCredential{}, rutter.CodeUnavailable, "did not answer"},
		{"plain", "oci://" + open.Host + "/app", rutter.RepoTrust{}, rutter.RepoCredential{URL: open.Host, Template: true, Type: "oci", PlainHTTP: true}, "", ""},
		{"link-local", "oci://169.254.169.254/app", rutter.RepoTrust{}, rutter.RepoCredential{}, rutter.CodeForbidden, "metadata"},
		{"mapped link-local", "oci://[::ffff:169.254.169.254]/app", rutter.RepoTrust{}, rutter.RepoCredential{}, rutter.CodeForbidden, "metadata"},
		{"tag in the URL", "oci://" + reg.Host + "/app:v1", ca, rutter.RepoCredential{}, rutter.CodeInvalid, "no tag"},
		{"upper case", "oci://" + reg.Host + "/App", ca, rutter.RepoCredential{}, rutter.CodeInvalid, "lower-case"},
		{"dots", "oci://" + reg.Host + "/a/../app", ca, rutter.RepoCredential{}, rutter.CodeInvalid, "dots"},
		{"no repository", "oci://" + reg.Host, ca, rutter.RepoCredential{}, rutter.CodeInvalid, "names no repository"},
		{"password in a bad URL", "oci://u:p-w@" + reg.Host + "/a b", ca, rutter.RepoCredential{}, rutter.CodeInvalid, "characters"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			s := newSource(t, Options{}, tc.trust, tc.cred)
			_, _, err := read(t, s, rutter.Repo{URL: tc.url, Revision: "v1"}, "f")
			if rutter.CodeOf(err) != tc.code || err != nil && (!strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "p-w")) {
				t.Errorf("got %v (%s), want %s with %q", err, rutter.CodeOf(err), tc.code, tc.want)
			}
		})
	}
}
