// Package workspace manages each conversation's sandbox: it starts the sandbox on demand,
// reattaches to it after a server restart, records its state in the log, stops it with the
// conversation, and removes it when the conversation is deleted. The agent's tools and the
// API use the same Keeper, so that a conversation never has more than one sandbox. A
// workspace whose sandbox does not run is read without starting it.
package workspace
