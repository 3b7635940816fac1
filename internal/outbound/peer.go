package outbound

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// CheckPeer checks a host, as HOST:PORT, that another program dials for the server, such as the registry of an image, which a container
// engine dials. Nothing is checked again when it is dialled, so all addresses of the host must be allowed, and a name without addresses is
// refused unless the policy names it.
func (p Policy) CheckPeer(ctx context.Context, address string) error {
	asked, err := split(address)
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(asked.Host); err == nil {
		return p.Check(asked, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", asked.Host)
	for _, addr := range addrs {
		if err := p.Check(asked, addr.Unmap()); err != nil { // the resolver returns IPv4 addresses in both forms
			return err
		}
	}
	if len(addrs) == 0 && !p.AllowAllPrivate && !p.allows(asked) {
		return fmt.Errorf("the host name %s cannot be resolved; to allow it, start the server with --allow-private %s", asked.Host, asked)
	}
	return nil
}
