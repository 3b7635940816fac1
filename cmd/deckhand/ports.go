package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/httpapi"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
)

var domainForm = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// checkPortsDomain refuses what cannot have names below it.
func (c *serveCmd) checkPortsDomain() error {
	if c.PortsDomain == "" {
		return nil
	}
	name, port := c.portsDomain()
	if _, err := strconv.ParseUint(port, 10, 16); port != "" && err != nil || !domainForm.MatchString(name) || len(name) > 190 { // the name of a port takes 35 characters before it
		return errors.New("--ports-domain must be a host name with an optional port, such as ports.example.org or ports.example.org:8443")
	}
	for _, own := range c.Hosts() {
		if strings.EqualFold(strings.TrimSuffix(own, "."), name) {
			return errors.New("--ports-domain must differ from the server's host name; otherwise programs in a sandbox could set cookies for this server")
		}
	}
	return nil
}

// portsDomain is the name, and the port if one is given.
func (c *serveCmd) portsDomain() (name, port string) {
	name = strings.ToLower(strings.TrimSuffix(c.PortsDomain, "."))
	if host, at, err := net.SplitHostPort(name); err == nil {
		name, port = host, at
	}
	return name, port
}

// forwarding says how browsers reach what listens in sandboxes.
func (c *serveCmd) forwarding(ctx context.Context, d *data, keyring *secret.Keyring) (httpapi.Forwarding, error) {
	var f httpapi.Forwarding
	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return f, err
	}
	switch {
	case c.PortsDomain != "":
		f.Domain, f.Port = c.portsDomain()
		f.Scheme = "http"
		if c.TLSCert != "" || c.BehindProxy {
			f.Scheme = "https"
		}
		if c.PublicURL != "" {
			f.Scheme = public.Scheme
		}
		if f.Port == "" {
			f.Port = c.publicPort(public)
		}
	case outbound.IsLoopback(c.Addr) && (c.PublicURL == "" || config.IsLocal(public.Hostname())):
		f.Domain = "localhost"
	default:
		return f, nil
	}
	f.Key, err = datadir.Key(ctx, d.db, keyring, "ports_key", "ports key")
	return f, err
}

// publicPort is the port by which people reach the server, "" if it goes without saying.
func (c *serveCmd) publicPort(public *url.URL) string {
	if c.PublicURL != "" {
		return public.Port()
	}
	if c.BehindProxy {
		return ""
	}
	_, port, _ := net.SplitHostPort(c.Addr)
	return port
}
