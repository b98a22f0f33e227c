package remote

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/rutterhq/rutter"
)

// pool keeps one transport for each way of connecting. A client certificate,
// or an unchecked server, is never shared with a host it was not meant for.
type pool struct {
	mu   sync.Mutex
	open map[[32]byte]*http.Transport
}

// route is one way of connecting.
type route struct {
	CA             string
	Cert, Key      string
	Insecure       bool
	Proxy, NoProxy string
}

func newPool() *pool { return &pool{open: map[[32]byte]*http.Transport{}} }

// reset forgets all ways of connecting, and with them the passwords of proxies
// and the keys of certificates. What is on its way is finished.
func (p *pool) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.open {
		t.CloseIdleConnections()
	}
	clear(p.open)
}

// transport returns the one for a route.
func (p *pool) transport(r route) (*http.Transport, error) {
	text, err := json.Marshal(r) //nolint:musttag // nobody reads it: it is hashed
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInternal, "naming a way to connect: %w", err)
	}
	key := sha256.Sum256(text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.open[key]; ok {
		return t, nil
	}
	t, err := r.transport()
	if err != nil {
		return nil, err
	}
	p.open[key] = t
	return t, nil
}

func (r route) transport() (*http.Transport, error) {
	t := &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: r.Insecure}, //nolint:gosec // only for a host for which the operator wrote so
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  time.Minute,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		MaxResponseHeaderBytes: 256 << 10,
		ForceAttemptHTTP2:      true,
	}
	if r.CA != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(r.CA)) {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the authority's certificate in argocd-tls-certs-cm cannot be read; write it as PEM")
		}
		t.TLSClientConfig.RootCAs = roots
	}
	if r.Cert != "" {
		pair, err := tls.X509KeyPair([]byte(r.Cert), []byte(r.Key))
		if err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the client certificate and its key (tlsClientCertData, tlsClientCertKey) cannot be used together; write both as PEM")
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{pair}
	}
	proxy := httpproxy.FromEnvironment()
	if r.Proxy != "" {
		if _, err := url.Parse(r.Proxy); err != nil {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the URL of the proxy cannot be parsed; write it as http://host:port")
		}
		proxy = &httpproxy.Config{HTTPProxy: r.Proxy, HTTPSProxy: r.Proxy, NoProxy: r.NoProxy}
	}
	find := proxy.ProxyFunc()
	t.Proxy = func(req *http.Request) (*url.URL, error) { return find(req.URL) }
	return t, nil
}
