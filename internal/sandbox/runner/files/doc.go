// Package files implements the file operations of a sandbox: list, read, write, remove,
// archive, measure and watch.
//
// The same code runs in the runner and, for the workspace of a stopped sandbox, in the
// server. There, all contents are untrusted and may change at any time. So it never
// leaves its root folder, never blocks on a pipe or a device, starts no process, and its
// memory does not grow with the contents.
package files
