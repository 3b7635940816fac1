package main

// slowest are the packages that take longest, by the end of their path, in the
// order in which they start.
var slowest = []string{
	"cmd/deckhand",
	"internal/sandbox/local",
	"internal/sandbox/docker",
	"internal/httpapi",
	"internal/workspace",
	"internal/agent/sim",
	"internal/tool/browse",
	"internal/store/sqlite",
	"internal/store/postgres",
	"internal/sandbox/runner/shell",
	"internal/session",
	"internal/trigger",
	"internal/live",
	"internal/sandbox/egress",
	"internal/sandbox/host",
	"internal/checkout",
	"internal/socketio",
	"internal/sandbox/runner/mcp",
	"internal/agent",
	"internal/sandbox/runner/gitview",
	"internal/tool/mcp",
}

// long are the packages that the short round leaves out: nearly all their tests start
// sandboxes or servers, and linking them takes longer than the tests that would be left.
var long = []string{
	"bench",
	"internal/sandbox/docker",
	"internal/sandbox/host",
	"internal/sandbox/local",
	"internal/workspace",
}

// plain are the packages that make test runs without the race detector. Most of
// what cmd/deckhand tests is the built program in processes of its own, in which there
// is none either; the packages that it is made of are tested with it, and make soak
// tests this one with it too. internal/cli/chat lets the drawing library panic, which then
// closes its input while it reads from it.
var plain = []string{"cmd/deckhand", "internal/cli/chat"}
