// Package files serves the workspaces of conversations: lists, reads, writes, uploads and
// archives of files, changes of git, and the network policy of the sandbox.
package files
