package remote

import (
	"context"
	"net"
	"net/netip"
	"time"

	"github.com/rutterhq/rutter"
)

// refused are addresses that no repository has: they reach only the machine's
// own link, and with it the metadata services of clouds, which hand out
// identities to who asks from the right place.
var refused = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"),     // link-local: the metadata service of nearly all
	netip.MustParsePrefix("fe80::/10"),          // link-local
	netip.MustParsePrefix("fd00:ec2::/32"),      // metadata of AWS over IPv6
	netip.MustParsePrefix("fd20:ce::/32"),       // metadata of Google over IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // metadata of Alibaba
	netip.MustParsePrefix("168.63.129.16/32"),   // the host of an Azure machine
	netip.MustParsePrefix("192.0.0.192/32"),     // metadata of Oracle
	netip.MustParsePrefix("0.0.0.0/8"),          // reads as this machine
	netip.MustParsePrefix("::/128"),             // likewise
	netip.MustParsePrefix("224.0.0.0/4"),        // multicast
	netip.MustParsePrefix("ff00::/8"),           // multicast
	netip.MustParsePrefix("255.255.255.255/32"), // broadcast
}

// embedding are prefixes of IPv6 within which an IPv4 address lies, with the
// byte that it begins at.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// Refuses tells of an address that must not be connected to: one of the machine's
// own link or of a metadata service, also where IPv6 has IPv4 within it.
func Refuses(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, p := range refused {
		if p.Contains(ip) {
			return true
		}
	}
	if !ip.Is6() || ip == netip.IPv6Loopback() {
		return false
	}
	for _, e := range embedding {
		if e.prefix.Contains(ip) {
			b := ip.As16()
			return Refuses(netip.AddrFrom4([4]byte(b[e.at : e.at+4])))
		}
	}
	return false
}

// dial connects to what a name was resolved to, after looking at it: checking
// the name first and connecting later would leave time for another answer.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second, Control: Guard}
	return d.DialContext(ctx, network, address) //nolint:wrapcheck // *net.OpError says what was dialled
}

func checkDial(address string) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return rutter.Errorf(rutter.CodeForbidden, "connecting to %q is refused: it is no address", address)
	}
	if Refuses(to.Addr()) {
		return rutter.Errorf(rutter.CodeForbidden, "connecting to %s is refused: it is an address of the link or of a metadata service", to.Addr())
	}
	return nil
}

// checkHost refuses a host before a proxy is asked to connect to it.
func checkHost(host string) error {
	if name := hostname(host); RefusesHost(name) {
		return rutter.Errorf(rutter.CodeForbidden, "connecting to %s is refused: it is an address of the link or of a metadata service", name)
	}
	return nil
}
