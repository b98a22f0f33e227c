package httpapi

import (
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// Concerns reports whether a push can have moved what repo resolves to: the
// same host and path under whatever scheme, user or port, and a ref that the
// revision may name (reference 8.5). In doubt it says yes: a look-up is cheap.
func (p Push) Concerns(repo rutter.Repo) bool {
	want := hostPath(repo.URL)
	same := false
	for _, u := range p.URLs {
		same = same || hostPath(u) == want
	}
	if !same {
		return false
	}
	short := strings.TrimPrefix(strings.TrimPrefix(p.Ref, "refs/heads/"), "refs/tags/")
	rev := strings.TrimPrefix(strings.TrimPrefix(repo.Revision, "refs/heads/"), "refs/tags/")
	switch {
	case p.Ref == "" || rev == short:
		return true
	case rev == "" || rev == "HEAD":
		return p.DefaultBranch == "" || p.DefaultBranch == short
	default:
		return strings.ContainsAny(rev, "*^~<>=xX ") && strings.HasPrefix(p.Ref, "refs/tags/") // a range over tags
	}
}

// hostPath is what two spellings of a repository have in common.
func hostPath(raw string) string {
	n := rutter.NormalizeGitURL(raw)
	if u, err := url.Parse(n); err == nil && u.Host != "" {
		return u.Hostname() + strings.TrimSuffix(u.Path, "/")
	}
	if user, rest, ok := strings.Cut(n, "@"); ok && !strings.Contains(user, "/") {
		n = rest
	}
	host, path, _ := strings.Cut(n, "/")
	host, _, _ = strings.Cut(host, ":") // the port of an ssh:// URL
	return host + "/" + path
}
