// Package agent is the loop: told that a session grew, it claims the session,
// asks the model and records what came of it, until nothing is left to do.
//
// There is at most one goroutine per working session and none for an idle one.
// The loop shares nothing with the API but the session log: it is woken by
// session.Observer, decides by session's rules and is stopped by reading that
// the session was stopped.
package agent
