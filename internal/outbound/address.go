package outbound

import "net/netip"

// kind is what an address is, as far as dialling it is concerned.
type kind int

const (
	public  kind = iota // always allowed
	private             // only where the policy allows it
	never               // link-local and cloud metadata: credentials for the machine itself, never a service to call
)

// special are the ranges that are not the public internet, with the words for an error. The first that matches counts.
// They follow the IANA special-purpose address registries.
var special = []struct {
	prefix netip.Prefix
	kind   kind
	name   string
}{
	{netip.MustParsePrefix("169.254.0.0/16"), never, "link-local and cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), never, "cloud metadata"}, // Alibaba
	{netip.MustParsePrefix("168.63.129.16/32"), never, "cloud metadata"},   // Azure: looks public, answers inside only
	{netip.MustParsePrefix("fe80::/10"), never, "link-local"},
	{netip.MustParsePrefix("fd00:ec2::/32"), never, "cloud metadata"},    // AWS: metadata is ::254, DNS and time beside it
	{netip.MustParsePrefix("fd20:ce::254/128"), never, "cloud metadata"}, // Google

	{netip.MustParsePrefix("0.0.0.0/8"), private, "this host"},
	{netip.MustParsePrefix("127.0.0.0/8"), private, "loopback"},
	{netip.MustParsePrefix("10.0.0.0/8"), private, "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), private, "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), private, "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), private, "carrier-grade NAT"},
	{netip.MustParsePrefix("192.0.0.0/24"), private, "protocol assignment"},
	{netip.MustParsePrefix("192.0.2.0/24"), private, "documentation"},
	{netip.MustParsePrefix("198.51.100.0/24"), private, "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), private, "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), private, "6to4 relay"},
	{netip.MustParsePrefix("198.18.0.0/15"), private, "benchmarking"},
	{netip.MustParsePrefix("224.0.0.0/4"), private, "multicast"},
	{netip.MustParsePrefix("240.0.0.0/4"), private, "reserved"},

	{netip.MustParsePrefix("::1/128"), private, "loopback"},
	{netip.MustParsePrefix("::/128"), private, "this host"},
	{netip.MustParsePrefix("::ffff:0:0/96"), private, "IPv4-mapped"},
	{compatible, private, "IPv4-compatible"},
	{nat64, private, "NAT64"},
	{localNAT64, private, "NAT64"},
	{netip.MustParsePrefix("fc00::/7"), private, "unique local"},
	{netip.MustParsePrefix("ff00::/8"), private, "multicast"},
	{teredo, private, "Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), private, "benchmarking"},
	{netip.MustParsePrefix("2001::/23"), private, "protocol assignment"},
	{netip.MustParsePrefix("2001:db8::/32"), private, "documentation"},
	{netip.MustParsePrefix("3fff::/20"), private, "documentation"},
	{sixToFour, private, "6to4"},
}

var (
	// global is the only part of IPv6 from which public addresses are given out.
	global = netip.MustParsePrefix("2000::/3")

	// These carry an IPv4 address inside.
	compatible = netip.MustParsePrefix("::/96")
	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
)

// classify says what an address is, and the words for it. An IPv6 address that carries an IPv4 one inside is never
// public, and is as forbidden as the one inside.
func classify(addr netip.Addr) (kind, string) {
	addr = addr.WithZone("")
	if !addr.IsValid() {
		return never, "invalid"
	}
	if inner, ok := embedded(addr); ok {
		if k, name := classify(inner); k != public {
			return k, name
		}
	}
	for _, s := range special {
		if s.prefix.Contains(addr) {
			return s.kind, s.name
		}
	}
	if addr.Is6() && !global.Contains(addr) {
		return private, "reserved"
	}
	return public, "public"
}

// embedded is the IPv4 address that a gateway or the kernel would take out of an IPv6 one.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if addr.Is4() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	last := netip.AddrFrom4([4]byte(b[12:]))
	switch {
	case addr.Is4In6():
		return addr.Unmap(), true
	case nat64.Contains(addr), localNAT64.Contains(addr):
		return last, true
	case compatible.Contains(addr) && addr != netip.IPv6Loopback() && addr != netip.IPv6Unspecified():
		return last, true
	case sixToFour.Contains(addr):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case teredo.Contains(addr): // Teredo writes it inverted
		return netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]}), true
	}
	return netip.Addr{}, false
}
