//go:build linux

// Torture runs the program with real sandboxes under load, injects faults into its processes,
// disk, network and model on a seeded schedule, and checks its guarantees from outside.
// docs/testing.md describes its use, and decision 65 its design.
package main
