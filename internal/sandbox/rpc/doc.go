// Package rpc carries calls between the server and a runner over any stream.
//
// yamux cuts the stream into as many independent ones as there are calls, with
// flow control for each. A call is one of them: a request, data in either
// direction while it runs, and an answer or an error. Both ends may call.
//
// It is this small on purpose: the runner lives once in every sandbox, and an
// HTTP server alone would double what it takes up in memory.
package rpc
