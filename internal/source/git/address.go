package git

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rutterhq/rutter"
)

// Link-local addresses are where clouds hand the keys of a machine to whoever
// asks from it. No repository lives there; the last two are the same services
// by other numbers.
var forbiddenNets = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::254/128"), netip.MustParsePrefix("100.100.100.200/32"),
}

// forbiddenHosts are their names.
var forbiddenHosts = []string{"metadata.google.internal", "instance-data.ec2.internal"}

// checkHost refuses a host that is written as a link-local address, in any of
// the spellings that the C library takes for one. What a name resolves to is
// git's to find out; where this package connects itself, dialGuard looks too.
func checkHost(hostname string) bool {
	hostname = strings.TrimSuffix(strings.ToLower(hostname), ".")
	if slices.Contains(forbiddenHosts, hostname) {
		return false
	}
	addr, ok := literal(hostname)
	return !ok || allowedAddr(addr)
}

func allowedAddr(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	return !slices.ContainsFunc(forbiddenNets, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// literal reads an IP address, also as inet_aton does: fewer than four parts,
// of which the last fills up the rest, in decimal, octal or hexadecimal.
func literal(host string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, true
	}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		n, err := strconv.ParseUint(part, 0, 64)
		if err != nil || n >= 1<<bits {
			return netip.Addr{}, false
		}
		value = value<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// dialGuard is the Control of a net.Dialer: it sees the address that a name
// turned out to be.
func dialGuard(_, address string, _ syscall.RawConn) error {
	if ap, err := netip.ParseAddrPort(address); err == nil && !allowedAddr(ap.Addr()) {
		return rutter.Errorf(rutter.CodeForbidden, "it leads to the link-local address %s, where no repository is", ap.Addr())
	}
	return nil
}
