// Package forward lets people reach what runs in a sandbox: its ports, each under a host
// name of its own, and terminals.
package forward
