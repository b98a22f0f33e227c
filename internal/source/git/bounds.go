package git

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// bounds is where a credential may be sent: the same answer that the helper in
// login.go gives to git, for the requests that this package makes itself.
type bounds struct {
	site string
	path string
	// prefix is true for a template, which covers what begins with path.
	prefix bool
}

func boundsOf(l location, a access) bounds {
	return bounds{site: l.scheme + "://" + l.host, path: a.path, prefix: a.cred.Template && !a.inline}
}

// cover reports whether u is the repository's, or one that the template is for.
func (b bounds) cover(u *url.URL) bool {
	p := strings.TrimPrefix(u.Path, "/")
	if siteOf(u) != b.site || climbs(p) {
		return false
	}
	rest, ok := strings.CutPrefix(p, b.path)
	if !ok {
		return false
	}
	rest, _ = strings.CutPrefix(rest, ".git")
	return b.prefix || rest == "" || rest[0] == '/'
}

// authorize adds the login to a request that stays within the bounds and has
// none of its own.
func (b bounds) authorize(req *http.Request, c rutter.RepoCredential) {
	if req.Header.Get("Authorization") != "" || !b.cover(req.URL) {
		return
	}
	switch {
	case c.Password != "":
		user := c.Username
		if user == "" {
			user = "x-access-token"
		}
		req.SetBasicAuth(user, c.Password)
	case c.BearerToken != "":
		req.Header.Set("Authorization", "Bearer "+c.BearerToken)
	}
}

// redirected takes from a redirected request what its new address may not see:
// a login outside of its bounds and, on another host, everything that was made
// for the first one.
func (b bounds) redirected(req *http.Request, via []*http.Request) error {
	const maxHops = 5
	first := via[0]
	switch {
	case len(via) > maxHops:
		return rutter.Errorf(rutter.CodeUnavailable, "it was redirected more than %d times", maxHops)
	case req.URL.Scheme != "https" && (first.URL.Scheme == "https" || req.URL.Scheme != "http"):
		return rutter.Errorf(rutter.CodeForbidden, "it was redirected from %s to %s, which is refused", first.URL.Scheme, req.URL.Scheme)
	}
	req.Header.Del("Referer") // it would tell the address, which may hold a signature
	if !b.cover(req.URL) {
		req.Header.Del("Authorization")
	}
	if siteOf(req.URL) != siteOf(first.URL) {
		for name := range first.Header {
			if name != "Accept" && name != "Content-Type" {
				req.Header.Del(name)
			}
		}
	}
	return nil
}
