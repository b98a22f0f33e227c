// Package registrytest runs a real registry (that of the CNCF distribution
// project) in the process of a test, with its contents in memory, and pushes to
// it with the clients that people use.
//
// Ring: test support. Only tests import it.
package registrytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
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

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd" // -
	_ "github.com/distribution/distribution/v3/registry/auth/token"    // -
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory" // -
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

// Options are what a registry wants of who comes.
type Options struct {
	// TLS serves with a certificate of the test's own authority.
	TLS bool
	// User and Password protect everything, when they are set: by HTTP basic
	// authentication, or, with Token, by a token server of its own.
	User, Password string
	Token          bool
	// Realm is told to clients instead of the token server's own URL.
	Realm string
}

// Registry is a running registry.
type Registry struct {
	// Host is its address with the port, CA its authority's certificate (PEM).
	Host string
	CA   string
	// TokenHost is the token server's.
	TokenHost string

	opts   Options
	server *httptest.Server
	key    *ecdsa.PrivateKey

	mu       sync.Mutex
	requests []Request
	hook     func(w http.ResponseWriter, r *http.Request) bool
}

// Request is one that the registry, or its token server, has seen.
type Request struct {
	Method, Path, Authorization string
}

// Start runs a registry until the test ends.
func Start(t testing.TB, opts Options) *Registry {
	t.Helper()
	logrus.SetOutput(io.Discard)
	reg := &Registry{opts: opts}
	config := &configuration.Configuration{Storage: configuration.Storage{
		"inmemory":    configuration.Parameters{},
		"delete":      configuration.Parameters{"enabled": true},
		"maintenance": configuration.Parameters{"uploadpurging": map[any]any{"enabled": false}},
	}}
	config.HTTP.Secret = "a secret of the test"
	switch {
	case opts.Token:
		config.Auth = configuration.Auth{"token": reg.tokens(t)}
	case opts.User != "":
		config.Auth = configuration.Auth{"htpasswd": configuration.Parameters{"realm": "test", "path": htpasswd(t, opts)}}
	}
	app := handlers.NewApp(t.Context(), config)
	reg.server, reg.CA = serve(t, opts.TLS, reg.watched(app))
	reg.Host = reg.server.Listener.Addr().String()
	return reg
}

func serve(t testing.TB, tls bool, h http.Handler) (*httptest.Server, string) {
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = nil
	if !tls {
		s.Start()
		t.Cleanup(s.Close)
		return s, ""
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

// watched notes requests, and lets the test answer some itself.
func (r *Registry) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.requests = append(r.requests, Request{req.Method, req.URL.Path, req.Header.Get("Authorization")})
		hook := r.hook
		r.mu.Unlock()
		if hook == nil || !hook(w, req) {
			h.ServeHTTP(w, req)
		}
	})
}

// Hook has f answer the requests for which it returns true.
func (r *Registry) Hook(f func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hook = f
}

// Seen returns the requests since the last call.
func (r *Registry) Seen() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.requests
	r.requests = nil
	return seen
}

// Client is an HTTP client that trusts the registry.
func (r *Registry) Client() *http.Client { return r.server.Client() }

func htpasswd(t testing.TB, opts Options) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(opts.Password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "htpasswd", opts.User+":"+string(hash)+"\n")
}

func write(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokens starts the token server and returns how the registry trusts it.
func (r *Registry) tokens(t testing.TB) configuration.Parameters {
	t.Helper()
	var err error
	if r.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	point, err := r.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	jwks := fmt.Sprintf(`{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","use":"sig","kid":"test","x":%q,"y":%q}]}`, encode(point[1:33]), encode(point[33:]))
	// The same authority for both: the certificate of httptest is one for all.
	s, _ := serve(t, r.opts.TLS, r.watched(http.HandlerFunc(r.token)))
	r.TokenHost = s.Listener.Addr().String()
	realm := r.opts.Realm
	if realm == "" {
		realm = s.URL + "/token"
	}
	return configuration.Parameters{"realm": realm, "service": "test", "issuer": "test", "jwks": write(t, "jwks", jwks)}
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// token hands a token to who has the password, for what was asked for.
func (r *Registry) token(w http.ResponseWriter, req *http.Request) {
	user, password, _ := req.BasicAuth()
	if user != r.opts.User || password != r.opts.Password {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var access []map[string]any
	for _, scope := range req.URL.Query()["scope"] {
		if parts := strings.SplitN(scope, ":", 3); len(parts) == 3 {
			access = append(access, map[string]any{"type": parts[0], "name": parts[1], "actions": strings.Split(parts[2], ",")})
		}
	}
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": "test", "aud": "test", "sub": user, "access": access,
		"nbf": now.Add(-time.Minute).Unix(), "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	text := encode([]byte(`{"alg":"ES256","typ":"JWT","kid":"test"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	a, b, err := ecdsa.Sign(rand.Reader, r.key, sum[:])
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	signature := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": text + "." + encode(signature), "expires_in": 3600}) //nolint:errchkjson // who asked notices
}
