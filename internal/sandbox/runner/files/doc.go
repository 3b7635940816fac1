// Package files does what is asked of the files of a sandbox: look, read,
// write, remove, pack, measure and watch.
//
// The same code runs in the runner and, over the workspace of a sandbox that
// does not run, in the server. There everything it finds was made by somebody
// else and may change while it looks. So it never leaves the folder it was
// given, never waits for a pipe or a device, starts nothing, and what it keeps
// in memory does not grow with what it finds.
package files
