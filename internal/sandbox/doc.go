// Package sandbox is the hands: where a conversation's commands, files and
// stdio tool servers live.
//
// A Driver makes sandboxes (local namespaces, a container engine) and finds
// them again by a Handle. Inside each runs the runner, a small program of its
// own; a Sandbox is the connection to it. Everything that can be done in a
// sandbox is a method here and an operation there, so a driver only has to
// provide a place and a connection.
package sandbox
