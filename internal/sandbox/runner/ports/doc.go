// Package ports carries connections into and out of a sandbox.
//
// In: the server dials a port on which a process in the sandbox listens, and lists those
// ports. Out: programs in the sandbox connect to a proxy on their loopback; each
// connection is passed to the attached server, which decides where it may go. The data is
// not inspected here.
package ports
