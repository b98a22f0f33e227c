package remote

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// Address is a URL after parsing: comparable with other spellings of itself,
// and without the login that was written in it.
type Address struct {
	// Scheme is https, http, or oci for a registry.
	Scheme string
	// Host is in lower case, with a port unless it is the scheme's own.
	Host string
	// Path is decoded and has neither a first nor a last slash.
	Path string
	// query is part of the address of a file; it may be a signature, so it is
	// not shown.
	query          string
	user, password string
}

const maxURL = 4096

var (
	hostForm = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?$`)
	// repositoryForm is the name of a repository as registries define it.
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$`)
)

// ParseWeb reads an http:// or https:// URL.
func ParseWeb(raw string) (Address, error) {
	u, err := parse(raw, "https", "http")
	if err != nil {
		return Address{}, err
	}
	a := Address{Scheme: u.Scheme, Host: canonicalHost(u.Scheme, u.Host), Path: strings.Trim(u.Path, "/"), query: u.RawQuery}
	if u.Fragment != "" {
		return Address{}, rutter.Errorf(rutter.CodeInvalid, "URL %q has a fragment (#...): remove it", conceal(raw))
	}
	if dotted(u.Path) {
		return Address{}, rutter.Errorf(rutter.CodeInvalid, "URL %q has a path with . or .. or a backslash: write it without", conceal(raw))
	}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	return a, nil
}

// ParseRegistry reads the address of a repository in a registry, or of a group
// of them: host/path, with or without oci://. A registry that was registered
// with https:// is one, too.
func ParseRegistry(raw string) (Address, error) {
	a, err := parseRegistry(raw)
	if err != nil {
		return Address{}, err
	}
	if a.Path != "" && !repositoryForm.MatchString(a.Path) {
		return Address{}, rutter.Errorf(rutter.CodeInvalid, "registry URL %q: %q is not the name of a repository (lower-case letters, digits and . _ - / between them; no tag and no digest: write those in targetRevision)", conceal(raw), a.Path)
	}
	return a, nil
}

// parseRegistry accepts any path: credentials are registered for prefixes that
// may end within a name.
func parseRegistry(raw string) (Address, error) {
	text := strings.TrimSpace(raw)
	if !strings.Contains(text, "://") {
		text = "oci://" + text
	}
	u, err := parse(text, "oci", "https")
	if err != nil {
		return Address{}, err
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery || dotted(u.Path) {
		return Address{}, rutter.Errorf(rutter.CodeInvalid, "registry URL %q has a query, a fragment or dots in its path; write oci://host/path", conceal(raw))
	}
	a := Address{Scheme: "oci", Host: registryHost(canonicalHost("https", u.Host)), Path: strings.Trim(u.Path, "/")}
	if a.Host == dockerHub && (a.Path == "v1" || a.Path == "v2") {
		a.Path = "" // the address of its API, by which logins are often kept
	}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	return a, nil
}

func parse(raw string, schemes ...string) (*url.URL, error) {
	text := strings.TrimSpace(raw)
	switch {
	case text == "":
		return nil, rutter.Errorf(rutter.CodeInvalid, "repository URL is empty: set repoURL")
	case len(text) > maxURL:
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL has %d characters, more than %d", len(text), maxURL)
	case strings.ContainsFunc(text, unsafeRune):
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q has characters that no URL has", conceal(text))
	}
	u, err := url.Parse(text)
	if err != nil {
		// The cause quotes the URL, and with it any password.
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q cannot be parsed", conceal(text))
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if !slices.Contains(schemes, u.Scheme) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q: protocol %q is not allowed here; use %s", conceal(text), u.Scheme, strings.Join(schemes, " or "))
	}
	if !hostForm.MatchString(u.Host) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "URL %q has no valid host name", conceal(text))
	}
	return u, nil
}

func unsafeRune(r rune) bool {
	return r <= ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' || r >= 0x80 && r <= 0x9f
}

// dotted tells of a decoded path that a server might read as another one.
func dotted(path string) bool {
	if strings.ContainsFunc(path, func(r rune) bool { return r == '\\' || r < ' ' || r == 0x7f }) {
		return true
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// canonicalHost drops the port that the scheme has anyway.
func canonicalHost(scheme, host string) string {
	host = strings.ToLower(host)
	switch scheme {
	case "https":
		return strings.TrimSuffix(host, ":443")
	case "http":
		return strings.TrimSuffix(host, ":80")
	}
	return host
}

const dockerHub = "docker.io"

// registryHost names Docker Hub, which has several names, by one.
func registryHost(host string) string {
	switch host {
	case "index.docker.io", "registry-1.docker.io", "registry.hub.docker.com":
		return dockerHub
	}
	return host
}

// String is the address for people: without a login and without a query.
func (a Address) String() string {
	s := a.Scheme + "://" + a.Host
	if a.Path != "" {
		s += "/" + a.Path
	}
	return s
}

// Join is the address of something below a.
func (a Address) Join(name string) Address {
	a.Path = strings.Trim(a.Path+"/"+name, "/")
	return a
}

// URL is the address to request; only for http and https. It holds no login.
func (a Address) URL() *url.URL {
	return &url.URL{Scheme: a.Scheme, Host: a.Host, Path: "/" + a.Path, RawQuery: a.query}
}

// Identity is equal for the spellings of one address. It keeps the case of the
// path, since most servers tell Charts from charts, and it may hold a query:
// it is for keys, not for people.
func (a Address) Identity() string {
	if a.query == "" {
		return a.String()
	}
	return a.String() + "?" + a.query
}

// norm is the form in which addresses are compared with those of credentials.
func (a Address) norm() string { return strings.ToLower(a.String()) }

// hostname is a host without its port, as certificates are configured by.
func hostname(host string) string {
	if after, ok := strings.CutPrefix(host, "["); ok {
		h, _, _ := strings.Cut(after, "]")
		return h
	}
	h, _, _ := strings.Cut(host, ":")
	return h
}

var userinfo = regexp.MustCompile(`://[^/@\s'"]*(?:@[^/@\s'"]*)*@`)

// redact removes what stands between :// and @ in every URL of text.
func redact(text string) string { return userinfo.ReplaceAllString(text, "://") }

// Conceal is a URL, proper or not, for people: all up to the last @ may be a
// password, and a query may be a signature.
func Conceal(raw string) string { return conceal(strings.TrimSpace(raw)) }

func conceal(text string) string {
	text, _, _ = strings.Cut(text, "?")
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text[strings.LastIndexByte(text, '@')+1:]
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}
