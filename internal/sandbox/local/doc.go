// Package local runs sandboxes on this machine in Linux namespaces, without a daemon: it
// starts the runner in new namespaces and detaches from it.
//
// A sandbox is a directory with its workspace, its changes to the system, and a socket of
// its runner. The runner is not a child of the server, so it outlives it; a new server
// finds it by the directory. Package box is the inside.
//
// A server that runs as root gives each sandbox its own range of users and maps the
// owners of the system's files to it, so that software can be installed inside. A server
// that runs as an unprivileged user has only that user; then the system is read-only
// inside.
package local
