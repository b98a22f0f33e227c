package git

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/rutterhq/rutter"
	guard "github.com/rutterhq/rutter/internal/source/remote"
)

// web is HTTP as a repository's credential allows it, for what git itself does
// not speak: the API of GitHub and the batch API of LFS. Trust and the client
// certificate are those of one host; to any other it is a plain client.
type web struct {
	// home is the scheme and host that the settings are for.
	home string
	near *http.Transport
	far  *http.Transport
	// trust are the authorities of other hosts.
	trust map[string]string
}

// newWeb makes the client for the host of base.
func newWeb(base *url.URL, c rutter.RepoCredential, trust map[string]string) (*web, error) {
	proxy, err := proxyOf(c)
	if err != nil {
		return nil, err
	}
	near, far := newTransport(proxy), newTransport(proxy)
	near.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure} //nolint:gosec // what the Secret says
	if near.TLSClientConfig.RootCAs, err = pool(trust, base); err != nil {
		return nil, err
	}
	if c.TLSClientCert != "" {
		pair, err := tls.X509KeyPair([]byte(c.TLSClientCert), []byte(c.TLSClientKey))
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "tlsClientCertData and tlsClientCertKey are no certificate with its key")
		}
		near.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	return &web{home: siteOf(base), near: near, far: far, trust: trust}, nil
}

func newTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	dialer := &net.Dialer{Timeout: 20 * time.Second, Control: guard.Guard}
	return &http.Transport{Proxy: proxy, DialContext: dialer.DialContext, TLSHandshakeTimeout: 20 * time.Second, ResponseHeaderTimeout: time.Minute,
		IdleConnTimeout: 30 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true}
}

// RoundTrip implements http.RoundTripper.
func (w *web) RoundTrip(req *http.Request) (*http.Response, error) {
	if guard.RefusesHost(req.URL.Hostname()) {
		return nil, rutter.Errorf(rutter.CodeForbidden, "%s is a link-local address, where nothing is fetched from", req.URL.Hostname())
	}
	if siteOf(req.URL) == w.home {
		return w.near.RoundTrip(req) //nolint:wrapcheck // http.Client wraps it
	}
	roots, err := pool(w.trust, req.URL)
	if err != nil {
		return nil, err
	}
	if roots == nil {
		return w.far.RoundTrip(req) //nolint:wrapcheck // http.Client wraps it
	}
	t := w.far.Clone()
	t.DisableKeepAlives = true
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return t.RoundTrip(req) //nolint:wrapcheck // http.Client wraps it
}

func siteOf(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// pool returns the authorities that the operator trusts for a host; nil for
// those of the system.
func pool(trust map[string]string, u *url.URL) (*x509.CertPool, error) {
	pem, ok := trust[strings.ToLower(u.Host)]
	if !ok {
		pem, ok = trust[strings.ToLower(u.Hostname())]
	}
	if !ok || u.Scheme != "https" {
		return nil, nil
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM([]byte(pem)) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "argocd-tls-certs-cm has no certificate for %s that can be read", u.Hostname())
	}
	return p, nil
}

// proxyOf chooses the proxy for a request as git does for this credential.
func proxyOf(c rutter.RepoCredential) (func(*http.Request) (*url.URL, error), error) {
	if c.Proxy == "" {
		return http.ProxyFromEnvironment, nil
	}
	p, err := parseProxy(c)
	if err != nil {
		return nil, err
	}
	return func(req *http.Request) (*url.URL, error) {
		if bypasses(c.NoProxy, req.URL.Hostname(), req.URL.Port()) {
			return nil, nil
		}
		return p, nil
	}, nil
}

// parseProxy reads the proxy of a credential. Its password stays out of errors.
func parseProxy(c rutter.RepoCredential) (*url.URL, error) {
	text := c.Proxy
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || strings.ContainsFunc(text, unsafeRune) {
		return nil, rutter.Errorf(rutter.CodeInvalid, "proxy %q cannot be parsed; write it as http://host:port or socks5://host:port", conceal(c.Proxy))
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, rutter.Errorf(rutter.CodeInvalid, "proxy %q: protocol %q is not known; use http, https, socks5 or socks5h", conceal(c.Proxy), u.Scheme)
}

// bypasses reports whether a host is one of noProxy's: a name stands for itself
// and all below it, * for all; networks and ports may be written.
func bypasses(noProxy, host, port string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, addrErr := netip.ParseAddr(host)
	for item := range strings.FieldsFuncSeq(strings.ToLower(noProxy), func(r rune) bool { return r == ',' || r == ' ' }) {
		if prefix, err := netip.ParsePrefix(item); err == nil {
			if addrErr == nil && prefix.Contains(addr.Unmap()) {
				return true
			}
			continue
		}
		if h, p, err := net.SplitHostPort(item); err == nil {
			if p != port {
				continue
			}
			item = h
		}
		item = strings.TrimPrefix(strings.TrimPrefix(item, "*"), ".")
		if item == "" || host == strings.Trim(item, "[]") || strings.HasSuffix(host, "."+item) {
			return true
		}
	}
	return false
}
