//go:build linux

// Torture runs the real program with real sandboxes under load, breaks its processes, disk,
// network and model by a seeded schedule, and checks from outside that every promise held.
// docs/testing.md says how to use it, decision 65 how it is built.
package main
