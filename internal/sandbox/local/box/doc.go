// Package box is the inside of a local sandbox: what the runner does after it was started
// in new namespaces and before it serves its first call.
//
// The driver starts the runner and passes it a Setup, a few folders as mounts and a
// listening socket. Enter builds the file system of the sandbox, enters it, and drops all
// privileges that this needed. From then on, the process is the init process of its
// sandbox, with no more privileges than the processes it starts.
//
// Two folders are for the runner only: they are not part of the file system of the
// sandbox, and are only reachable through descriptors of the runner. Other processes
// cannot use these, because the runner cannot be traced or dumped.
package box
