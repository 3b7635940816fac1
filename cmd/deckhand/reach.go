package main

import (
	"net/netip"
	"net/url"
	"strings"

	"deckhand/internal/outbound"
)

// listenFlags say where the server can be reached, which decides what it may dial for its users.
type listenFlags struct {
	Addr         string   `name:"addr" env:"DECKHAND_ADDR" default:"127.0.0.1:3000" help:"Address to listen on. Addresses other than loopback need TLS or --behind-proxy."`
	BehindProxy  bool     `name:"behind-proxy" env:"DECKHAND_BEHIND_PROXY" help:"Allow a non-loopback --addr without TLS, because a reverse proxy terminates TLS."`
	PublicURL    string   `name:"public-url" env:"DECKHAND_PUBLIC_URL" placeholder:"URL" help:"Public URL of the server, such as https://deckhand.example.org, used in login links and pull requests. Its host is allowed, and its path may prefix requests. Default: the listen address."`
	AllowHost    []string `name:"allow-host" env:"DECKHAND_ALLOW_HOST" placeholder:"NAME" help:"Allowed host names of requests, in addition to localhost and IP addresses."`
	AllowPrivate string   `name:"allow-private" env:"DECKHAND_ALLOW_PRIVATE" placeholder:"HOST:PORT,…" help:"Private addresses the server may connect to for users. Default: all if the server listens on loopback, otherwise none."`
}

// reach is the policy for addresses that users choose: models, tool servers, webhooks, images and git hosts.
func (f listenFlags) reach() (outbound.Policy, error) {
	allow, err := outbound.ParseAllow(f.AllowPrivate)
	return outbound.Policy{AllowAllPrivate: f.localOnly(), Allow: allow}, err
}

// localOnly reports whether only this machine can reach the server. A server on loopback with a proxy in front of it serves
// other machines too: any flag that names such a setup counts.
func (f listenFlags) localOnly() bool {
	if !outbound.IsLoopback(f.Addr) || f.BehindProxy {
		return false
	}
	if u, err := url.Parse(f.PublicURL); f.PublicURL != "" && (err != nil || !isLocal(u.Hostname())) {
		return false
	}
	for _, name := range f.AllowHost {
		if !isLocal(name) {
			return false
		}
	}
	return true
}

// isLocal reports whether a host name or an address always means this machine.
func isLocal(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}
