package httpapi

import (
	"context"

	"deckhand/api"
)

const aboutWebHosts = "Each port that something in the sandbox listens on is served under a name of its own, so that its pages share nothing with this server's. " +
	"Whoever knows such an address can use that port, without a key, until the conversation is deleted. HTTP and WebSockets are carried. Empty while the sandbox does not run; asking starts nothing."

// listWebHosts tells where a browser finds what listens in the sandbox.
func listWebHosts(d *Door, ctx context.Context, c *call, p one, _ none) (api.WebHosts, error) {
	out := api.WebHosts{Hosts: map[string]int{}}
	id, err := d.workspaceOf(ctx, c, p.ID)
	if err != nil {
		return out, err
	}
	if d.Forwarding.address(c.http, id, 1) == "" {
		out.Hint = "Ports are not served under this address. The operator can give them a domain with --ports-domain; from the server's own machine they are below localhost."
		return out, nil
	}
	found, err := d.Workspaces.Ports(ctx, id)
	for _, port := range found {
		d.labels.put(d.Forwarding.label(id, port), id)
		out.Hosts[d.Forwarding.address(c.http, id, port)] = port
	}
	return out, err
}
