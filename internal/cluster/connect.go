package cluster

import (
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/transport"

	"github.com/rutterhq/rutter"
)

const (
	dialTimeout = 10 * time.Second
	// pingAfter and pingTimeout find a peer that has died without a word: a
	// connection on which nothing came for pingAfter is asked, and given up
	// when there is no answer within pingTimeout.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second
)

// restConfig builds the one configuration by which a declared member is
// reached. No process is started, now or later, for a credential plugin that
// the operator has not allowed.
func restConfig(info rutter.ClusterInfo, cred rutter.ClusterCredential, allowExec func(string) bool) (*rest.Config, error) {
	if u, err := url.Parse(info.Server); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" {
		return nil, rutter.Errorf(rutter.CodeInvalid, "server is not a URL of an API server: it must be https://host[:port][/path], without a login")
	}
	rc := &rest.Config{
		Host: info.Server, Username: cred.Username, Password: cred.Password, BearerToken: cred.BearerToken, DisableCompression: cred.DisableCompression,
		TLSClientConfig: rest.TLSClientConfig{Insecure: cred.TLS.Insecure, ServerName: cred.TLS.ServerName, CAData: cred.TLS.CAData,
			CertData: cred.TLS.CertData, KeyData: cred.TLS.KeyData},
	}
	if cred.ProxyURL != "" {
		proxy, err := url.Parse(cred.ProxyURL)
		if err != nil || proxy.Host == "" || proxy.Scheme != "http" && proxy.Scheme != "https" && proxy.Scheme != "socks5" {
			return nil, rutter.Errorf(rutter.CodeInvalid, "config.proxyUrl is not a URL of a proxy: it must be http://, https:// or socks5://host[:port]")
		}
		rc.Proxy = http.ProxyURL(proxy)
	}
	if e := cred.Exec; e != nil {
		if allowExec == nil || !allowExec(e.Command) {
			return nil, rutter.Errorf(rutter.CodeForbidden, "credential plugin %q is not one that the operator allows", e.Command)
		}
		rc.ExecProvider = &api.ExecConfig{Command: e.Command, Args: e.Args, APIVersion: e.APIVersion, InstallHint: e.InstallHint,
			InteractiveMode: api.NeverExecInteractiveMode}
		for k, v := range e.Env {
			rc.ExecProvider.Env = append(rc.ExecProvider.Env, api.ExecEnvVar{Name: k, Value: v})
		}
	}
	return rc, nil
}

// link is how a member is reached: a client of its own, so that nothing it
// does is felt by another member and all of it can be closed.
type link struct {
	client *http.Client
	base   string
	pool   *http.Transport // nil when the configuration brought its own
}

// newLink builds the link; nothing is dialled yet.
func newLink(rc *rest.Config, userAgent string) (*link, error) {
	rc = rest.CopyConfig(rc)
	rc.UserAgent = userAgent
	rc.ContentConfig = rest.ContentConfig{}
	base, _, err := rest.DefaultServerUrlFor(rc)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the server's URL cannot be used: %w", err)
	}
	tc, err := rc.TransportConfig()
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the credentials cannot be used: %w", err)
	}
	l := &link{base: strings.TrimSuffix(base.String(), "/")}
	rt := tc.Transport
	if rt == nil {
		if l.pool, err = newPool(tc); err != nil {
			return nil, err
		}
		rt = l.pool
	}
	if rt, err = transport.HTTPWrappersForConfig(tc, rt); err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "the credentials cannot be used: %w", err)
	}
	l.client = &http.Client{Transport: rt, CheckRedirect: noRedirect}
	return l, nil
}

// noRedirect keeps the login from being carried to wherever a server points.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func newPool(tc *transport.Config) (*http.Transport, error) {
	tlsConfig, err := transport.TLSConfigFor(tc)
	if err != nil {
		return nil, rutter.Errorf(rutter.CodeInvalid, "config.tlsClientConfig cannot be used: %w", err)
	}
	dialer := &net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: pingAfter, Interval: pingTimeout, Count: 3}}
	pool := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: dialTimeout,
		MaxIdleConnsPerHost: 32, IdleConnTimeout: idleTimeout, DisableCompression: tc.DisableCompression, ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
	if tc.Proxy != nil {
		pool.Proxy = tc.Proxy
	}
	if tc.DialHolder != nil {
		pool.DialContext = tc.DialHolder.Dial
	}
	return pool, nil
}

// drop gives up connections that nobody uses.
func (l *link) drop() {
	if l.pool != nil {
		l.pool.CloseIdleConnections()
	}
}
