//go:build linux

// Package world runs the real parts of a torture run: servers, a database, a model and the
// network between them. Each part has its own network namespace, and all of them run in
// one process and mount namespace, so nothing outlives the run.
package world
