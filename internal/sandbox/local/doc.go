// Package local runs sandboxes on this machine, in Linux namespaces, without a
// daemon: it starts the runner in namespaces of its own and lets go of it.
//
// A sandbox is a directory with its workspace, what it changed in the system,
// and a socket on which its runner listens. The runner is nobody's child in
// particular, so it outlives the server; a new server finds it by the
// directory. The package box has the inside.
//
// A server that is root gives each sandbox a range of users of its own and maps
// the owners of the system's files into it, so that software can be installed
// inside. A server that is an ordinary user does with that one user; then the
// system can be read inside, and not changed.
package local
