package remote

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// refusedHosts are the names of what refused has the addresses of.
var refusedHosts = []string{"metadata.google.internal", "instance-data.ec2.internal"}

// RefusesHost tells of a host, without a port, that must not be connected to: one
// that is written as a refused address, in any of the spellings that the C
// library takes for one, or as the name of a metadata service. What another name
// is resolved to is seen by Guard.
func RefusesHost(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if slices.Contains(refusedHosts, host) {
		return true
	}
	ip, ok := literal(host)
	return ok && Refuses(ip)
}

// Guard is the Control of a net.Dialer: it sees the address that a name turned
// out to be, and refuses those that no repository has.
func Guard(_, address string, _ syscall.RawConn) error { return checkDial(address) }

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
