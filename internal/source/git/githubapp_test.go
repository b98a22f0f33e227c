package git

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// gitHub is the part of GitHub's API that logs an App in, as documented. It
// verifies that who asks has the App's key.
type gitHub struct {
	*httptest.Server

	key *rsa.PublicKey
	// lives is how long its tokens are good.
	lives time.Duration

	mu       sync.Mutex
	valid    map[string]bool
	requests []string
}

const appID = 4711

func serveGitHub(t *testing.T, key *rsa.PublicKey) *gitHub {
	t.Helper()
	g := &gitHub{key: key, lives: time.Hour, valid: map[string]bool{}}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	g.requests = append(g.requests, r.Method+" "+path)
	if why := g.unproven(r.Header.Get("Authorization")); why != "" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"message":%q}`, why)
		return
	}
	switch r.Method + " " + path {
	case "GET /orgs/team/installation", "GET /users/ann/installation":
		fmt.Fprint(w, `{"id":12,"account":{"login":"team"}}`)
	case "POST /app/installations/12/access_tokens":
		var body struct {
			Permissions map[string]string `json:"permissions"`
		}
		if data, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(data, &body) != nil || len(body.Permissions) != 1 || body.Permissions["contents"] != "read" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		token := fmt.Sprintf("ghs_s3cr3t%d", len(g.valid))
		g.valid[token] = true
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token":%q,"expires_at":%q,"permissions":{"contents":"read"}}`, token, time.Now().Add(g.lives).UTC().Format(time.RFC3339))
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"message":"Not Found"}`)
	}
}

// unproven says what is wrong with a JSON Web Token, if anything is.
func (g *gitHub) unproven(header string) string {
	parts := strings.Split(strings.TrimPrefix(header, "Bearer "), ".")
	if len(parts) != 3 {
		return "A JSON web token could not be decoded"
	}
	var head struct{ Alg, Typ string }
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	for i, into := range []any{&head, &claims} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return "A JSON web token could not be decoded"
		}
	}
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	now := time.Now().Unix()
	switch {
	case head.Alg != "RS256" || rsa.VerifyPKCS1v15(g.key, crypto.SHA256, sum[:], sig) != nil:
		return "the signature is wrong"
	case claims.Iss != fmt.Sprint(appID):
		return "Integration not found"
	case claims.Iat > now || claims.Exp <= now || claims.Exp-now > 600:
		return "'Expiration time' claim ('exp') is too far in the future"
	}
	return ""
}

func (g *gitHub) lets(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	g.mu.Lock()
	defer g.mu.Unlock()
	return user == "x-access-token" && g.valid[password]
}

func (g *gitHub) revoke() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for token := range g.valid {
		g.valid[token] = false
	}
}

func (g *gitHub) asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := g.requests
	g.requests = nil
	return out
}

func newAppKey(t *testing.T) (key *rsa.PrivateKey, pkcs1, pkcs8 string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestGitHubApp(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	key, pkcs1, pkcs8 := newAppKey(t)
	_, strange, _ := newAppKey(t)
	hub := serveGitHub(t, &key.PublicKey)
	s := serveHTTP(t, o, false, hub.lets)
	ec, err := x509.MarshalPKCS8PrivateKey(newAuthority(t).key)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		app        rutter.GitHubApp
		asked      []string
		code       rutter.Code
		words      string
	}{
		{"installation", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: hub.URL + "/api/v3"},
			[]string{"POST /app/installations/12/access_tokens"}, "", ""},
		{"key in PKCS 8, address without its path", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: "\n" + pkcs8, BaseURL: hub.URL + "/"},
			[]string{"POST /app/installations/12/access_tokens"}, "", ""},
		{"of an organization", "/Team/fleet.git", rutter.GitHubApp{ID: appID, PrivateKey: pkcs1, BaseURL: hub.URL},
			[]string{"GET /orgs/team/installation", "POST /app/installations/12/access_tokens"}, "", ""},
		{"of a user", "/ann/fleet.git", rutter.GitHubApp{ID: appID, PrivateKey: pkcs1, BaseURL: hub.URL},
			[]string{"GET /orgs/ann/installation", "GET /users/ann/installation", "POST /app/installations/12/access_tokens"}, "", ""},
		{"not installed", "/bob/fleet.git", rutter.GitHubApp{ID: appID, PrivateKey: pkcs1, BaseURL: hub.URL},
			[]string{"GET /orgs/bob/installation", "GET /users/bob/installation"}, rutter.CodeForbidden, `not installed for "bob"`},
		{"no owner", "/fleet.git", rutter.GitHubApp{ID: appID, PrivateKey: pkcs1, BaseURL: hub.URL}, nil, rutter.CodeInvalid, "githubAppInstallationID"},
		{"another installation", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 13, PrivateKey: pkcs1, BaseURL: hub.URL},
			[]string{"POST /app/installations/13/access_tokens"}, rutter.CodeForbidden, "no installation 13"},
		{"another App's key", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: strange, BaseURL: hub.URL},
			[]string{"POST /app/installations/12/access_tokens"}, rutter.CodeForbidden, "githubAppPrivateKey"},
		{"no key", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: "s3cr3t", BaseURL: hub.URL}, nil, rutter.CodeInvalid, "githubAppPrivateKey is no RSA key"},
		{"a key of another kind", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, BaseURL: hub.URL,
			PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: ec}))}, nil, rutter.CodeInvalid, "githubAppPrivateKey is no RSA key"},
		{"no API there", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: s.URL}, nil, rutter.CodeForbidden, ""},
		{"API is away", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: "http://127.0.0.1:1"}, nil, rutter.CodeUnavailable, "did not answer"},
		{"API at a metadata service", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: "http://169.254.169.254"}, nil, rutter.CodeForbidden, "link-local"},
		{"no address", "/team/fleet.git", rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: "ftp://x"}, nil, rutter.CodeInvalid, "githubAppEnterpriseBaseUrl"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := filepath.Join(t.TempDir(), "args")
			logger, log := logged()
			f := newFetcher(t, Options{Logger: logger, Git: wrapGit(t, `printf '%s\n' "$*" >> `+args)})
			f.SetCredentials([]rutter.RepoCredential{{URL: s.URL + tt.path, GitHubApp: &tt.app}}, rutter.RepoTrust{})
			hub.asked()
			got, err := f.Snapshot(t.Context(), rutter.Repo{URL: s.URL + tt.path, Revision: "main"}, rutter.ResolveOptions{})
			if rutter.CodeOf(err) != tt.code || err != nil && (!strings.Contains(err.Error(), tt.words) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "eyJ")) {
				t.Fatalf("%v; want code %q and the words %q", err, tt.code, tt.words)
			}
			if err == nil {
				wantFile(t, got, "f", "1")
			}
			if asked := hub.asked(); fmt.Sprint(asked) != fmt.Sprint(tt.asked) {
				t.Errorf("GitHub was asked %q, want %q: once, for look-up and fetch", asked, tt.asked)
			}
			if line, _ := os.ReadFile(args); strings.Contains(string(line), "s3cr3t") {
				t.Errorf("a token is on a command line: %s", line)
			}
			if strings.Contains(log.String(), "s3cr3t") {
				t.Errorf("a token is in the log: %s", log)
			}
			noSecretOnDisk(t, f.opts.Dir, "s3cr3t")
		})
	}
}

func TestGitHubAppTokens(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	key, pkcs1, _ := newAppKey(t)
	hub := serveGitHub(t, &key.PublicKey)
	s := serveHTTP(t, o, false, hub.lets)
	f := newFetcher(t, Options{})
	app := rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: hub.URL}
	// One installation for all repositories of a template.
	f.SetCredentials([]rutter.RepoCredential{{URL: s.URL + "/team", Template: true, GitHubApp: &app}}, rutter.RepoTrust{})
	ask := func(path string) error {
		_, err := resolve(t.Context(), f, s.URL+path, "main")
		return err
	}
	want := func(n int, reason string) {
		t.Helper()
		if got := len(hub.asked()); got != n {
			t.Errorf("%d tokens were asked for, want %d: %s", got, n, reason)
		}
	}
	for _, path := range []string{"/team/fleet.git", "/team/fleet", "/team/a/fleet.git"} {
		if err := ask(path); err != nil {
			t.Fatal(err)
		}
	}
	want(1, "a token is used until shortly before its end")
	hub.revoke()
	if err := ask("/team/fleet.git"); rutter.CodeOf(err) != rutter.CodeForbidden || strings.Contains(err.Error(), "s3cr3t") {
		t.Errorf("a token that was revoked: %v", err)
	}
	want(0, "nobody knew")
	hub.lives = appMargin - time.Second
	for range 2 {
		if err := ask("/team/fleet.git"); err != nil {
			t.Error(err)
		}
	}
	want(2, "one that was refused, and one that ends soon, are not used again")
	if err := ask("/other/fleet.git"); rutter.CodeOf(err) != rutter.CodeForbidden {
		t.Errorf("a repository that the credential is not for: %v", err)
	}
	want(0, "the credential is not for it")
}

// TestGitHubAppStaysAtHome: neither the token nor the App's proof follow a redirect.
func TestGitHubAppStaysAtHome(t *testing.T) {
	o := newOrigin(t)
	o.commit("main", "f", "1")
	key, pkcs1, _ := newAppKey(t)
	hub := serveGitHub(t, &key.PublicKey)
	other := serveHTTP(t, o, false, func(r *http.Request) bool { return r.Header.Get("Authorization") != "" })
	moved := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+strings.TrimPrefix(r.URL.Path, "/team")+"?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(moved.Close)
	for _, api := range []string{hub.URL, moved.URL} {
		f := newFetcher(t, Options{})
		app := rutter.GitHubApp{ID: appID, InstallationID: 12, PrivateKey: pkcs1, BaseURL: api}
		f.SetCredentials([]rutter.RepoCredential{{URL: moved.URL + "/team/fleet.git", GitHubApp: &app}}, rutter.RepoTrust{})
		if _, err := resolve(t.Context(), f, moved.URL+"/team/fleet.git", "main"); err == nil {
			t.Errorf("API %s: the other host let us in", api)
		}
	}
	if got := other.seen(); len(got) != 0 {
		t.Errorf("the other host got %q", got)
	}
}

// TestGitHubAppAndLFS: the token is for LFS, too.
func TestGitHubAppAndLFS(t *testing.T) {
	o := newOrigin(t)
	key, pkcs1, _ := newAppKey(t)
	hub := serveGitHub(t, &key.PublicKey)
	h := serveLFS(t, o, true, hub.lets)
	o.commit("main", "big", h.add("content"))
	f := newFetcher(t, Options{})
	app := rutter.GitHubApp{ID: appID, PrivateKey: pkcs1, BaseURL: hub.URL}
	f.SetCredentials([]rutter.RepoCredential{{URL: h.URL + "/team", Template: true, GitHubApp: &app, EnableLFS: true}}, rutter.RepoTrust{})
	wantFile(t, snap(t, f, h.URL+"/team/fleet.git", "main"), "big", "content")
	if got := len(hub.asked()); got != 2 {
		t.Errorf("GitHub was asked %d times, want twice: for the installation and a token", got)
	}
	if fmt.Sprint(h.downloads) != "[st0rage]" {
		t.Errorf("the storage got %q", h.downloads)
	}
}
