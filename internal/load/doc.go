// Package load puts load on a server and measures it: lean HTTP connections, users with
// keys of their own, turns of conversations, a server in a process of its own and a model
// that answers at once. deckhand bench and the benchmarks of the repository share it.
package load
