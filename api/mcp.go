package api

import "time"

// MCPServers is the response of GET …/mcp and of POST /api/settings/test-mcp.
type MCPServers struct {
	Servers []MCPServerStatus `json:"servers"`
}

// MCPServerStatus is the status of an MCP server.
type MCPServerStatus struct {
	Name    string    `json:"name" doc:"Configured name, or a name derived from the host."`
	Kind    string    `json:"kind" enum:"sse,shttp,stdio"`
	Address string    `json:"address" doc:"URL without user, password and query, or command without arguments."`
	State   string    `json:"state" enum:"starting,ready,failed,stopped" doc:"State of the server. A stopped server is started when it is needed."`
	OK      bool      `json:"ok" doc:"Whether the tools of the server can be used."`
	Error   *string   `json:"error" doc:"Error message. A server that is ready can have one too."`
	Tools   []string  `json:"tools" doc:"Tools of the server, by the names shown to the model."`
	Since   time.Time `json:"since" doc:"Start of the current state."`
}
