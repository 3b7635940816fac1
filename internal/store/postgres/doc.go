// Package postgres keeps everything in a PostgreSQL database: session.Log,
// session.Index and session.Ledger, the durable queue, and the small stores for
// users, keys, settings, sealed data keys and answers. Its tables are in a schema
// of their own, "deckhand".
//
// Appends of all sessions that are waiting travel together: one statement calls a
// function of the database for each of them, which stores the batch or says why
// not. That is one round trip and one commit for the group, and a refusal undoes
// nothing, so there are no savepoints. Everything else is a short transaction of
// its own.
//
// Any number of processes may use the same database. What they must not do at the
// same time is decided by locks that end with the transaction. Nothing is kept in
// a connection between transactions: no settings, no prepared statements, no
// locks. A pooler that gives each transaction another connection may therefore
// stand in between.
package postgres
