package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	dialTimeout      = 10 * time.Second
	maxRedirects     = 10
	maxHeaderBytes   = 1 << 20
	idleTimeout      = 90 * time.Second
	idleConnsPerHost = 128
)

// NewTransport is an HTTP transport that dials under the policy. It ignores proxies named in the environment: a proxy
// would dial for us, unchecked.
func NewTransport(p Policy) *http.Transport { return newTransport(p, nil) }

// NewClient is an HTTP client over NewTransport that follows at most 10 redirects and sends credentials only to the
// origin they were meant for. A timeout of 0 is none, for answers that stream.
func NewClient(p Policy, timeout time.Duration) *http.Client { return newClient(p, timeout, nil) }

// DialContext dials TCP under the policy, for protocols other than HTTP.
func (p Policy) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return dialer{policy: p}.DialContext(ctx, network, address)
}

func newTransport(p Policy, resolver *net.Resolver) *http.Transport {
	return &http.Transport{
		Proxy:                  nil,
		DialContext:            dialer{p, resolver}.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    dialTimeout,
		ExpectContinueTimeout:  time.Second,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    idleConnsPerHost,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

func newClient(p Policy, timeout time.Duration, resolver *net.Resolver) *http.Client {
	return &http.Client{Transport: newTransport(p, resolver), Timeout: timeout, CheckRedirect: checkRedirect}
}

// dialer checks every address that a name resolves to, after resolving and before connecting.
type dialer struct {
	policy   Policy
	resolver *net.Resolver // nil: the system's
}

func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6":
	default:
		return nil, fmt.Errorf("refused to dial over %s: only TCP is allowed", network)
	}
	asked, err := split(address)
	if err != nil {
		return nil, err
	}
	// The net package turns an IPv4-mapped address into the IPv4 one before we see it again, so the spelling itself is
	// checked here.
	if addr, err := netip.ParseAddr(asked.Host); err == nil {
		if err := d.policy.Check(asked, addr); err != nil {
			return nil, err
		}
	}
	// A dialer per connection, because Control is told the address but not the name that was asked for.
	nd := net.Dialer{
		Timeout:  dialTimeout,
		Resolver: d.resolver,
		Control:  func(_, resolved string, _ syscall.RawConn) error { return d.control(asked, resolved) },
	}
	c, err := nd.DialContext(ctx, network, address)
	if err != nil {
		return nil, withoutAddresses(err)
	}
	return conn{c}, nil
}

// control runs on the socket that is about to connect.
func (d dialer) control(asked HostPort, resolved string) error {
	addr, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("refused to connect to %s: %w", asked, err)
	}
	return d.policy.Check(asked, addr.Addr())
}

// split reads what is asked for. Names of services in place of port numbers are not accepted.
func split(address string) (HostPort, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return HostPort{}, fmt.Errorf("dial: %w", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return HostPort{}, errors.New("dial: the port must be a number from 1 to 65535")
	}
	if host == "" { // which the net package would take for this machine
		return HostPort{}, errors.New("dial: the host is missing")
	}
	return HostPort{Host: host, Port: uint16(port)}, nil
}

// harmless are the request headers that may follow a redirect to another origin. Go drops Authorization and cookies by
// itself, but cannot know in which header a model provider or a tool server wants its key. Referer is not harmless:
// some providers take the key in the query.
var harmless = map[string]bool{
	"Accept": true, "Accept-Language": true, "Content-Type": true, "Range": true, "User-Agent": true,
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	// A request that has left the first origin never counts as inside again: headers are copied from the first request
	// at every hop, so a chain that returns to the first origin must not get them either, because a foreign server
	// chose the URL.
	first := Origin(via[0].URL)
	left := Origin(req.URL) != first
	for _, r := range via[1:] {
		left = left || Origin(r.URL) != first
	}
	if left {
		for name := range req.Header {
			if !harmless[name] {
				delete(req.Header, name)
			}
		}
		req.URL.User = nil
	}
	return nil
}

// Origin returns the scheme, host and port of u in one spelling, so that two URLs have the same origin if the strings
// are equal. A key that was given for one origin is never sent to another.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
