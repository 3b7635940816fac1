// Package records implements the small stores on PostgreSQL: users, keys, settings, sealed data
// keys, answers, feedback, the egress ledger, and the durable queue with webhooks and triggers.
package records

import "deckhand/internal/store/postgres/pg"

// Store implements the small stores of store.Backend.
type Store struct{ DB *pg.DB }
