package forge

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rutterhq/rutter"
)

// appServer gives tokens to who proves to be App 7, and takes those tokens only.
type appServer struct {
	key    *rsa.PrivateKey
	tokens atomic.Int64
	life   time.Duration
}

func (a *appServer) token() string { return fmt.Sprintf("ghs_%d", a.tokens.Load()) }

func (a *appServer) proven(r *http.Request) bool {
	parts := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), ".")
	if len(parts) != 3 {
		return false
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	sig, _ := base64.RawURLEncoding.DecodeString(parts[2])
	var claims struct {
		Iss      string
		Iat, Exp int64
	}
	text, _ := base64.RawURLEncoding.DecodeString(parts[1])
	_ = json.Unmarshal(text, &claims) //nolint:musttag // the names are the claims'
	now := time.Now().Unix()
	return rsa.VerifyPKCS1v15(&a.key.PublicKey, crypto.SHA256, sum[:], sig) == nil && claims.Iss == "7" && claims.Iat <= now && claims.Exp > now && claims.Exp-claims.Iat <= 600
}

func (a *appServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3")
	switch {
	case path == "/orgs/acme/installation" && a.proven(r):
		answer(w, 200, object{"id": 42})
	case strings.HasSuffix(path, "/installation") && a.proven(r):
		answer(w, 404, object{"message": "Not Found"})
	case path == "/app/installations/42/access_tokens" && r.Method == http.MethodPost && a.proven(r):
		a.tokens.Add(1)
		answer(w, 201, object{"token": a.token(), "expires_at": time.Now().Add(a.life)})
	case strings.HasPrefix(path, "/app/") && a.proven(r):
		answer(w, 404, object{"message": "Not Found"})
	default:
		githubServer("/api/v3", "Bearer "+a.token()).ServeHTTP(w, r)
	}
}

func TestGitHubApp(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	old := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
	recent := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	for _, c := range []struct {
		reason string
		app    rutter.GitHubApp
		life   time.Duration
		tokens int64
		want   rutter.Code
		other  bool
	}{
		{"an installation that is named", rutter.GitHubApp{ID: 7, InstallationID: 42, PrivateKey: old}, time.Hour, 1, "", false},
		{"an installation that is looked for", rutter.GitHubApp{ID: 7, PrivateKey: recent}, time.Hour, 1, "", false},
		{"tokens that end soon", rutter.GitHubApp{ID: 7, InstallationID: 42, PrivateKey: old}, time.Minute, 2, "", false},
		{"no such installation", rutter.GitHubApp{ID: 7, InstallationID: 43, PrivateKey: old}, time.Hour, 0, rutter.CodeForbidden, false},
		{"another App", rutter.GitHubApp{ID: 8, InstallationID: 42, PrivateKey: old}, time.Hour, 0, rutter.CodeForbidden, false},
		{"no key", rutter.GitHubApp{ID: 7, InstallationID: 42, PrivateKey: "x"}, time.Hour, 0, rutter.CodeInvalid, false},
		{"no App", rutter.GitHubApp{}, time.Hour, 0, rutter.CodeInvalid, false},
		{"an App of another server", rutter.GitHubApp{ID: 7, InstallationID: 42, PrivateKey: old}, time.Hour, 0, rutter.CodeForbidden, true},
	} {
		t.Run(c.reason, func(t *testing.T) {
			a := &appServer{key: key, life: c.life}
			s := serve(t, a)
			app := c.app
			if !c.other {
				app.BaseURL = s.URL
			}
			client := New(Options{Pause: time.Millisecond, GitHubApp: func(context.Context, string) (*rutter.GitHubApp, error) { return &app, nil }})
			q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "acme", AppSecret: "app"}
			for range 2 {
				got, err := client.Repositories(t.Context(), q)
				if rutter.CodeOf(err) != c.want || err == nil && len(got) != manyRepos-2 {
					t.Fatalf("%d, %v", len(got), err)
				}
			}
			if n := a.tokens.Load(); n != c.tokens {
				t.Errorf("%d tokens, want %d", n, c.tokens)
			}
			if c.other && len(s.requests()) != 0 {
				t.Error("the App's statement is sent to another server than its own")
			}
		})
	}
}

// A token that is refused is not used again.
func TestGitHubAppTokenRevoked(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &appServer{key: key, life: time.Hour}
	s := serve(t, a)
	app := rutter.GitHubApp{ID: 7, InstallationID: 42, BaseURL: s.URL, PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))}
	c := New(Options{GitHubApp: func(context.Context, string) (*rutter.GitHubApp, error) { return &app, nil }})
	q := rutter.ForgeQuery{Provider: rutter.ForgeGitHub, API: s.URL, Owner: "acme", AppSecret: "app"}
	for i, want := range []rutter.Code{"", rutter.CodeForbidden, ""} {
		if i == 1 {
			a.tokens.Add(1) // the server now takes another token only
		}
		if _, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != want {
			t.Fatalf("%d: %v", i, err)
		}
	}
}

// tokenService is AWS' service for roles.
func tokenService(asked *atomic.Int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "text/xml")
		if r.Form.Get("Action") != "AssumeRole" || r.Form.Get("RoleArn") != "arn:aws:iam::123456789012:role/reader" || !strings.Contains(r.Header.Get("Authorization"), "Credential=AKIDEXAMPLE/") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>`+
			`<AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>role-secret</SecretAccessKey><SessionToken>role-session</SessionToken><Expiration>%s</Expiration>`+
			`</Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	})
}

func TestAWSRole(t *testing.T) {
	var asked atomic.Int64
	s, tokens := serve(t, codeCommitServer()), serve(t, tokenService(&asked))
	c := New(Options{AWS: identity, STS: tokens.URL, Pause: time.Millisecond})
	q := rutter.ForgeQuery{Provider: rutter.ForgeCodeCommit, API: s.URL, Region: "eu-central-1", Role: "arn:aws:iam::123456789012:role/reader"}
	for range 2 {
		got, err := c.Repositories(t.Context(), q)
		if err != nil || len(got) != manyRepos-1 {
			t.Fatal(len(got), err)
		}
	}
	for _, r := range s.requests() {
		if !strings.Contains(r.Header.Get("Authorization"), "Credential=ASIAROLE/") {
			t.Fatal("signed by another key than the role's")
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the role was asked for %d times", asked.Load())
	}
	q.Role = "arn:aws:iam::123456789012:role/admin"
	if _, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != rutter.CodeForbidden || !strings.Contains(err.Error(), "AccessDenied") {
		t.Error(err)
	}
	q.Role = "admin"
	if _, err := c.Repositories(t.Context(), q); rutter.CodeOf(err) != rutter.CodeInvalid {
		t.Error(err)
	}
}

// Where nobody overrides it, the tagging service has a host of its own.
func TestAWSHosts(t *testing.T) {
	s := &session{Client: New(Options{}), q: rutter.ForgeQuery{Region: "cn-north-1"}, base: &url.URL{Scheme: "https", Host: "codecommit.cn-north-1.amazonaws.com.cn"}}
	for target, want := range map[string]string{
		commitTarget + "ListRepositories": "https://codecommit.cn-north-1.amazonaws.com.cn/",
		taggingTarget + "GetResources":    "https://tagging.cn-north-1.amazonaws.com.cn/",
	} {
		q, err := s.awsQuestion("x", target, object{})
		if err != nil || q.url.String() != want {
			t.Errorf("%s: %v, %v", target, q.url, err)
		}
	}
}
