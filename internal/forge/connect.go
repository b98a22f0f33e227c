package forge

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/rutterhq/rutter"
)

// refusedAddresses are those that no hosting service has: they reach only this machine's
// own link, and with it the metadata services of clouds, which hand out
// identities to who asks from the right place.
var refusedAddresses = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local: nearly all metadata services
	netip.MustParsePrefix("fe80::/10"),          // link-local
	netip.MustParsePrefix("fd00:ec2::/32"),      // metadata of AWS
	netip.MustParsePrefix("fd20:ce::/32"),       // metadata of Google
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // the host of an Azure machine
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata of Oracle
	netip.MustParsePrefix("0.0.0.0/8"),          // this machine by another name
	netip.MustParsePrefix("::/128"),             // likewise
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           // multicast
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
}

// carriers are prefixes of IPv6 that carry an IPv4 address from a byte on.
var carriers = []struct {
	prefix netip.Prefix
	from   int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

func isRefused(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, p := range refusedAddresses {
		if p.Contains(ip) {
			return true
		}
	}
	if !ip.Is6() || ip.IsLoopback() {
		return false
	}
	for _, c := range carriers {
		if c.prefix.Contains(ip) {
			b := ip.As16()
			return isRefused(netip.AddrFrom4([4]byte(b[c.from : c.from+4])))
		}
	}
	return false
}

// checkHost refuses an address that is written out, before a proxy is asked to
// connect to it.
func checkHost(host string) error {
	name := (&url.URL{Host: host}).Hostname()
	if ip, err := netip.ParseAddr(name); err == nil && isRefused(ip) {
		return rutter.Errorf(rutter.CodeForbidden, "connecting to %s is refused: it is an address of the link or of a metadata service", ip)
	}
	return nil
}

// checkDial refuses an address that a name was resolved to: looking at the name
// first and connecting later would leave time for another answer.
func checkDial(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || isRefused(to.Addr()) {
		return rutter.Errorf(rutter.CodeForbidden, "connecting to %s is refused: it is an address of the link or of a metadata service", quote(address))
	}
	return nil
}

// route is how a query connects. Those that trust the same authorities share
// connections, and nobody shares those of a query that trusts anybody.
func (c *Client) route(ca string, insecure bool) (*http.Client, error) {
	var roots *x509.CertPool
	key := "checked"
	switch {
	case insecure:
		key = "unchecked"
	case ca != "":
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(ca)) {
			return nil, rutter.Errorf(rutter.CodeInvalid, "caRef holds no certificate: write it as PEM")
		}
		key = digestOf(ca)
	case c.opts.RootCA != "":
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			roots = x509.NewCertPool()
		}
		if !roots.AppendCertsFromPEM([]byte(c.opts.RootCA)) {
			return nil, rutter.Errorf(rutter.CodeInvalid, "the operator's file of authorities holds no certificate: write it as PEM")
		}
	}
	return c.routes.Get(key, func() *http.Client { return newHTTP(roots, insecure) }), nil
}

func newHTTP(roots *x509.CertPool, insecure bool) *http.Client {
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: checkDial}
	return &http.Client{
		CheckRedirect: checkRedirect,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return dialer.DialContext(ctx, network, address)
			},
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, InsecureSkipVerify: insecure}, //nolint:gosec // only for a query that says so
			TLSHandshakeTimeout:    15 * time.Second,
			ResponseHeaderTimeout:  time.Minute,
			IdleConnTimeout:        30 * time.Second,
			MaxIdleConns:           64,
			MaxIdleConnsPerHost:    8,
			MaxResponseHeaderBytes: 256 << 10,
			ForceAttemptHTTP2:      true,
		},
	}
}

// checkRedirect follows within the host only: a renamed repository is found by
// its new name, but the login stays where it belongs, and a page to log in at
// is no answer. What was signed for one address is good for no other.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[0].URL
	switch {
	case req.URL.Scheme != from.Scheme || !strings.EqualFold(req.URL.Host, from.Host):
		return rutter.Errorf(rutter.CodeForbidden, "the server sends the request on to %s, where the login is not sent: correct api, or the login", quote(req.URL.Scheme+"://"+req.URL.Host))
	case via[0].Method != http.MethodGet:
		return rutter.Errorf(rutter.CodeUnavailable, "the server redirects a request that cannot be redirected: correct api")
	case len(via) > 3:
		return rutter.Errorf(rutter.CodeUnavailable, "the server redirects in circles")
	}
	return nil
}
