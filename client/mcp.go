package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// ToolServers says where the tool servers of a conversation stand.
func (c *Client) ToolServers(ctx context.Context, id string) ([]api.MCPServerStatus, error) {
	out, err := call[api.MCPServers](ctx, c, http.MethodGet, item(id)+"/mcp", nil)
	return out.Servers, err
}

// TestToolServers tries tool servers out; nil tries those in the settings.
func (c *Client) TestToolServers(ctx context.Context, in *api.MCPConfig) ([]api.MCPServerStatus, error) {
	var body any
	if in != nil { // the lists are not nullable
		body = api.MCPConfig{SSEServers: append([]api.MCPServer{}, in.SSEServers...), StdioServers: append([]api.StdioServer{}, in.StdioServers...),
			SHTTPServers: append([]api.MCPServer{}, in.SHTTPServers...)}
	}
	out, err := call[api.MCPServers](ctx, c, http.MethodPost, "/api/settings/test-mcp", body)
	return out.Servers, err
}
