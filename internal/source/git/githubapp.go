package git

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// apps keeps the tokens of GitHub Apps: short-lived passwords that an
// installation of an App is given for a key that stays here.
type apps struct {
	mu     sync.Mutex
	tokens map[appKey]*appToken
}

// appKey names an installation as a credential names it.
type appKey struct {
	id, installation int64
	owner, base      string
	key              [sha256.Size]byte
}

// appToken is guarded by its own lock, so that all who need it share one request.
type appToken struct {
	mu    sync.Mutex
	text  string
	until time.Time
}

// appMargin is how long before its end a token is no longer used: a fetch that
// begins with it should end with it.
const appMargin = 5 * time.Minute

// appLogin is one App at one host.
type appLogin struct {
	app    rutter.GitHubApp
	base   *url.URL
	owner  string
	client *http.Client
}

// current is r's access with what it takes to log in at this moment: the token
// of a GitHub App is a password that is asked for when it is needed.
func (f *Fetcher) current(ctx context.Context, r remote) (access, error) {
	a := r.access
	if !a.byApp(r.location) {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.LookupTimeout)
	defer cancel()
	l, err := f.appLogin(r)
	if err == nil {
		a.cred.Username = "x-access-token"
		a.cred.Password, err = f.apps.token(ctx, l)
	}
	if err != nil {
		return a, rutter.Errorf(rutter.CodeOf(err), "repository %q: logging in by %s: %w", r.display(), a.describe(), err)
	}
	return a, nil
}

// byApp reports whether an access logs in as a GitHub App: a password, token
// or, over SSH, a key comes first (reference 1.12).
func (a access) byApp(l location) bool {
	return a.cred.GitHubApp != nil && a.cred.Password == "" && a.cred.BearerToken == "" && strings.HasPrefix(l.scheme, "http")
}

// refused forgets the token that a repository was refused with.
func (f *Fetcher) refused(r remote) {
	if !r.access.byApp(r.location) {
		return
	}
	if l, err := f.appLogin(r); err == nil {
		f.apps.forget(l.key())
	}
}

func (f *Fetcher) appLogin(r remote) (appLogin, error) {
	l := appLogin{app: *r.access.cred.GitHubApp}
	if l.app.InstallationID == 0 {
		owner, _, ok := strings.Cut(r.path, "/")
		if !ok {
			return l, rutter.Errorf(rutter.CodeInvalid, "the URL names no owner to find the App's installation by; set githubAppInstallationID")
		}
		l.owner = strings.ToLower(owner)
	}
	var err error
	if l.base, err = appBase(l.app.BaseURL); err != nil {
		return l, err
	}
	cred := r.access.cred
	if siteOf(l.base) != r.scheme+"://"+r.host {
		cred.TLSClientCert, cred.TLSClientKey = "", ""
	}
	w, err := f.keys.Load().web(l.base, cred, r.access.digest)
	if err != nil {
		return l, err
	}
	l.client = &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return l, nil
}

// appBase is the address of the API. A server of one's own has it below
// /api/v3, which may be left out.
func appBase(text string) (*url.URL, error) {
	if text == "" {
		return &url.URL{Scheme: "https", Host: "api.github.com"}, nil
	}
	u, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "githubAppEnterpriseBaseUrl %q is no address of an API; write it as https://host/api/v3", conceal(printable(text)))
	}
	if !checkHost(u.Hostname()) {
		return nil, rutter.Errorf(rutter.CodeForbidden, "githubAppEnterpriseBaseUrl %q is a link-local address", u.Host)
	}
	if u.Path == "" && !strings.HasPrefix(u.Host, "api.") {
		u.Path = "/api/v3"
	}
	return u, nil
}

func (l appLogin) key() appKey {
	return appKey{id: l.app.ID, installation: l.app.InstallationID, owner: l.owner, base: l.base.String(), key: sha256.Sum256([]byte(l.app.PrivateKey))}
}

// token returns a token that is still good for a while.
func (a *apps) token(ctx context.Context, l appLogin) (string, error) {
	a.mu.Lock()
	t := a.tokens[l.key()]
	if t == nil {
		t = &appToken{}
		a.tokens[l.key()] = t
	}
	a.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text != "" && time.Until(t.until) > appMargin {
		return t.text, nil
	}
	text, until, err := l.request(ctx)
	if err != nil {
		return "", err
	}
	t.text, t.until = text, until
	return text, nil
}

func (a *apps) forget(k appKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, k)
}

// keep forgets all tokens that end soon or have ended.
func (a *apps) keep(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, t := range a.tokens {
		if t.mu.TryLock() {
			if t.until.Before(now.Add(appMargin)) {
				delete(a.tokens, k)
			}
			t.mu.Unlock()
		}
	}
}

// request asks GitHub for a new token of the installation.
func (l appLogin) request(ctx context.Context) (string, time.Time, error) {
	jwt, err := l.jwt(time.Now())
	if err != nil {
		return "", time.Time{}, err
	}
	id := l.app.InstallationID
	if id == 0 {
		if id, err = l.findInstallation(ctx, jwt); err != nil {
			return "", time.Time{}, err
		}
	}
	var answer struct {
		Token     string    `json:"token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	path := "/app/installations/" + strconv.FormatInt(id, 10) + "/access_tokens"
	if err := l.call(ctx, http.MethodPost, path, jwt, `{"permissions":{"contents":"read"}}`, &answer); err != nil {
		if rutter.CodeOf(err) == rutter.CodeNotFound {
			err = rutter.Errorf(rutter.CodeForbidden, "the App has no installation %d: correct githubAppInstallationID: %w", id, err)
		}
		return "", time.Time{}, err
	}
	if answer.Token == "" || strings.ContainsFunc(answer.Token, func(r rune) bool { return r <= ' ' || r == 0x7f }) || answer.ExpiresAt.IsZero() {
		return "", time.Time{}, rutter.Errorf(rutter.CodeUnavailable, "GitHub's answer has no token in it")
	}
	return answer.Token, answer.ExpiresAt, nil
}

// findInstallation looks for the App at the repository's owner, who is an
// organization or a user.
func (l appLogin) findInstallation(ctx context.Context, jwt string) (int64, error) {
	var answer struct {
		ID int64 `json:"id"`
	}
	owner := url.PathEscape(l.owner)
	err := l.call(ctx, http.MethodGet, "/orgs/"+owner+"/installation", jwt, "", &answer)
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		err = l.call(ctx, http.MethodGet, "/users/"+owner+"/installation", jwt, "", &answer)
	}
	if rutter.CodeOf(err) == rutter.CodeNotFound {
		return 0, rutter.Errorf(rutter.CodeForbidden, "the App is not installed for %q: install it there, or set githubAppInstallationID", l.owner)
	}
	if err == nil && answer.ID == 0 {
		err = rutter.Errorf(rutter.CodeUnavailable, "GitHub's answer names no installation")
	}
	return answer.ID, err
}

// jwt proves to GitHub who the App is: a statement of at most ten minutes,
// signed by its key. It begins in the past for clocks that are behind ours.
func (l appLogin) jwt(now time.Time) (string, error) {
	key, err := appPrivateKey(l.app.PrivateKey)
	if err != nil {
		return "", err
	}
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(8 * time.Minute).Unix(), "iss": strconv.FormatInt(l.app.ID, 10)})
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInternal, "describing the App: %w", err)
	}
	enc := base64.RawURLEncoding
	text := enc.EncodeToString([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + enc.EncodeToString(claims)
	sum := sha256.Sum256([]byte(text))
	sig, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "githubAppPrivateKey cannot sign")
	}
	return text + "." + enc.EncodeToString(sig), nil
}

// appPrivateKey reads a key in either of the forms that GitHub has given out.
func appPrivateKey(text string) (*rsa.PrivateKey, error) {
	invalid := rutter.Errorf(rutter.CodeInvalid, "githubAppPrivateKey is no RSA key in PEM; put the file there that GitHub generated for the App")
	block, _ := pem.Decode([]byte(strings.TrimSpace(text)))
	if block == nil {
		return nil, invalid
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if other, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if key, ok := other.(*rsa.PrivateKey); ok {
			return key, nil
		}
	}
	return nil, invalid
}

// call makes one request to the API.
func (l appLogin) call(ctx context.Context, method, path, jwt, body string, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, l.base.String()+path, strings.NewReader(body))
	if err != nil {
		return rutter.Errorf(rutter.CodeInternal, "asking GitHub: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+jwt)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-Github-Api-Version", "2022-11-28")
	req.Header.Set("User-Agent", "rutter")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return webError(l.base.Host, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return webError(l.base.Host, err)
	}
	if resp.StatusCode/100 == 2 {
		if err := json.Unmarshal(data, answer); err != nil {
			return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer as GitHub does: check githubAppEnterpriseBaseUrl", l.base.Host)
		}
		return nil
	}
	var said struct {
		Message string `json:"message"`
	}
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&said)
	return appError(l.base.Host, resp, cut(printable(strings.ReplaceAll(said.Message, jwt, "***"))))
}

func appError(host string, resp *http.Response, said string) error {
	limited := resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-Ratelimit-Remaining") == "0"
	code, hint := rutter.CodeUnavailable, "try again later"
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		code, hint = rutter.CodeForbidden, "check githubAppID and githubAppPrivateKey, and this machine's clock"
	case resp.StatusCode == http.StatusForbidden && !limited, resp.StatusCode == http.StatusUnprocessableEntity:
		code, hint = rutter.CodeForbidden, "give the App read access to contents"
	case resp.StatusCode == http.StatusNotFound:
		code, hint = rutter.CodeNotFound, "check githubAppInstallationID"
	case resp.StatusCode/100 == 3:
		code, hint = rutter.CodeInvalid, "correct githubAppEnterpriseBaseUrl"
	}
	return rutter.Errorf(code, "%s answered %d (%s): %s", host, resp.StatusCode, said, hint)
}

// webError is a request that got no answer, without its address: that may hold
// a signature.
func webError(host string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	code := rutter.CodeUnavailable
	if known := rutter.CodeOf(err); known != rutter.CodeInternal {
		code = known
	}
	return rutter.Errorf(code, "%s did not answer: %w", host, err)
}
