package config

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"deckhand/internal/outbound"
)

// ListenFlags say where the server can be reached, which decides what it may dial for its users.
type ListenFlags struct {
	Addr         string   `name:"addr" env:"DECKHAND_ADDR" default:"127.0.0.1:3000" help:"Address to listen on. Addresses other than loopback need TLS or --behind-proxy."`
	BehindProxy  bool     `name:"behind-proxy" env:"DECKHAND_BEHIND_PROXY" help:"Allow a non-loopback --addr without TLS, because a reverse proxy terminates TLS."`
	PublicURL    string   `name:"public-url" env:"DECKHAND_PUBLIC_URL" placeholder:"URL" help:"Public URL of the server, such as https://deckhand.example.org, used in login links and pull requests. Its host is allowed, and its path may prefix requests. Default: the listen address."`
	AllowHost    []string `name:"allow-host" env:"DECKHAND_ALLOW_HOST" placeholder:"NAME" help:"Host names to accept in requests, in addition to localhost and IP addresses."`
	AllowPrivate string   `name:"allow-private" env:"DECKHAND_ALLOW_PRIVATE" placeholder:"HOST:PORT,…" help:"Private addresses the server may connect to for users. Default: all if the server listens on loopback, otherwise none."`
}

// Reach is the policy for addresses that users choose: models, tool servers, webhooks, images and git hosts.
func (f ListenFlags) Reach() (outbound.Policy, error) {
	allow, err := outbound.ParseAllow(f.AllowPrivate)
	return outbound.Policy{AllowAllPrivate: f.localOnly(), Allow: allow}, err
}

// localOnly reports whether only this machine can reach the server. A server on loopback with a proxy in front of it serves
// other machines too: any flag that names such a setup counts.
func (f ListenFlags) localOnly() bool {
	if !outbound.IsLoopback(f.Addr) || f.BehindProxy {
		return false
	}
	if u, err := url.Parse(f.PublicURL); f.PublicURL != "" && (err != nil || !IsLocal(u.Hostname())) {
		return false
	}
	for _, name := range f.AllowHost {
		if !IsLocal(name) {
			return false
		}
	}
	return true
}

// IsLocal reports whether a host name or an address always means this machine.
func IsLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// Hosts are the names this server answers to.
func (f ListenFlags) Hosts() []string {
	out := f.AllowHost
	if u, err := url.Parse(f.PublicURL); err == nil && u.Host != "" {
		out = append(out, u.Hostname())
	}
	if host, _, err := net.SplitHostPort(f.Addr); err == nil && host != "" {
		out = append(out, host)
	}
	return out
}

// Base is where people find this server: at the address they were given, or where it listens.
func (f ListenFlags) Base(addr net.Addr, tls bool) string {
	switch {
	case f.PublicURL != "":
		return strings.TrimRight(f.PublicURL, "/")
	case tls:
		return "https://" + reachable(addr)
	}
	return "http://" + reachable(addr)
}

// Local is where programs on this machine find the server: where it listens,
// unless only its public name is in its certificate.
func (f ListenFlags) Local(addr net.Addr, tls bool) string {
	if tls {
		return f.Base(addr, tls)
	}
	return "http://" + reachable(addr)
}

// reachable is an address one can open: a server that listens everywhere is also here.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return addr.String()
}

// ListenError explains why the server cannot listen on an address.
func ListenError(addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("cannot listen on %s: another program uses this port; stop it, or choose another address with --addr, such as 127.0.0.1:8080", addr)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("cannot listen on %s: permission denied; choose a port of 1024 or more with --addr", addr)
	}
	return fmt.Errorf("cannot listen on %s: %w; choose another address with --addr", addr, err)
}

// CheckListen returns an error if an address is invalid, or if keys would be sent over a network in clear text.
func (f ListenFlags) CheckListen(encrypted bool) error {
	_, port, err := net.SplitHostPort(f.Addr)
	if err != nil {
		return fmt.Errorf("--addr %q is not HOST:PORT", f.Addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("--addr %q: the port must be a number from 0 to 65535", f.Addr)
	}
	if err := f.checkHosts(); err != nil {
		return err
	}
	if _, err := f.Reach(); err != nil {
		return err
	}
	if f.PublicURL != "" {
		if u, err := url.Parse(f.PublicURL); err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New("--public-url must be an http or https URL without query and user")
		}
	}
	if outbound.IsPublicBind(f.Addr) && !encrypted && !f.BehindProxy {
		return fmt.Errorf("--addr %s is reachable from other machines, and keys would be sent unencrypted: use --tls-cert and --tls-key,"+
			" or --behind-proxy if a reverse proxy terminates TLS, or listen on 127.0.0.1", f.Addr)
	}
	return nil
}

var hostForm = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?$`)

// checkHosts returns an error for names that no request can have.
func (f ListenFlags) checkHosts() error {
	for _, name := range f.AllowHost {
		if host, _, err := net.SplitHostPort(name); err == nil {
			name = host // the port has no effect
		}
		if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err != nil && !hostForm.MatchString(name) {
			return fmt.Errorf("--allow-host %q is not a host name such as deckhand.example.org", name)
		}
	}
	return nil
}

// CheckOrigins returns an error for values of --allow-origin that no browser sends.
func CheckOrigins(origins []string) error {
	for _, o := range origins {
		u, err := url.Parse(o)
		if o != "null" && (err != nil || u.Host == "" || o != strings.ToLower(u.Scheme+"://"+u.Host)) {
			return fmt.Errorf("--allow-origin %q is not an origin such as https://tools.example.org, in lower case and without a path", o)
		}
	}
	return nil
}

// CheckAddress returns an error if the value of a flag is neither empty nor HOST:PORT.
func CheckAddress(flag, addr string) error {
	if _, _, err := net.SplitHostPort(addr); addr != "" && err != nil {
		return fmt.Errorf("%s %q is not HOST:PORT", flag, addr)
	}
	return nil
}
