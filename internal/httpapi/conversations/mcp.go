package conversations

import (
	"context"

	"deckhand/api"
	"deckhand/internal/httpapi/rest"
)

const aboutMCP = "Servers are started when the agent first needs them. Before the first turn the list may be empty or contain stopped servers."

// getMCP says where the tool servers of a conversation stand.
func (d *Handlers) getMCP(ctx context.Context, c *rest.Call, p rest.InConversation, _ rest.None) (api.MCPServers, error) {
	out := api.MCPServers{Servers: []api.MCPServerStatus{}}
	row, err := d.row(ctx, c, p.ID)
	if err != nil || d.MCPStates == nil {
		return out, err
	}
	states, err := d.MCPStates(ctx, row.Owner, row.ID)
	out.Servers = append(out.Servers, states...)
	return out, err
}
