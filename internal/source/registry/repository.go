package registry

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
	"github.com/rutterhq/rutter/internal/source/remote"
)

// Repository is one repository of a registry, as one asker may use it. It
// remembers the token that it was given. Safe for concurrent use.
type Repository struct {
	// Address is for people and for keys.
	Address remote.Address

	keys   *remote.Keyring
	access remote.Access
	// base is https://host/v2/name.
	base *url.URL

	mu      sync.Mutex
	auth    string
	expires time.Time
}

// Open prepares to speak to a repository. Nothing is asked yet. It speaks HTTP
// without TLS only where the credential says so.
func Open(keys *remote.Keyring, address remote.Address, access remote.Access) (*Repository, error) {
	if address.Path == "" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "registry URL %q names no repository; write oci://host/path", address)
	}
	host, scheme := address.Host, "https"
	if host == "docker.io" {
		host = "registry-1.docker.io"
	}
	if access.PlainHTTP() {
		scheme = "http"
	}
	return &Repository{
		Address: address, keys: keys, access: access,
		base: &url.URL{Scheme: scheme, Host: host, Path: "/v2/" + address.Path},
	}, nil
}

// call is one request of the registry's API.
type call struct {
	method string
	url    *url.URL
	accept []string
	// what names the thing that is asked for, in errors.
	what string
}

// at is the URL of something in the repository.
func (r *Repository) at(parts ...string) *url.URL { return r.base.JoinPath(parts...) }

// do asks, and logs in when the registry wants that. The answer is one of
// success; its body must be closed.
func (r *Repository) do(ctx context.Context, c call) (*http.Response, error) {
	auth := r.known()
	resp, err := r.send(ctx, c, auth)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		wanted, ok := challengeOf(resp.Header)
		discard(resp)
		if !ok {
			return nil, remote.Refused(c.what, r.access, resp)
		}
		if auth, err = r.login(ctx, wanted, c.what); err != nil {
			return nil, err
		}
		if auth == "" {
			return nil, remote.Refused(c.what, r.access, resp)
		}
		if resp, err = r.send(ctx, c, auth); err != nil {
			return nil, err
		}
	}
	if resp.StatusCode != http.StatusOK {
		discard(resp)
		if resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden {
			r.forget()
		}
		return nil, remote.Refused(c.what, r.access, resp)
	}
	return resp, nil
}

func (r *Repository) send(ctx context.Context, c call, auth string) (*http.Response, error) {
	h := http.Header{"Accept-Encoding": {"identity"}}
	if len(c.accept) > 0 {
		h.Set("Accept", strings.Join(c.accept, ", "))
	}
	resp, err := r.keys.Do(ctx, r.access, remote.Request{
		Method: c.method, URL: c.url, Header: h, Authorization: auth,
		Bounds: []remote.Bound{{Scheme: r.base.Scheme, Host: r.base.Host, Path: strings.Trim(r.base.Path, "/")}},
	})
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", c.what, err)
	}
	return resp, nil
}

// discard gives the connection back, unless the server goes on talking.
func discard(resp *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	_ = resp.Body.Close()
}

func (r *Repository) known() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.expires.IsZero() && time.Now().After(r.expires) {
		r.auth = ""
	}
	return r.auth
}

func (r *Repository) remember(auth string, expires time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auth, r.expires = auth, expires
}

func (r *Repository) forget() { r.remember("", time.Time{}) }

// login returns the header that meets a challenge; "" when there is nothing to
// log in with.
func (r *Repository) login(ctx context.Context, c challenge, what string) (string, error) {
	if c.scheme == "basic" || r.access.Token() != "" {
		auth := r.access.BasicAuth()
		if auth != "" {
			r.remember(auth, time.Time{})
		}
		return auth, nil
	}
	token, life, err := r.token(ctx, c, what)
	if err != nil {
		return "", err
	}
	r.remember("Bearer "+token, time.Now().Add(life))
	return "Bearer " + token, nil
}

// token exchanges the login, or none, for a token that may read the repository.
func (r *Repository) token(ctx context.Context, c challenge, what string) (string, time.Duration, error) {
	_, _, login := r.access.Password()
	realm, err := r.realm(c, login)
	if err != nil {
		return "", 0, err
	}
	req := remote.Request{URL: realm, Header: http.Header{"Accept": {"application/json"}}}
	if login {
		req.Authorization = r.access.BasicAuth()
		req.Bounds = []remote.Bound{{Scheme: realm.Scheme, Host: strings.ToLower(realm.Host), Path: strings.Trim(realm.Path, "/")}}
	}
	q := realm.Query()
	if service := c.params["service"]; service != "" {
		q.Set("service", service)
	}
	q.Set("scope", "repository:"+r.Address.Path+":pull")
	realm.RawQuery = q.Encode()
	resp, err := r.keys.Do(ctx, r.access, req)
	if err != nil {
		return "", 0, rutter.Errorf(rutter.CodeOf(err), "%s: getting a token: %w", what, err)
	}
	defer discard(resp)
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest {
			resp.StatusCode = http.StatusUnauthorized // no token is no login, whatever the server calls it
		}
		return "", 0, remote.Refused(what, r.access, resp)
	}
	return readToken(remote.Body(what+": the token", r.access, resp, 1<<20), what)
}

func readToken(body io.Reader, what string) (string, time.Duration, error) {
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := json.NewDecoder(body).Decode(&answer); err != nil {
		return "", 0, rutter.Errorf(rutter.CodeUnavailable, "%s: the registry's token server gave an answer that cannot be read", what)
	}
	token := answer.Token
	if token == "" {
		token = answer.AccessToken
	}
	if token == "" || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c >= 0x7f }) {
		return "", 0, rutter.Errorf(rutter.CodeUnavailable, "%s: the registry's token server gave no token", what)
	}
	// A token counts as valid for less than it is, so that it isn't refused on
	// the way; servers that say nothing mean a minute.
	seconds := min(max(answer.ExpiresIn, 60), 3600)
	return token, time.Duration(seconds) * time.Second * 3 / 4, nil
}

const (
	// maxTagPage, maxTagPages and maxTags bound a list of tags.
	maxTagPage  = 8 << 20
	maxTagPages = 500
	maxTags     = 200_000
)

// Tags lists the tags of the repository.
func (r *Repository) Tags(ctx context.Context) ([]string, error) {
	what := "the tags of " + r.Address.String()
	var all []string
	next := r.at("tags", "list")
	next.RawQuery = "n=1000"
	for range maxTagPages {
		page, after, err := r.tagPage(ctx, next, what)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(all) > maxTags {
			return nil, rutter.Errorf(rutter.CodeInvalid, "%s are more than %d", what, maxTags)
		}
		if after == "" {
			return slices.Clip(all), nil
		}
		query := url.Values{"n": {"1000"}, "last": {after}}.Encode()
		if query == next.RawQuery || len(page) == 0 {
			return nil, rutter.Errorf(rutter.CodeUnavailable, "%s: the registry's list has no end", what)
		}
		next.RawQuery = query
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "%s come in more than %d pages", what, maxTagPages)
}

// tagPage reads a part of the list, and the tag after which the next begins.
func (r *Repository) tagPage(ctx context.Context, u *url.URL, what string) ([]string, string, error) {
	resp, err := r.do(ctx, call{url: u, what: what})
	if err != nil {
		return nil, "", err
	}
	defer discard(resp)
	var list struct {
		Tags []string `json:"tags"`
	}
	data, err := io.ReadAll(remote.Body(what, r.access, resp, maxTagPage))
	if err != nil {
		return nil, "", err
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, "", rutter.Errorf(rutter.CodeUnavailable, "%s: the registry's answer cannot be read", what)
	}
	return list.Tags, lastOf(resp.Header.Get("Link")), nil
}

// lastOf takes from a Link header the tag to go on after. The rest of it is
// where the registry would like to be asked next; it is asked where it is.
func lastOf(link string) string {
	target, rel, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
	if !ok || !strings.Contains(rel, "next") {
		return ""
	}
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Query().Get("last")
}
