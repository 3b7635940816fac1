// Package postgres implements the stores with a PostgreSQL database: session.Log,
// session.Index and session.Ledger, the durable queue, and the small stores for
// users, keys, settings, sealed data keys and answers. Its tables are in the schema
// "deckhand".
//
// Queued appends of all sessions are sent as a group, in one round trip and one
// transaction: plain steps in one statement, the others by a database function. A
// refused batch is a result, not an error, so the rest of the group is stored and
// no savepoints are needed. All other changes are short transactions of their own.
//
// One server at a time uses a database, which a lease ensures. Other commands may
// use it at the same time. Locks end with their transaction, and connections have
// no state between transactions (settings, prepared statements), so the connection
// may go through a pooler in transaction mode.
package postgres
