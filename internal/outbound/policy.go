// Package outbound is the only way the server itself dials out: to models, tool servers, webhooks and images, whose
// addresses users choose. Every connection is checked when it is made, against the address that is really dialled, so
// neither a name that resolves differently the second time nor a redirect gets past.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policy says which addresses that are not public may be dialled. The zero value allows none.
type Policy struct {
	// AllowAllPrivate allows all of them but link-local and cloud metadata. It is for a server that only its own machine
	// can reach, whose users could dial them anyway.
	AllowAllPrivate bool
	// Allow names those that are allowed in any case, as a URL names them: a name is not looked up to match an address.
	// Link-local and cloud metadata addresses stay forbidden, so that an allowed name cannot be pointed at them.
	Allow []HostPort
}

// HostPort is a name or an address, and a port, in the one spelling that ParseAllow gives them.
type HostPort struct {
	Host string
	Port uint16
}

func (h HostPort) String() string { return net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port))) }

// BlockedError says which host was refused, and what would permit it. Its text does not name the address that the host
// resolves to: users read it, and the private network is not theirs to map.
type BlockedError struct {
	Asked HostPort   // as the URL named it
	Addr  netip.Addr // what it resolved to; not part of the text
	Kind  string     // what is special about it, in words
	Never bool       // nothing permits it
}

// Forbidden tells callers that do not know of this package that trying again
// cannot help.
func (e *BlockedError) Forbidden() bool { return true }

func (e *BlockedError) Error() string {
	if e.Never {
		return fmt.Sprintf("refused to connect to %s: connections to %s addresses are never allowed", e.Asked.Host, e.Kind)
	}
	return fmt.Sprintf("refused to connect to %s, a %s address; to allow it, start the server with --allow-private %s", e.Asked.Host, e.Kind, e.Asked)
}

// Check decides whether addr may be dialled for a URL that named asked. The refusal is a *BlockedError.
func (p Policy) Check(asked HostPort, addr netip.Addr) error {
	k, name := classify(addr)
	if k == public || (k == private && (p.AllowAllPrivate || p.allows(asked))) {
		return nil
	}
	return &BlockedError{Asked: asked, Addr: addr, Kind: name, Never: k == never}
}

// CheckURL checks whether the host of a URL may be dialled, and returns a *BlockedError if not. A name that cannot be
// resolved now is accepted, because it is checked again when it is dialled.
func (p Policy) CheckURL(ctx context.Context, u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	asked, err := split(net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return err
	}
	if addr, err := netip.ParseAddr(asked.Host); err == nil {
		return p.Check(asked, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", asked.Host) // without addresses, nothing is refused
	for _, addr := range addrs {
		if err = p.Check(asked, addr); err == nil {
			return nil
		}
	}
	return err
}

// lookUpTimeout is how long CheckURL waits for the addresses of a name.
const lookUpTimeout = 3 * time.Second

func (p Policy) allows(asked HostPort) bool {
	asked.Host = spell(asked.Host)
	return slices.ContainsFunc(p.Allow, func(a HostPort) bool {
		return a.Port == asked.Port && spell(a.Host) == asked.Host
	})
}

// spell gives a host its one spelling: an address as netip prints it, a name in lower case without the final dot.
func spell(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// ParseAllow reads a list like "localhost:11434,10.0.0.5:8000,[fd12::1]:8000". An empty list is fine.
func ParseAllow(list string) ([]HostPort, error) {
	var allow []HostPort
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		h, err := parseHostPort(item)
		if err != nil {
			return nil, fmt.Errorf("--allow-private: %q: %w", item, err)
		}
		if !slices.Contains(allow, h) {
			allow = append(allow, h)
		}
	}
	return allow, nil
}

var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

func parseHostPort(item string) (HostPort, error) {
	host, portText, err := net.SplitHostPort(item)
	if err != nil {
		return HostPort{}, errors.New("must be HOST:PORT, with an IPv6 address in brackets and without scheme and path")
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return HostPort{}, errors.New("the port must be a number from 1 to 65535")
	}
	host = spell(host)
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return HostPort{}, errors.New("addresses with a zone are not supported")
		}
		if k, name := classify(addr); k == never {
			return HostPort{}, fmt.Errorf("connections to %s addresses are never allowed", name)
		}
		return HostPort{host, uint16(port)}, nil
	}
	if err := checkName(host); err != nil {
		return HostPort{}, err
	}
	return HostPort{host, uint16(port)}, nil
}

func checkName(host string) error {
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return errors.New("the host must be an IP address or a host name (internationalized names in xn-- form), without wildcards")
		}
	}
	// No top-level domain starts with a digit. This is an address in a spelling that others read differently than we do.
	if last := labels[len(labels)-1]; last[0] >= '0' && last[0] <= '9' {
		return errors.New("write the address in full, as four decimal numbers without leading zeros")
	}
	return nil
}
