package client

import (
	"context"
	"net/http"

	"deckhand/api"
)

// ToolServers returns the status of the MCP servers of a conversation.
func (c *Client) ToolServers(ctx context.Context, id string) ([]api.MCPServerStatus, error) {
	out, err := call[api.MCPServers](ctx, c, http.MethodGet, item(id)+"/mcp", nil)
	return out.Servers, err
}

// TestToolServers tests MCP servers; nil tests those of the stored settings.
func (c *Client) TestToolServers(ctx context.Context, in *api.MCPConfig) ([]api.MCPServerStatus, error) {
	var body any
	if in != nil { // the lists are not nullable
		body = api.MCPConfig{SSEServers: append([]api.MCPServer{}, in.SSEServers...), StdioServers: append([]api.StdioServer{}, in.StdioServers...),
			SHTTPServers: append([]api.MCPServer{}, in.SHTTPServers...)}
	}
	out, err := call[api.MCPServers](ctx, c, http.MethodPost, "/api/settings/test-mcp", body)
	return out.Servers, err
}
