package remote

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// Request is one thing to ask of a server.
type Request struct {
	// Method is GET unless it is set.
	Method string
	URL    *url.URL
	Header http.Header
	// Authorization is the value of that header for URLs within Bounds, and
	// for no other.
	Authorization string
	Bounds        []Bound
}

// maxRedirects is how often a server may send a request elsewhere.
const maxRedirects = 5

// Do asks. The answer's body must be closed; read it through Body.
func (k *Keyring) Do(ctx context.Context, a Access, r Request) (*http.Response, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if r.Method == "" {
		r.Method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), nil)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q cannot be requested", Conceal(r.URL.Redacted()))
	}
	maps.Copy(req.Header, r.Header)
	req.Header.Set("User-Agent", "rutter")
	client := &http.Client{Transport: &hop{keys: k, access: a, request: r}, CheckRedirect: checkRedirect}
	resp, err := client.Do(req)
	if err != nil {
		return nil, explain(a, r.URL, err)
	}
	return resp, nil
}

// BasicAuth is the Authorization header of the access's own login: a token, or
// a username and password; "" when it has neither.
func (a Access) BasicAuth() string {
	if user, password, ok := a.Password(); ok {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	if token := a.Token(); token != "" {
		return "Bearer " + token
	}
	return ""
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return rutter.Errorf(rutter.CodeInvalid, "the server redirects more than %d times", maxRedirects)
	}
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || via[len(via)-1].URL.Scheme != "http") {
		return rutter.Errorf(rutter.CodeForbidden, "the server redirects from %s to %s: refused", via[len(via)-1].URL.Scheme, req.URL.Scheme)
	}
	return nil
}

// hop sends a request and those that redirects make of it, each with what it
// may carry.
type hop struct {
	keys    *Keyring
	access  Access
	request Request
}

// RoundTrip implements http.RoundTripper.
func (h *hop) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkHost(req.URL.Host); err != nil {
		return nil, err
	}
	inside := false
	for _, b := range h.request.Bounds {
		inside = inside || b.Holds(req.URL)
	}
	out := req.Clone(req.Context())
	out.URL.User = nil
	for _, name := range []string{"Authorization", "Cookie", "Referer"} {
		out.Header.Del(name)
	}
	if inside && h.request.Authorization != "" {
		out.Header.Set("Authorization", h.request.Authorization)
	}
	t, err := h.keys.pool.transport(h.keys.route(h.access, out.URL, inside))
	if err != nil {
		return nil, err
	}
	resp, err := t.RoundTrip(out)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", out.URL.Host, err)
	}
	return resp, nil
}

// route is how the access connects to a URL: with its client certificate within
// its bound only, unchecked only to its own host.
func (k *Keyring) route(a Access, u *url.URL, inside bool) route {
	host := canonicalHost(u.Scheme, u.Host)
	r := route{Proxy: a.cred.Proxy, NoProxy: a.cred.NoProxy}
	if u.Scheme == "https" {
		r.CA = k.cas[hostname(host)]
		if pem, ok := k.cas[host]; ok {
			r.CA = pem
		}
		r.Insecure = a.cred.Insecure && registryHost(host) == a.bound.Host
		if inside {
			r.Cert, r.Key = a.cred.TLSClientCert, a.cred.TLSClientKey
		}
	}
	return r
}

func quote(s string) string { return fmt.Sprintf("%q", printable(s)) }

// printable drops control characters, which a hostile server may send.
func printable(s string) string {
	s = strings.ToValidUTF8(s, " ")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, s))
}
