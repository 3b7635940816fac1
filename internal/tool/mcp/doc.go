// Package mcp offers the tools of foreign tool servers to the agent.
//
// Servers at an address are spoken to from this process, with the official
// library and an HTTP client that checks where it dials. Servers that are
// programs run inside the sandbox only, where the runner speaks to them.
//
// From the outside in: a Pool keeps a Set for each session; a Set is the servers
// of a session and the names their tools have for the model; a server is a
// small state machine that starts, fails, waits and starts again; a link is the
// connection behind it, of either kind.
//
// Nothing that a server says is trusted. What it sends is bounded in size, its
// words never make a call look harmless (a readOnlyHint does not make a tool
// ReadOnly), and keys go only to the address they were stored for.
package mcp
