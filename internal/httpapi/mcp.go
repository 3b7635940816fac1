package httpapi

import (
	"context"

	"deckhand/api"
)

const aboutMCP = "Servers are started when the agent first needs them. Before the first turn the list may be empty or contain stopped servers."

// getMCP says where the tool servers of a conversation stand.
func getMCP(d *Door, ctx context.Context, c *call, p one, _ none) (api.MCPServers, error) {
	out := api.MCPServers{Servers: []api.MCPServerStatus{}}
	row, err := d.row(ctx, c, p.ID)
	if err != nil || d.MCPStates == nil {
		return out, err
	}
	states, err := d.MCPStates(ctx, row.Owner, row.ID)
	out.Servers = append(out.Servers, states...)
	return out, err
}
