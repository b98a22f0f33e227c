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
	"time"

	"github.com/rutterhq/rutter"
	guard "github.com/rutterhq/rutter/internal/source/remote"
)

// appLogin is one App at one host.
type appLogin struct {
	app    rutter.GitHubApp
	base   *url.URL
	owner  string
	client *http.Client
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
	if guard.RefusesHost(u.Hostname()) {
		return nil, rutter.Errorf(rutter.CodeForbidden, "githubAppEnterpriseBaseUrl %q is a link-local address", u.Host)
	}
	if u.Path == "" && !strings.HasPrefix(u.Host, "api.") {
		u.Path = "/api/v3"
	}
	return u, nil
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
