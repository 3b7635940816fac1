// Package rpc carries calls between the server and a runner over any stream.
//
// yamux multiplexes the stream, with one stream and flow control for each call. A call is
// a request, data in either direction while it runs, and a response or an error. Both
// ends may call.
//
// A yamux stream can only be half-closed. That is not enough: an end that leaves in the
// middle of a call must be noticed by an end that does not read (because its buffer is
// full of unwanted data), and by one that writes (because there is no more room). So an
// end that abandons a call sends a gone frame on a separate stream.
//
// It is deliberately small: there is a runner in every sandbox, and an HTTP server alone
// would double its memory.
package rpc
