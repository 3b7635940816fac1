package httpapi

import (
	"context"

	"deckhand/api"
	"deckhand/internal/v0"
)

const aboutWebHosts = "Each port that something in the sandbox listens on is served under a name of its own, so that its pages share nothing with this server's. " +
	"Whoever knows such an address can use that port, without a key, until the conversation is deleted. HTTP and WebSockets are carried. Empty while the sandbox does not run; asking starts nothing. With a legacy front end the two ports that the agent is told to use are listed ahead of time."

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
	if d.FrontEnd != nil { // it asks once, before anything listens, and then tries what it was told
		found = append(found, v0.AppPorts(id)...)
	}
	for _, port := range found {
		d.labels.put(d.Forwarding.label(id, port), id)
		out.Hosts[d.Forwarding.address(c.http, id, port)] = port
	}
	return out, err
}
