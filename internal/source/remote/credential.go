package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/rutterhq/rutter"
)

// Keyring is an immutable set of credentials and trust, with the connections
// that were opened with them.
type Keyring struct {
	creds []entry
	cas   map[string]string
	pool  *pool
}

type entry struct {
	rutter.RepoCredential

	norm string
	// registry says that norm is the address of a registry.
	registry bool
}

// NewKeyring returns an empty one.
func NewKeyring() *Keyring { return &Keyring{pool: newPool()} }

// With returns a keyring that has these credentials and this trust instead.
// One whose URL cannot be parsed is left out, as nothing that can be asked for
// lies below it. Connections that stood idle are closed.
func (k *Keyring) With(creds []rutter.RepoCredential, trust rutter.RepoTrust) *Keyring {
	k.pool.reset()
	k = &Keyring{cas: map[string]string{}, pool: k.pool}
	for host, pem := range trust.CAs {
		k.cas[strings.ToLower(strings.TrimSpace(host))] = pem
	}
	for _, c := range creds {
		e := entry{RepoCredential: c, registry: isRegistry(c)}
		parse := ParseWeb
		if e.registry {
			parse = parseRegistry
		}
		if a, err := parse(c.URL); err == nil {
			e.norm = a.norm()
			// A template may end within a name, or with the slash that ends one.
			if c.Template && a.Path != "" && strings.HasSuffix(strings.TrimSpace(c.URL), "/") {
				e.norm += "/"
			}
			k.creds = append(k.creds, e)
		}
	}
	return k
}

// Close drops idle connections. Those in use are finished first.
func (k *Keyring) Close() { k.pool.reset() }

// isRegistry tells whether a credential is for a registry: by its scheme, by
// having none, or because it says so (reference 1.2).
func isRegistry(c rutter.RepoCredential) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(strings.TrimSpace(c.URL)), "://")
	if !ok {
		// A Git URL without a scheme is of the scp form.
		return c.Type == "helm" || c.Type == "oci"
	}
	return scheme == "oci" || scheme == "https" && (c.EnableOCI || c.Type == "oci")
}

// Access is how one address is reached: the credential that was chosen for it,
// the bound within which that may be sent, and the identity of both.
type Access struct {
	cred rutter.RepoCredential
	// login is false when there is nothing to log in with.
	login bool
	// inline is true for a password that was written in the URL.
	inline bool
	// bound is where the credential may be sent; for registries the client of
	// registries knows.
	bound  Bound
	digest string
}

// Choose finds the credential for an address: one registered for exactly it
// first (the project's own before an unscoped one), else the longest prefix: a
// template, or a repository, which stands for all that lies below it. Where that
// has no login, the longest that has one lends it. A credential that belongs to another
// project does not exist here. Its type doesn't count, since its bound does.
func (k *Keyring) Choose(a Address, project string) Access {
	var out Access
	own := k.best(a, project, func(e *entry) bool { return !e.Template && e.norm == a.norm() })
	if own == nil {
		own = k.best(a, project, func(e *entry) bool { return covers(e, a) })
	}
	if own != nil {
		out.cred, out.bound = own.RepoCredential, boundOf(own)
	}
	if !hasLogin(out.cred) {
		if e := k.best(a, project, func(e *entry) bool { return covers(e, a) && hasLogin(e.RepoCredential) }); e != nil {
			out.cred, out.bound = inherit(own, e.RepoCredential), boundOf(e)
		}
	}
	if a.password != "" && !hasLogin(out.cred) {
		out.inline = true
		out.cred.URL, out.cred.Project, out.cred.Template = a.String(), project, false
		out.cred.Username, out.cred.Password = a.user, a.password
		out.bound = Bound{Scheme: a.Scheme, Host: a.Host, Path: a.Path}
	}
	if out.bound == (Bound{}) {
		out.bound = Bound{Scheme: a.Scheme, Host: a.Host, Path: a.Path}
	}
	out.login = hasLogin(out.cred)
	out.digest = k.digest(out)
	return out
}

// best is the entry with the longest address among those that match; of equal
// ones the project's own.
func (k *Keyring) best(a Address, project string, match func(*entry) bool) *entry {
	var best *entry
	for i := range k.creds {
		e := &k.creds[i]
		if e.registry != (a.Scheme == "oci") || e.Project != "" && e.Project != project || !match(e) {
			continue
		}
		if best == nil || len(e.norm) > len(best.norm) || len(e.norm) == len(best.norm) && best.Project == "" && e.Project != "" {
			best = e
		}
	}
	return best
}

// covers tells whether an address lies below that of a credential: for a
// template a plain prefix within the path, as the reference has it, otherwise
// whole names.
func covers(e *entry, a Address) bool { return boundOf(e).covers(a.Scheme, a.Host, a.Path) }

// Named returns the URL of the Helm repository that is registered by a name
// and that a project may use.
func (k *Keyring) Named(name, project string) (string, bool) {
	found, scoped := "", false
	for i := range k.creds {
		e := &k.creds[i]
		if e.Template || e.Name != name || e.Type != "helm" && e.Type != "oci" || e.Project != "" && e.Project != project {
			continue
		}
		if found == "" || !scoped && e.Project != "" {
			found, scoped = strings.TrimSpace(e.URL), e.Project != ""
			if e.registry && !strings.HasPrefix(strings.ToLower(found), "oci://") {
				_, rest, ok := strings.Cut(found, "://")
				if !ok {
					rest = found
				}
				found = "oci://" + rest
			}
		}
	}
	return found, found != ""
}

// IsRegistry tells whether the URL of a chart's repository is that of a
// registry (reference 1.2): it has no scheme, or oci://, or was registered as one.
func (k *Keyring) IsRegistry(raw, project string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(strings.TrimSpace(raw)), "://")
	if !ok || scheme == "oci" {
		return true
	}
	a, err := parseRegistry(raw)
	if err != nil {
		return false
	}
	norm := a.norm()
	return slices.ContainsFunc(k.creds, func(e entry) bool {
		return e.registry && !e.Template && e.norm == norm && strings.HasPrefix(strings.ToLower(e.URL), "https://") && (e.Project == "" || e.Project == project)
	})
}

func hasLogin(c rutter.RepoCredential) bool {
	return c.Password != "" || c.BearerToken != "" || c.TLSClientCert != ""
}

// inherit is a prefix's login with the settings of the repository's own entry.
func inherit(own *entry, prefix rutter.RepoCredential) rutter.RepoCredential {
	c := prefix
	c.Insecure = own.Insecure || prefix.Insecure
	c.PlainHTTP = own.PlainHTTP || prefix.PlainHTTP
	c.Unsupported = append(slices.Clone(prefix.Unsupported), own.Unsupported...)
	if own.Username != "" {
		c.Username = own.Username
	}
	if own.Proxy != "" {
		c.Proxy, c.NoProxy = own.Proxy, own.NoProxy
	}
	return c
}

// digest changes with everything that decides what a server answers, so that
// no answer that one credential got, good or bad, outlives it.
func (k *Keyring) digest(a Access) string {
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{a.cred, a.inline, a.bound, k.cas}) //nolint:errchkjson // plain data into a hash
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// Digest identifies the access with every secret in it; it reveals none.
func (a Access) Digest() string { return a.digest }

// Scope separates stores: what was fetched with one credential is never served
// to somebody who may not use it. A rotated password keeps its store.
func (a Access) Scope() string {
	switch {
	case !a.login:
		return ""
	case a.inline:
		return "inline\x00" + a.digest
	}
	return strings.Join([]string{a.cred.URL, a.cred.Project, a.cred.Username}, "\x00")
}

// Password returns the login for HTTP basic authentication.
func (a Access) Password() (user, password string, ok bool) {
	return a.cred.Username, a.cred.Password, a.cred.Password != ""
}

// Token returns the bearer token, "" when there is none.
func (a Access) Token() string { return a.cred.BearerToken }

// PlainHTTP says that the registry is spoken to without TLS.
func (a Access) PlainHTTP() bool { return a.cred.PlainHTTP }

// Bound is where the credential may be sent.
func (a Access) Bound() Bound { return a.bound }

// Describe says which credential was considered, for errors: never what is in it.
func (a Access) Describe() string {
	kind := "the repository credential"
	switch {
	case a.inline:
		return "the login written in the URL"
	case a.cred.URL == "":
		return "no credential"
	case a.cred.Template:
		kind = "the credential template"
	}
	if a.cred.Name != "" {
		kind += " " + quote(a.cred.Name)
	}
	text := kind + " for " + Conceal(a.cred.URL)
	if !a.login {
		text += ", which has no login"
	}
	if len(a.cred.Unsupported) > 0 {
		text += "; its fields " + strings.Join(a.cred.Unsupported, ", ") + " are not acted on yet"
	}
	return text
}

// Check refuses a credential that cannot be put into a header.
func (a Access) Check() error {
	if strings.ContainsAny(a.cred.Username+a.cred.Password+a.cred.BearerToken, "\x00\r\n") {
		return rutter.Errorf(rutter.CodeInvalid, "%s has a line break in its username, password or token; remove it", a.Describe())
	}
	if strings.Contains(a.cred.Username, ":") {
		return rutter.Errorf(rutter.CodeInvalid, "%s has a colon in its username, which HTTP cannot send; remove it", a.Describe())
	}
	return nil
}

// Bound is a scheme, a host and the prefix of a path.
type Bound struct {
	Scheme, Host, Path string
	// Loose is for templates: Path may end within a name.
	Loose bool
}

func boundOf(e *entry) Bound {
	scheme, rest, _ := strings.Cut(e.norm, "://")
	host, path, _ := strings.Cut(rest, "/")
	return Bound{Scheme: scheme, Host: host, Path: path, Loose: e.Template}
}

func (b Bound) covers(scheme, host, path string) bool {
	if b.Scheme != scheme || b.Host != canonicalHost(scheme, host) {
		return false
	}
	path = strings.ToLower(strings.TrimLeft(path, "/"))
	prefix := strings.ToLower(b.Path)
	if !strings.HasPrefix(path, prefix) {
		// A prefix may end with a slash that the address itself has not.
		return b.Loose && path+"/" == prefix
	}
	return b.Loose || prefix == "" || len(path) == len(prefix) || path[len(prefix)] == '/'
}

// Holds tells whether a credential may be sent to a URL. A path that a server
// might read as another one lies in no bound.
func (b Bound) Holds(u *url.URL) bool {
	return !dotted(u.Path) && b.covers(strings.ToLower(u.Scheme), u.Host, u.Path)
}
