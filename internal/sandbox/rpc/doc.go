// Package rpc carries calls between the server and a runner over any stream.
//
// yamux cuts the stream into as many independent ones as there are calls, with
// flow control for each. A call is one of them: a request, data in either
// direction while it runs, and an answer or an error. Both ends may call.
//
// A stream of yamux can say "no more from me" and nothing else. That is not
// enough: who goes away in the middle of a call must be noticed by an end that
// does not read (its buffer is full of data that nobody wants), and by one that
// writes (nobody makes room for it any more). So an end that lets go of a call
// before it is over says so beside it, in a stream of its own: a gone frame.
//
// It is this small on purpose: the runner lives once in every sandbox, and an
// HTTP server alone would double what it takes up in memory.
package rpc
