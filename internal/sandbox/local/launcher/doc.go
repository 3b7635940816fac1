// Package launcher starts runners in namespaces of their own.
//
// A process that is started with a user namespace of its own begins with a copy of the page tables of the one
// that starts it. For a server with much memory, making the copy, giving it up, and the faults of both sides cost more
// than all the rest of a start. So a server has runners started by a small process, which is the runner's own
// program and ends with the server. Where that cannot be had, the server starts them itself.
package launcher
