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
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// appToken is what an installation of a GitHub App was given: a token for an
// hour, for a key that stays here. Its lock makes all who need it share one request.
type appToken struct {
	mu    sync.Mutex
	text  string
	until time.Time
}

// appMargin is how long before its end a token is used no more: a walk that
// begins with it should end with it.
const appMargin = 12 * time.Minute

// appLogin is a GitHub App at the API of the session.
type appLogin struct {
	app  rutter.GitHubApp
	key  *rsa.PrivateKey
	held *appToken
}

// appLogin logs in as a GitHub App. The App belongs to one server: who could
// have its statement sent elsewhere could log in with it there.
func (s *session) appLogin(ctx context.Context) (login, error) {
	if s.q.Provider != rutter.ForgeGitHub {
		return login{}, rutter.Errorf(rutter.CodeInvalid, "an App logs in to GitHub only: name a token")
	}
	if s.opts.GitHubApp == nil {
		return login{}, rutter.Errorf(rutter.CodeInvalid, "appSecretName: there are no Secrets to look into here")
	}
	app, err := s.opts.GitHubApp(ctx, s.q.AppSecret)
	if err != nil {
		return login{}, rutter.Errorf(rutter.CodeOf(err), "appSecretName: %w", err)
	}
	if app == nil || app.ID == 0 {
		return login{}, rutter.Errorf(rutter.CodeInvalid, "appSecretName: Secret %s holds no GitHub App: set githubAppID, githubAppInstallationID and githubAppPrivateKey", quote(s.q.AppSecret))
	}
	home, err := parseAPI(rutter.ForgeGitHub, githubAPI(app.BaseURL))
	if err != nil {
		return login{}, err
	}
	if home.Scheme != s.base.Scheme || home.Host != s.base.Host {
		return login{}, rutter.Errorf(rutter.CodeForbidden, "the App of Secret %s belongs to %s: ask that server by setting api, or correct githubAppEnterpriseBaseUrl in the Secret", quote(s.q.AppSecret), home.Host)
	}
	key, err := appKey(app.PrivateKey)
	if err != nil {
		return login{}, err
	}
	digest := digestOf("app", s.base.String(), strconv.FormatInt(app.ID, 10), strconv.FormatInt(app.InstallationID, 10), app.PrivateKey, strings.ToLower(ownerOfInstallation(app, s.q)))
	l := login{header: "Authorization", digest: digest, name: s.q.AppSecret}
	l.app = &appLogin{app: *app, key: key, held: s.apps.Get(digest, func() *appToken { return &appToken{} })}
	token, err := s.appToken(ctx, l)
	if err != nil {
		return login{}, err
	}
	l.value, l.secrets = "Bearer "+token, []string{token}
	return l, nil
}

// ownerOfInstallation is needed only where the Secret does not name the installation.
func ownerOfInstallation(app *rutter.GitHubApp, q rutter.ForgeQuery) string {
	if app.InstallationID != 0 {
		return ""
	}
	return q.Owner
}

// appToken returns a token that is good for a while.
func (s *session) appToken(ctx context.Context, l login) (string, error) {
	t := l.app.held
	t.mu.Lock()
	defer t.mu.Unlock()
	now := s.opts.Now()
	if t.text != "" && t.until.Sub(now) > appMargin {
		return t.text, nil
	}
	jwt, err := l.app.jwt(now)
	if err != nil {
		return "", err
	}
	// A session of its own: what it may send is the statement, and its quota is the App's.
	as := *s
	as.login = login{header: "Authorization", value: "Bearer " + jwt, secrets: []string{jwt}, digest: l.digest + " statement", name: l.name}
	as.quota = newQuota(s.q.Provider, s.base.Host, l.name)
	text, until, err := as.newAppToken(ctx, l.app.app)
	if err != nil {
		return "", err
	}
	t.text, t.until = text, until
	return text, nil
}

func (s *session) newAppToken(ctx context.Context, app rutter.GitHubApp) (string, time.Time, error) {
	id := app.InstallationID
	if id == 0 {
		var err error
		if id, err = s.installation(ctx); err != nil {
			return "", time.Time{}, err
		}
	}
	what := "a token for installation " + strconv.FormatInt(id, 10) + " of the App"
	r, err := s.ask(ctx, question{what: what, method: http.MethodPost, url: s.at(nil, "app", "installations", strconv.FormatInt(id, 10), "access_tokens")})
	if err != nil {
		return "", time.Time{}, err
	}
	if r.missing() {
		return "", time.Time{}, s.fail(what, rutter.CodeForbidden, "there is no such installation: correct githubAppInstallationID")
	}
	answer, err := one[appAnswer](r)
	if err != nil {
		return "", time.Time{}, s.wrap(what, err)
	}
	return answer.Token, answer.ExpiresAt, nil
}

type appAnswer struct {
	Token     string    `json:"token"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (a appAnswer) lacks() string {
	switch {
	case a.Token == "" || strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "token"
	case a.ExpiresAt.IsZero():
		return "expires_at"
	}
	return ""
}

type appInstallation struct {
	ID int64 `json:"id"`
}

func (a appInstallation) lacks() string { return unless(a.ID != 0, "id") }

// installation looks for the App at the owner, who is an organization or a user.
func (s *session) installation(ctx context.Context) (int64, error) {
	what := "the App's installation for " + quote(s.q.Owner)
	for _, kind := range []string{"orgs", "users"} {
		r, err := s.ask(ctx, question{what: what, url: s.at(nil, kind, s.q.Owner, "installation")})
		if err != nil {
			return 0, err
		}
		if r.missing() {
			continue
		}
		answer, err := one[appInstallation](r)
		if err != nil {
			return 0, s.wrap(what, err)
		}
		return answer.ID, nil
	}
	return 0, s.fail(what, rutter.CodeForbidden, "the App is not installed there: install it, or set githubAppInstallationID")
}

// jwt proves to GitHub who the App is: a statement for less than ten minutes,
// signed by its key. It begins in the past for clocks that are behind ours.
func (a *appLogin) jwt(now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": strconv.FormatInt(a.app.ID, 10)})
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "describing the App: %w", err)
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "githubAppPrivateKey cannot sign")
	}
	return text + "." + enc.EncodeToString(sig), nil
}

// appKey reads a key in either of the forms that GitHub has given out.
func appKey(text string) (*rsa.PrivateKey, error) {
	if block, _ := pem.Decode([]byte(strings.TrimSpace(text))); block != nil {
		if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
			return key, nil
		}
		if other, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := other.(*rsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "githubAppPrivateKey is no RSA key in PEM: put the file there that GitHub generated for the App")
}
