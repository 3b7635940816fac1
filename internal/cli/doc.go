// Package cli holds the commands that talk to a person at a terminal or to a
// script: those that are clients of a running server (list, logs, attach, open,
// new), and the interactive session of run. It reaches a server through its
// public API, and a server of its own through what LocalServer names.
package cli
