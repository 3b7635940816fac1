// Package box is the inside of a local sandbox: what the runner does between
// being started in fresh namespaces and serving its first call.
//
// The driver starts the runner and hands it a Setup, a few folders as mounts
// and a listening socket. Enter builds the file system the sandbox shall see,
// moves into it, and gives up every right that building it took. From then on
// the process is the first of its sandbox and can be no more than what it starts.
//
// Two folders are for the runner alone: they are no part of the tree inside,
// and only descriptors that the runner holds lead to them. What runs inside
// cannot follow those, because the runner cannot be traced or dumped.
package box
