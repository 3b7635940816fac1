// Package ports carries connections into and out of a sandbox.
//
// In: the server dials a port that something in the sandbox listens on, and
// lists those ports. Out: programs in the sandbox connect to a proxy on their
// loopback; each connection is handed to the server that is attached, which
// decides where it may lead. Nothing here looks at what is carried.
package ports
