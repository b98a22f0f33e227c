package git

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/rutterhq/rutter"
)

// apps keeps the tokens of GitHub Apps: short-lived passwords that an
// installation of an App is given for a key that stays here.
type apps struct {
	mu     sync.Mutex
	tokens map[appKey]*appToken
}

// appKey names an installation as a credential names it.
type appKey struct {
	id, installation int64
	owner, base      string
	key              [sha256.Size]byte
}

// appToken is guarded by its own lock, so that all who need it share one request.
type appToken struct {
	mu    sync.Mutex
	text  string
	until time.Time
}

// appMargin is how long before its end a token is no longer used: a fetch that
// begins with it should end with it.
const appMargin = 5 * time.Minute

// current is r's access with what it takes to log in at this moment: the token
// of a GitHub App is a password that is asked for when it is needed.
func (f *Fetcher) current(ctx context.Context, r remote) (access, error) {
	a := r.access
	if !a.byApp(r.location) {
		return a, nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.LookupTimeout)
	defer cancel()
	l, err := f.appLogin(r)
	if err == nil {
		a.cred.Username = "x-access-token"
		a.cred.Password, err = f.apps.token(ctx, l)
	}
	if err != nil {
		return a, rutter.Errorf(rutter.CodeOf(err), "repository %q: logging in by %s: %w", r.display(), a.describe(), err)
	}
	return a, nil
}

// byApp reports whether an access logs in as a GitHub App: a password, token
// or, over SSH, a key comes first (reference 1.12).
func (a access) byApp(l location) bool {
	return a.cred.GitHubApp != nil && a.cred.Password == "" && a.cred.BearerToken == "" && strings.HasPrefix(l.scheme, "http")
}

// refused forgets the token that a repository was refused with.
func (f *Fetcher) refused(r remote) {
	if !r.access.byApp(r.location) {
		return
	}
	if l, err := f.appLogin(r); err == nil {
		f.apps.forget(l.key())
	}
}

func (f *Fetcher) appLogin(r remote) (appLogin, error) {
	l := appLogin{app: *r.access.cred.GitHubApp}
	if l.app.InstallationID == 0 {
		owner, _, ok := strings.Cut(r.path, "/")
		if !ok {
			return l, rutter.Errorf(rutter.CodeInvalid, "the URL names no owner to find the App's installation by; set githubAppInstallationID")
		}
		l.owner = strings.ToLower(owner)
	}
	var err error
	if l.base, err = appBase(l.app.BaseURL); err != nil {
		return l, err
	}
	cred := r.access.cred
	if siteOf(l.base) != r.scheme+"://"+r.host {
		cred.TLSClientCert, cred.TLSClientKey = "", ""
	}
	w, err := f.keys.Load().web(l.base, cred, r.access.digest)
	if err != nil {
		return l, err
	}
	l.client = &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return l, nil
}

func (l appLogin) key() appKey {
	return appKey{id: l.app.ID, installation: l.app.InstallationID, owner: l.owner, base: l.base.String(), key: sha256.Sum256([]byte(l.app.PrivateKey))}
}

// token returns a token that is still good for a while.
func (a *apps) token(ctx context.Context, l appLogin) (string, error) {
	a.mu.Lock()
	t := a.tokens[l.key()]
	if t == nil {
		t = &appToken{}
		a.tokens[l.key()] = t
	}
	a.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.text != "" && time.Until(t.until) > appMargin {
		return t.text, nil
	}
	text, until, err := l.request(ctx)
	if err != nil {
		return "", err
	}
	t.text, t.until = text, until
	return text, nil
}

func (a *apps) forget(k appKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, k)
}

// keep forgets all tokens that end soon or have ended.
func (a *apps) keep(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, t := range a.tokens {
		if t.mu.TryLock() {
			if t.until.Before(now.Add(appMargin)) {
				delete(a.tokens, k)
			}
			t.mu.Unlock()
		}
	}
}
