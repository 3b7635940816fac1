package main

// slowest are the packages that take longest, by the end of their path, in the
// order in which they start.
var slowest = []string{
	"cmd/deckhand",
	"internal/sandbox/local",
	"internal/sandbox/docker",
	"internal/httpapi",
	"internal/agent/sim",
	"internal/tool/browse",
	"internal/store/sqlite",
	"internal/sandbox/runner/shell",
	"internal/session",
	"internal/live",
	"internal/agent",
}
