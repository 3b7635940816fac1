// Package sqlite keeps everything in one SQLite file: session.Log, session.Index
// and session.Ledger, the durable queue, and the small stores for users, keys,
// settings, sealed data keys and answers.
//
// One goroutine writes. It takes whatever writes are waiting, runs them in one
// transaction, commits once and then answers all callers, so that durability
// costs one fsync per group and not one per write. Readers have connections of
// their own and never wait for it. Other processes may use the same file.
//
// Connections are used through the driver's own interface, without
// database/sql: statements are prepared once per connection, and a context
// costs no goroutine per statement. Every statement is short, so contexts are
// looked at between statements and not inside them.
package sqlite
