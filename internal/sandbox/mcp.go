package sandbox

import (
	"context"
	"encoding/json"
	"time"
)

// MCPServer is a tool server that speaks over stdin and stdout.
type MCPServer struct {
	Name    string            `json:"name"`
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// MCPTool is a tool as its server describes it.
type MCPTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// MCPState is where a tool server stands.
type MCPState struct {
	Name    string `json:"name"`
	Running bool   `json:"running"`
	// Version is the protocol's, Server the name and version the server gave.
	Version string    `json:"version,omitempty"`
	Server  string    `json:"server,omitempty"`
	Tools   []MCPTool `json:"tools"`
	// Starts counts how often it was started; Exit is how it last ended.
	Starts int    `json:"starts"`
	Exit   string `json:"exit,omitempty"`
	// Stderr is the last of what it wrote there, for people.
	Stderr string `json:"stderr,omitempty"`
}

// MCPStart starts a tool server, or takes the one of that name that runs if it
// was started with the same words, and asks for its tools.
func (s *Sandbox) MCPStart(ctx context.Context, server MCPServer) (MCPState, error) {
	var st MCPState
	return st, s.call(ctx, "mcp/start", s.fence, server, &st)
}

// MCPCall is one call of a tool, idempotent by its ID as a Command is.
type MCPCall struct {
	ID      string          `json:"id"`
	Again   bool            `json:"again,omitempty"`
	Server  string          `json:"server"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args,omitempty"`
	Timeout time.Duration   `json:"timeout,omitempty"` // 0: until ctx ends
}

// MCPResult is the server's answer: the protocol's CallToolResult as it was
// sent, or Error when there was none (it died, it timed out, it knows no such
// tool). Lost as in Result.
type MCPResult struct {
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Lost   bool            `json:"lost,omitempty"`
}

// MCPCall calls a tool. A server that died is started again first.
func (s *Sandbox) MCPCall(ctx context.Context, c MCPCall) (MCPResult, error) {
	var r MCPResult
	c.Again = c.Again && !s.only
	return r, s.call(ctx, "mcp/call", s.fence, c, &r)
}

// MCPStates lists the tool servers.
func (s *Sandbox) MCPStates(ctx context.Context) ([]MCPState, error) {
	var out []MCPState
	return out, s.peer.Call(ctx, "mcp/states", 0, nil, &out)
}

// MCPStop ends a tool server: it closes its input, waits a moment, and kills it.
func (s *Sandbox) MCPStop(ctx context.Context, name string) error {
	return s.peer.Call(ctx, "mcp/stop", s.fence, idParam{name}, nil)
}
