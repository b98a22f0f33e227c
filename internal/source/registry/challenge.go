package registry

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/rutterhq/rutter"
)

// challenge is what a registry wants to see before it answers.
type challenge struct {
	scheme string
	params map[string]string
}

// challengeOf picks from an answer's WWW-Authenticate headers the one that can
// be met: a token before a password.
func challengeOf(h http.Header) (challenge, bool) {
	var found challenge
	for i, line := range h.Values("WWW-Authenticate") {
		if i == 16 || len(line) > 8<<10 {
			break
		}
		c := parseChallenge(line)
		if c.scheme == "bearer" {
			return c, true
		}
		if c.scheme == "basic" {
			found = c
		}
	}
	return found, found.scheme != ""
}

// parseChallenge reads one challenge: a scheme and name="value" pairs.
func parseChallenge(line string) challenge {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	c := challenge{scheme: strings.ToLower(scheme), params: map[string]string{}}
	for rest != "" {
		rest = strings.TrimLeft(rest, " \t,")
		name, after, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		var value string
		value, rest = parseValue(strings.TrimLeft(after, " \t"))
		c.params[strings.ToLower(strings.TrimSpace(name))] = value
	}
	return c
}

// parseValue reads a token or a quoted string, and returns what follows it.
func parseValue(s string) (value, rest string) {
	if !strings.HasPrefix(s, `"`) {
		i := strings.IndexAny(s, ", \t")
		if i < 0 {
			return s, ""
		}
		return s[:i], s[i:]
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) {
				b.WriteByte(s[i])
			}
		case '"':
			return b.String(), s[i+1:]
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), ""
}

// realm returns where a challenge wants a token to be fetched, if it may be
// fetched there; login tells whether a password would be sent.
func (r *Repository) realm(c challenge, login bool) (*url.URL, error) {
	u, err := url.Parse(c.params["realm"])
	if err != nil || u.Host == "" || u.User != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "%s: the registry names no place where to get a token", r.Address)
	}
	u.Scheme, u.Fragment = strings.ToLower(u.Scheme), ""
	if !r.allows(u, login) {
		return nil, rutter.Errorf(rutter.CodeForbidden, "%s: the registry wants the login to be sent to %s://%s, which is neither its own host nor, over https, one of its parent domain: refused (considered %s)", r.Address, u.Scheme, u.Host, r.access.Describe())
	}
	return u, nil
}

// allows is the rule of the package's comment.
func (r *Repository) allows(realm *url.URL, login bool) bool {
	if realm.Scheme != "https" && realm.Scheme != r.base.Scheme {
		return false
	}
	own, other := strings.ToLower(r.base.Hostname()), strings.ToLower(realm.Hostname())
	if own == other {
		return true
	}
	if realm.Scheme != "https" {
		return false
	}
	return !login || related(own, other)
}

// related tells whether other is of the domain that own lies in directly.
func related(own, other string) bool {
	if _, err := netip.ParseAddr(own); err == nil {
		return false
	}
	_, parent, ok := strings.Cut(own, ".")
	if !ok || !strings.Contains(parent, ".") {
		return false
	}
	if suffix, _ := publicsuffix.PublicSuffix(parent); suffix == parent {
		return false
	}
	return other == parent || strings.HasSuffix(other, "."+parent)
}
