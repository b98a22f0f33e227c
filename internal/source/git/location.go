package git

import (
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/rutterhq/rutter"
	guard "github.com/rutterhq/rutter/internal/source/remote"
)

// location is a repository's URL after parsing: safe to hand to git, and
// comparable with other spellings of itself.
type location struct {
	// remote is what git is given: the user's spelling without passwords.
	remote string
	// scheme is file, http, https or ssh; host has the port, if one is written.
	scheme string
	host   string
	path   string
	// user is the login name of an SSH URL, or what stood before the @ of an HTTP one.
	user     string
	password string
}

var (
	scpForm  = regexp.MustCompile(`^(?:([A-Za-z0-9_][A-Za-z0-9._+~-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\]):([^:].*)$`)
	hostForm = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)
	userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+~-]*$`)
)

const maxURL = 2048

// parseLocation accepts the forms of rutter.Repo.URL and nothing else: no
// remote helpers (ext::), no options in disguise, no control characters.
func parseLocation(raw string) (location, error) {
	text := strings.TrimSpace(raw)
	switch {
	case text == "":
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL is empty: set repoURL")
	case len(text) > maxURL:
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL has %d characters, more than %d", len(text), maxURL)
	case strings.HasPrefix(text, "-"), strings.ContainsFunc(text, unsafeRune), strings.Contains(text, " ") && !strings.HasPrefix(strings.ToLower(text), "file://"):
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has characters that no repository URL has", conceal(text))
	}
	scheme, _, ok := strings.Cut(text, "://")
	if !ok {
		return allowed(parseSCP(text))
	}
	switch strings.ToLower(scheme) {
	case "http", "https", "ssh":
		return allowed(parseNetwork(text))
	case "file":
		return parseFile(text)
	}
	return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q: protocol %q is not allowed; use https, http, ssh or file", conceal(text), scheme)
}

// allowed refuses hosts that no repository is on (guard.RefusesHost).
func allowed(l location, err error) (location, error) {
	if err == nil && guard.RefusesHost(l.hostname()) {
		return location{}, rutter.Errorf(rutter.CodeForbidden, "repository URL %q leads to a link-local address or a cloud's metadata service, where no repository is; write the host of the Git server", l.display())
	}
	return l, err
}

func unsafeRune(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' || r == '\uFFFD' }

func parseNetwork(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil {
		// The cause quotes the URL, and with it any password.
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q cannot be parsed; write it as https://host/path or ssh://user@host/path", conceal(text))
	}
	if !hostForm.MatchString(u.Host) {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has no valid host name", conceal(text))
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has a query or fragment; write the revision in targetRevision and the folder in path", conceal(text))
	}
	l := location{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Host), path: strings.Trim(u.Path, "/")}
	if u.User != nil {
		l.user = u.User.Username()
		l.password, _ = u.User.Password()
	}
	if l.path == "" || strings.HasPrefix(l.path, "-") {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q names no repository on the host", conceal(text))
	}
	if climbs(l.path) {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has . or .. in its path; write the path that it leads to", conceal(text))
	}
	u.User = nil
	if l.scheme == "ssh" && l.user != "" {
		if !userForm.MatchString(l.user) {
			return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has an invalid user name", conceal(text))
		}
		u.User = url.User(l.user)
	}
	u.Scheme, u.Host = l.scheme, l.host
	l.remote = u.String()
	return l, nil
}

// climbs reports whether a path goes up or stays: a rule or a credential for
// org/* must not be good for org/../other.
func climbs(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

func parseSCP(text string) (location, error) {
	m := scpForm.FindStringSubmatch(text)
	if m != nil && climbs(m[3]) {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q has . or .. in its path; write the path that it leads to", conceal(text))
	}
	if m == nil || strings.HasPrefix(m[3], "-") || strings.Trim(m[3], "/") == "" {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q is not a Git URL; write https://host/path, ssh://user@host/path, user@host:path or file:///path", conceal(text))
	}
	return location{remote: text, scheme: "ssh", user: m[1], host: strings.ToLower(m[2]), path: strings.Trim(m[3], "/")}, nil
}

// parseFile resolves a file URL the way git does (a folder as it is written,
// else with .git), so that its spellings meet without confusing "fleet" with
// "fleet.git", which may both exist.
func parseFile(text string) (location, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || u.RawQuery != "" || u.Fragment != "" {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q is not a local repository; write file:///absolute/path", conceal(text))
	}
	dir := path.Clean(u.Path)
	if strings.ContainsRune(dir, 0) || dir == "/" {
		return location{}, rutter.Errorf(rutter.CodeInvalid, "repository URL %q names no repository", conceal(text))
	}
	if _, err := os.Stat(dir); err != nil {
		if _, err := os.Stat(dir + ".git"); err == nil {
			dir += ".git"
		}
	}
	return location{remote: (&url.URL{Scheme: "file", Path: dir}).String(), scheme: "file", path: dir}, nil
}

// identity is equal for the spellings of one repository: host and scheme
// without case, SSH in one form, no .git. Unlike rutter.NormalizeGitURL it
// keeps the case of the path: most servers tell Fleet from fleet, and two
// repositories must never share a mirror.
func (l location) identity() string {
	if l.scheme == "file" {
		return "file://" + l.path
	}
	p := strings.TrimSuffix(strings.TrimRight(l.path, "/"), ".git")
	if l.scheme == "ssh" {
		return "ssh://" + l.user + "@" + l.host + "/" + p
	}
	return l.scheme + "://" + l.host + "/" + p
}

// display is the URL for people: as git gets it, which has no password.
func (l location) display() string { return l.remote }

// hostname is the host without a port, as TLS certificates are configured by.
func (l location) hostname() string {
	if after, ok := strings.CutPrefix(l.host, "["); ok {
		h, _, _ := strings.Cut(after, "]")
		return h
	}
	h, _, _ := strings.Cut(l.host, ":")
	return h
}

// port is the one of an SSH server.
func (l location) port() string {
	if i := strings.LastIndexByte(l.host, ':'); i > strings.LastIndexByte(l.host, ']') {
		return l.host[i+1:]
	}
	return "22"
}

var userinfo = regexp.MustCompile(`://[^/@\s'"]*(?:@[^/@\s'"]*)*@`)

// redact removes what stands between :// and @ in every URL of text.
func redact(text string) string { return userinfo.ReplaceAllString(text, "://") }

// conceal is redact for text that is no proper URL: all up to the last @ may
// be a password.
func conceal(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return text
	}
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}
