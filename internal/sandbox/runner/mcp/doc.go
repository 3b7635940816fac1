// Package mcp hosts the stdio MCP servers of a sandbox: it starts them, lists their
// tools, calls them, and restarts them when they have died.
//
// It implements the Model Context Protocol itself, as far as tools need it: one JSON-RPC
// message per line. The official SDK would add an HTTP stack, which is too large for the
// runner, because there is one in every sandbox.
//
// From the outside in: Host has the operations and remembers calls by ID; a server is a
// name with its command, and outlives its processes; a session is one run of it, from the
// handshake to its end; a process is the program with its three pipes.
package mcp
