package git

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/rutterhq/rutter"
)

// credentials is what is known at one moment.
type credentials struct {
	list  []rutter.RepoCredential
	trust rutter.RepoTrust
}

// find returns the login for a repository: the repository's own entry, and
// where that has no credentials, the template with the longest matching prefix
// (reference 1.12). An entry of another project is never used.
func (c credentials) find(repoURL, project string) *rutter.RepoCredential {
	want := rutter.NormalizeGitURL(repoURL)
	var own, tmpl *rutter.RepoCredential
	for i := range c.list {
		x := &c.list[i]
		if x.Type != "" && x.Type != "git" || x.Project != "" && x.Project != project {
			continue
		}
		norm := rutter.NormalizeGitURL(x.URL)
		switch {
		case !x.Template && norm == want:
			if own == nil || x.Project != "" {
				own = x
			}
		case x.Template && isPrefix(norm, want):
			if tmpl == nil || len(norm) > len(rutter.NormalizeGitURL(tmpl.URL)) {
				tmpl = x
			}
		}
	}
	if own != nil && (hasLogin(own) || tmpl == nil) {
		return own
	}
	return tmpl
}

// isPrefix is a prefix that ends where a part of the path ends: a template for
// https://host/team is no template for https://host/team-of-others.
func isPrefix(prefix, s string) bool {
	rest, ok := strings.CutPrefix(s, strings.TrimSuffix(prefix, "/"))
	return ok && (rest == "" || rest[0] == '/' || rest[0] == ':')
}

func hasLogin(c *rutter.RepoCredential) bool {
	return c.Password != "" || c.BearerToken != "" || c.SSHPrivateKey != "" || c.TLSClientCert != ""
}

var scpForm = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^:]`)

// checkURL refuses what is not one of the four forms: git would take other
// transports, and options, from a URL.
func checkURL(raw string) error {
	if scpForm.MatchString(raw) {
		return nil
	}
	u, err := url.Parse(raw)
	bad := err != nil || strings.HasPrefix(raw, "-") || strings.ContainsAny(raw, "\n\r\x00")
	if !bad {
		switch u.Scheme {
		case "http", "https", "ssh":
			bad = u.Host == "" || strings.HasPrefix(u.Host, "-") || u.User != nil && strings.HasPrefix(u.User.Username(), "-")
		case "file":
			bad = u.Path == ""
		default:
			bad = true
		}
	}
	if bad {
		return rutter.Errorf(rutter.CodeInvalid, "repository %q: not a URL that is supported: use https://, http://, ssh://, file:// or user@host:path", redact(raw))
	}
	return nil
}

// redact takes the password off a URL before it is shown.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil || u.Scheme == "ssh" {
		return raw
	}
	u.User = nil
	return u.String()
}
