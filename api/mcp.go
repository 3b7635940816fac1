package api

import "time"

// MCPServers is the answer of GET …/mcp and of POST /api/settings/test-mcp.
type MCPServers struct {
	Servers []MCPServerStatus `json:"servers"`
}

// MCPServerStatus says where a tool server stands.
type MCPServerStatus struct {
	Name    string    `json:"name" doc:"The name given, or one made of the host."`
	Kind    string    `json:"kind" enum:"sse,shttp,stdio"`
	Address string    `json:"address" doc:"The address without user, password and query, or the command without its arguments."`
	State   string    `json:"state" enum:"starting,ready,failed,stopped" doc:"A stopped one is started when it is needed."`
	OK      bool      `json:"ok" doc:"Whether its tools can be used."`
	Error   *string   `json:"error" doc:"What is wrong, as a sentence. One that is ready can have one too."`
	Tools   []string  `json:"tools" doc:"Its tools, by the names the model knows."`
	Since   time.Time `json:"since" doc:"When it came into this state."`
}
