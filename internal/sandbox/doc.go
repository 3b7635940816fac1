// Package sandbox is the port for sandboxes, in which the commands, files and stdio MCP
// servers of a conversation run.
//
// A Driver creates sandboxes (with Linux namespaces or a container engine) and finds them
// again by a Handle. The runner, a small separate program, runs in each of them; a
// Sandbox is the connection to it. Every operation in a sandbox is a method here and a
// handler in the runner, so a driver only provides a place and a connection.
package sandbox
