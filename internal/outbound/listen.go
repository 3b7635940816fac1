package outbound

import (
	"net"
	"net/netip"
	"strings"
)

// IsLoopback says whether a server that listens on this HOST:PORT can be reached from its own machine only. It reads
// the host as an address or as the name localhost, and takes nothing else on trust: names that begin like an address,
// short, octal and hexadecimal spellings, and an empty host, which means every interface, are all not loopback.
func IsLoopback(listenAddr string) bool {
	host, _, err := net.SplitHostPort(listenAddr)
	if err != nil {
		return false
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// IsPublicBind says whether other machines may be able to reach a server that listens on this HOST:PORT. In doubt they
// are.
func IsPublicBind(listenAddr string) bool { return !IsLoopback(listenAddr) }
