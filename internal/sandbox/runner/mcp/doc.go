// Package mcp hosts the stdio tool servers of a sandbox: it starts them, asks
// for their tools, calls them, and starts them again when they have died.
//
// It speaks the Model Context Protocol itself, as far as tools need it: one
// JSON-RPC message per line. The official SDK would bring an HTTP stack along,
// which the runner, living once in every sandbox, has no room for.
//
// From the outside in: Host has the operations and remembers what was called
// under which id; a server is a name with the words it is started with, and
// outlives its processes; a session is one run of it, from the handshake to its
// end; a process is the program with its three pipes.
package mcp
