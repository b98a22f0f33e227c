package git

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	"github.com/rutterhq/rutter"
)

// access is how one repository is logged in to: the credential that was
// chosen for it, the bounds within which it may be sent, and what is trusted.
type access struct {
	cred rutter.RepoCredential
	// login is false when there is nothing to log in with.
	login bool
	// inline is true for a password that was written in the URL.
	inline bool
	// path bounds the credential together with the repository's scheme and
	// host: it is sent nowhere else. It is a prefix for a template, whole otherwise.
	path string
	// knownHosts and ca are the operator's trust for this repository.
	knownHosts string
	ca         string
	// digest changes with everything above, so that no answer that one
	// credential got, good or bad, outlives it.
	digest string
}

// keyring is an immutable set of credentials and trust, with what it has
// answered so far.
type keyring struct {
	creds []keyringEntry
	trust rutter.RepoTrust
	// known maps an asker to a remote, webs a credential and host to a client.
	known sync.Map
	webs  sync.Map
}

type asker struct{ url, project string }

type webKey struct{ digest, site string }

type keyringEntry struct {
	rutter.RepoCredential

	norm string
}

func newKeyring(creds []rutter.RepoCredential, trust rutter.RepoTrust) *keyring {
	k := &keyring{trust: rutter.RepoTrust{KnownHosts: trust.KnownHosts, CAs: map[string]string{}}}
	for host, pem := range trust.CAs {
		k.trust.CAs[strings.ToLower(host)] = pem
	}
	for _, c := range creds {
		if c.Type == "" || c.Type == "git" {
			k.creds = append(k.creds, keyringEntry{c, normalize(c.URL)})
		}
	}
	return k
}

// web is the HTTP client of a credential for one host.
func (k *keyring) web(base *url.URL, c rutter.RepoCredential, digest string) (*web, error) {
	key := webKey{digest, siteOf(base)}
	if w, ok := k.webs.Load(key); ok {
		return w.(*web), nil
	}
	w, err := newWeb(base, c, k.trust.CAs)
	if err != nil {
		return nil, err
	}
	known, _ := k.webs.LoadOrStore(key, w)
	return known.(*web), nil
}

// normalize is rutter.NormalizeGitURL without the userinfo of an HTTP URL, by
// which nobody means another repository.
func normalize(raw string) string {
	if scheme, _, ok := strings.Cut(raw, "://"); ok && strings.HasPrefix(strings.ToLower(scheme), "http") {
		raw = redact(raw)
	}
	return rutter.NormalizeGitURL(raw)
}

// choose finds the credential for a repository: one for exactly this URL
// first (the project's own before an unscoped one), and where that has no
// login of its own, or there is none, the template with the longest matching
// prefix. A credential that belongs to another project does not exist here.
func (k *keyring) choose(l location, project string) access {
	a := access{path: strings.TrimSuffix(l.path, ".git")}
	own := k.exact(l, project)
	if own != nil {
		a.cred = own.RepoCredential
	}
	if !hasLogin(a.cred) {
		if e := k.template(l, project); e != nil {
			a.cred = inherit(own, e.RepoCredential)
			a.path = l.path[:min(len(l.path), len(pathOf(e.norm)))]
		}
	}
	if l.password != "" && !hasLogin(a.cred) {
		a.inline = true
		a.cred.URL, a.cred.Project, a.cred.Template = l.remote, project, false
		a.cred.Username, a.cred.Password = l.user, l.password
	}
	a.login = hasLogin(a.cred)
	switch l.scheme {
	case "ssh":
		a.knownHosts = k.trust.KnownHosts
	case "https":
		a.ca = k.trust.CAs[l.hostname()]
		if pem, ok := k.trust.CAs[l.host]; ok {
			a.ca = pem
		}
	}
	a.digest = digestOf(a)
	return a
}

func (k *keyring) exact(l location, project string) *keyringEntry {
	norm := normalize(l.remote)
	var best *keyringEntry
	for i := range k.creds {
		e := &k.creds[i]
		if e.Template || e.norm != norm || !visible(e.Project, project) {
			continue
		}
		if best == nil || best.Project == "" && e.Project != "" {
			best = e
		}
	}
	return best
}

func (k *keyring) template(l location, project string) *keyringEntry {
	norm := normalize(l.remote)
	var best *keyringEntry
	for i := range k.creds {
		e := &k.creds[i]
		if !e.Template || !visible(e.Project, project) || !hasPrefix(norm, e.norm) {
			continue
		}
		if best == nil || len(e.norm) > len(best.norm) || len(e.norm) == len(best.norm) && best.Project == "" && e.Project != "" {
			best = e
		}
	}
	return best
}

// hasPrefix is a plain prefix within the path, as the reference has it, but
// never ends inside a host name: a template for https://git.example.com must
// not be sent to https://git.example.com.evil.org.
func hasPrefix(norm, prefix string) bool {
	return prefix != "" && strings.HasPrefix(norm, prefix) && len(prefix) >= len(norm)-len(pathOf(norm))-1
}

// pathOf is what follows the host in a normalised URL.
func pathOf(norm string) string {
	if _, rest, ok := strings.Cut(norm, "://"); ok {
		norm = rest
	}
	_, p, _ := strings.Cut(norm, "/")
	return p
}

func visible(credProject, project string) bool { return credProject == "" || credProject == project }

func hasLogin(c rutter.RepoCredential) bool {
	return c.Password != "" || c.BearerToken != "" || c.SSHPrivateKey != "" || c.TLSClientCert != "" || c.GitHubApp != nil
}

// inherit is a template's login with the settings of the repository's own entry.
func inherit(own *keyringEntry, template rutter.RepoCredential) rutter.RepoCredential {
	if own == nil {
		return template
	}
	c := template
	c.Insecure = own.Insecure || template.Insecure
	c.InsecureIgnoreHostKey = own.InsecureIgnoreHostKey || template.InsecureIgnoreHostKey
	c.Unsupported = append(append([]string(nil), template.Unsupported...), own.Unsupported...)
	if own.Username != "" {
		c.Username = own.Username
	}
	c.EnableLFS = own.EnableLFS || template.EnableLFS
	if own.Proxy != "" {
		c.Proxy, c.NoProxy = own.Proxy, own.NoProxy
	}
	return c
}

// scope separates mirrors: what was fetched with one credential is never
// served to somebody who may not use it. A rotated password keeps its mirror.
func (a access) scope() string {
	switch {
	case !a.login:
		return ""
	case a.inline:
		return "inline\x00" + a.digest
	}
	return strings.Join([]string{normalize(a.cred.URL), a.cred.Project, a.cred.Username}, "\x00")
}

func digestOf(a access) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{a.cred, a.path, a.knownHosts, a.ca}) //nolint:errchkjson // plain data into a hash
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// describe says which credential was used, for errors: never what is in it.
func (a access) describe() string {
	kind := "the repository credential"
	switch {
	case !a.login:
		return "no credential"
	case a.inline:
		return "the login written in the URL"
	case a.cred.Template:
		kind = "the credential template"
	}
	if a.cred.GitHubApp != nil {
		kind = "the GitHub App of " + kind
	}
	return kind + " for " + redact(a.cred.URL)
}
