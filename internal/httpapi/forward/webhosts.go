package forward

import (
	"context"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
	v0 "deckhand/internal/v0"
)

const aboutWebHosts = "Each open port in the sandbox is served under its own host name, isolated from this server's pages. " +
	"The URL works without a key, for HTTP and WebSockets, until the conversation is deleted: share it with care. The list is empty while the sandbox is not running; listing does not start it. With a legacy front end, the two ports that the agent is told to use are always listed."

// listWebHosts tells where a browser finds what listens in the sandbox.
func (d *Handlers) listWebHosts(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.WebHosts, error) {
	out := api.WebHosts{Hosts: map[string]int{}}
	id, err := d.WorkspaceOf(ctx, c, p.ID)
	if err != nil {
		return out, err
	}
	if d.Forwarding.address(c.HTTP, id, 1) == "" {
		out.Hint = "Ports are not served on this address. The operator can set a domain with --ports-domain. On the server's own machine, ports are served under localhost."
		return out, nil
	}
	found, err := d.Workspaces.Ports(ctx, id)
	if d.FrontEnd { // it asks once, before anything listens, and then tries what it was told
		found = append(found, v0.AppPorts(id)...)
	}
	for _, port := range found {
		d.labels.put(d.Forwarding.Label(id, port), id)
		out.Hosts[d.Forwarding.address(c.HTTP, id, port)] = port
	}
	return out, err
}
