//go:build linux

// Package people is the load of a torture run: simulated users that talk to the server over
// HTTP, repeat unacknowledged requests, and record what they observe for the checker.
package people
