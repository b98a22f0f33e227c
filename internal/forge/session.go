package forge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/rutterhq/rutter"
)

// session is one query on its way: where it goes, and how it logs in.
type session struct {
	*Client

	q        rutter.ForgeQuery
	provider provider
	// what is asked, in words.
	what  string
	base  *url.URL
	login login
	// ca are the certificates of the query's own authority.
	ca    string
	http  *http.Client
	quota *quota
}

// open checks a query against what the operator allows, and only then looks
// its login up.
func (c *Client) open(ctx context.Context, q rutter.ForgeQuery, what string) (*session, error) {
	p, err := providerOf(q.Provider)
	if err != nil {
		return nil, err
	}
	s := &session{Client: c, q: q, provider: p, what: what}
	text, err := p.api(q)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeOf(err), "%s: %w", q.Provider, err)
	}
	if s.base, err = parseAPI(q.Provider, text); err != nil {
		return nil, err
	}
	if q.API != "" && !allowed(c.opts.Hosts, s.base) {
		return nil, s.fail(what, rutter.CodeForbidden, "the operator does not allow this API: name it in the list of allowed SCM providers")
	}
	if err := checkHost(s.base.Host); err != nil {
		return nil, s.wrap(what, err)
	}
	if s.ca, err = s.certificates(ctx); err != nil {
		return nil, s.wrap(what, err)
	}
	if s.http, err = c.route(s.ca, q.Insecure); err != nil {
		return nil, s.wrap(what, err)
	}
	if s.login, err = s.logIn(ctx); err != nil {
		return nil, s.wrap(what, err)
	}
	s.quota = c.quotas.of(s.base.Host+"\x00"+s.login.digest, func() *quota {
		return newQuota(q.Provider, s.base.Host, s.login.name)
	})
	return s, nil
}

func (s *session) certificates(ctx context.Context) (string, error) {
	if s.q.CA == nil {
		return "", nil
	}
	if s.opts.ConfigMap == nil {
		return "", rutter.Errorf(rutter.CodeInvalid, "caRef: there are no ConfigMaps to look into here")
	}
	pem, err := s.opts.ConfigMap(ctx, *s.q.CA)
	if err != nil {
		return "", rutter.Errorf(rutter.CodeOf(err), "caRef: %w", err)
	}
	if strings.TrimSpace(pem) == "" {
		return "", rutter.Errorf(rutter.CodeInvalid, "caRef: key %s of ConfigMap %s is empty: put certificates in PEM there", quote(s.q.CA.Key), quote(s.q.CA.Name))
	}
	return pem, nil
}

// at is a URL of the API: the path's parts are escaped one by one.
func (s *session) at(query url.Values, parts ...string) *url.URL {
	u := *s.base
	plain, escaped := []string{s.base.Path}, []string{s.base.EscapedPath()}
	for _, part := range parts {
		plain = append(plain, part)
		escaped = append(escaped, url.PathEscape(part))
	}
	u.Path, u.RawPath = strings.Join(plain, "/"), strings.Join(escaped, "/")
	u.RawQuery = query.Encode()
	return &u
}

// inside tells whether a URL that a server gave leads to the API itself.
func (s *session) inside(u *url.URL) bool {
	return u.Scheme == s.base.Scheme && strings.EqualFold(u.Host, s.base.Host) && u.User == nil &&
		(s.base.Path == "" || u.Path == s.base.Path || strings.HasPrefix(u.Path, s.base.Path+"/"))
}

// fail is an error of one question: whose, where, what.
func (s *session) fail(what string, code rutter.Code, format string, args ...any) error {
	return rutter.Errorf(code, "%s %s: %s: %w", s.q.Provider, s.base.Host, what, fmt.Errorf(format, args...))
}

func (s *session) wrap(what string, err error) error {
	return rutter.Errorf(rutter.CodeOf(err), "%s %s: %s: %w", s.q.Provider, s.base.Host, what, err)
}

// each asks something about every element, a few at a time, and returns the
// answers in the elements' order.
func each[T, R any](ctx context.Context, s *session, in []T, ask func(context.Context, T) ([]R, error)) ([]R, error) {
	out := make([][]R, len(in))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.opts.Parallel)
	for i, e := range in {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return s.fail(s.what, rutter.CodeUnavailable, "%w", context.Cause(ctx))
			}
			out[i], err = ask(ctx, e)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []R
	for _, some := range out {
		all = append(all, some...)
	}
	return all, nil
}

func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}
