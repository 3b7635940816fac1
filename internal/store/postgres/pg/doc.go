// Package pg connects to PostgreSQL: a bounded pool of connections without state between
// transactions, statements with parameters, transactions with time limits, and the names of errors.
package pg
