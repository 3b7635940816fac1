// Package records implements the small stores on PostgreSQL: users, keys, settings, sealed data
// keys, answers, feedback, the egress ledger, and the durable queue with webhooks and triggers.
package records

import (
	"time"

	"deckhand/internal/store/postgres/pg"
)

// Store implements the small stores of store.Backend.
type Store struct {
	DB *pg.DB
	// Clock is the clock of this server; nil means time.Now.
	Clock func() time.Time
}
