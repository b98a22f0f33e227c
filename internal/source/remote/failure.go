package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/rutterhq/rutter"
)

// explain turns a request that got no answer into the user's error.
func explain(a Access, u *url.URL, err error) error {
	host := u.Host
	if coded, ok := errors.AsType[*rutter.Error](err); ok {
		return coded
	}
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	switch {
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer in time; check the network and the server", host)
	case errors.Is(err, context.Canceled):
		return rutter.Errorf(rutter.CodeUnavailable, "asking %s: %w", host, context.Canceled)
	case errors.As(err, &dns):
		return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer: its host name was not found; check the URL and the name server", dns.Name)
	case errors.As(err, &unknown), errors.As(err, &name), errors.As(err, &invalid), errors.As(err, &verify):
		return rutter.Errorf(rutter.CodeUnavailable, "%s was not asked: its TLS certificate is not trusted (%s); add the authority's certificate for the host to argocd-tls-certs-cm", host, a.scrub(rootCause(err)))
	}
	return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer (%s); check the network and the server", host, a.scrub(rootCause(err)))
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// rootCause leaves out the URL, which url.Error quotes with its query.
func rootCause(err error) string {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return cut(printable(err.Error()))
}

func cut(line string) string {
	const longest = 300
	if len(line) > longest {
		return strings.ToValidUTF8(line[:longest], "") + "…"
	}
	return line
}

// scrub removes every secret of the credential, and every userinfo, from text.
func (a Access) scrub(text string) string {
	text = redact(text)
	for _, secret := range []string{a.cred.Password, a.cred.BearerToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// Refused is the error for an answer that is not the one hoped for; what names
// the thing that was asked for.
func Refused(what string, a Access, resp *http.Response) error {
	used := " (considered " + a.Describe() + ")"
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized && !a.login:
		return rutter.Errorf(rutter.CodeForbidden, "%s wants a login%s: add a repository Secret with a login for it", what, used)
	case code == http.StatusUnauthorized:
		return rutter.Errorf(rutter.CodeForbidden, "%s refused the login%s: correct the login in the repository's Secret", what, used)
	case code == http.StatusForbidden:
		return rutter.Errorf(rutter.CodeForbidden, "%s refused access%s: give the login read access to it", what, used)
	case code == http.StatusNotFound, code == http.StatusGone:
		return rutter.Errorf(rutter.CodeNotFound, "%s not found or no access%s: check the URL, or add a repository Secret with a login for it", what, used)
	case code == http.StatusTooManyRequests:
		return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer: its server limits the rate of requests; ask less often, or log in", what)
	case code >= 300 && code < 400:
		return rutter.Errorf(rutter.CodeInvalid, "%s has moved (HTTP %d) to nowhere: write its new URL", what, code)
	case code >= 400 && code < 500:
		return rutter.Errorf(rutter.CodeInvalid, "%s: its server refused the request (HTTP %d): check the URL", what, code)
	default:
		return rutter.Errorf(rutter.CodeUnavailable, "%s did not answer: its server failed (HTTP %d)", what, code)
	}
}

// Body reads an answer up to a number of bytes; more is an error. what names
// it, hint says what to do about one that is too large.
func Body(what string, a Access, resp *http.Response, most int64) io.Reader {
	return &body{what: what, access: a, r: resp.Body, left: most, most: most, url: resp.Request.URL}
}

type body struct {
	what       string
	access     Access
	url        *url.URL
	r          io.Reader
	left, most int64
	err        error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	// One byte more than allowed tells a body that is full from one that goes on.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if int64(n) > b.left {
		b.err = rutter.Errorf(rutter.CodeInvalid, "%s is larger than %d bytes, the limit", b.what, b.most)
		return 0, b.err
	}
	b.left -= int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = rutter.Errorf(rutter.CodeUnavailable, "%s: %w", b.what, explain(b.access, b.url, err))
		return n, b.err
	}
	b.err = err
	return n, err
}
