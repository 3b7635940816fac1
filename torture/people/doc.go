//go:build linux

// Package people is the load of a torture run: users who talk to the server over HTTP alone,
// repeat what was not acknowledged, and record what they saw for the checker.
package people
