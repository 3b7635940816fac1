package main

import (
	"context"
	"net/url"

	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/httpapi/forward"
	"deckhand/internal/outbound"
	"deckhand/internal/secret"
)

// forwarding returns how browsers reach ports of sandboxes.
func (c *serveCmd) forwarding(ctx context.Context, d *data, keyring *secret.Keyring) (forward.Forwarding, error) {
	var f forward.Forwarding
	public, err := url.Parse(c.PublicURL)
	if err != nil {
		return f, err
	}
	switch {
	case c.PortsDomain != "":
		f.Domain, f.Port = config.SplitDomain(c.PortsDomain)
		f.Scheme = "http"
		if c.TLSCert != "" || c.BehindProxy {
			f.Scheme = "https"
		}
		if c.PublicURL != "" {
			f.Scheme = public.Scheme
		}
		if f.Port == "" {
			f.Port = c.PublicPort(public)
		}
	case outbound.IsLoopback(c.Addr) && (c.PublicURL == "" || config.IsLocal(public.Hostname())):
		f.Domain = "localhost"
	default:
		return f, nil
	}
	f.Key, err = datadir.Key(ctx, d.db, keyring, "ports_key", "ports key")
	return f, err
}
