// Package audit compares the parts of a SQLite file, for the doctor.
package audit

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/sqlite"
)

// Audit implements store.Audit.
type Audit struct{ DB *sqlite.DB }

var _ store.Audit = Audit{}

// first is the key before the first event of a session.
func first(n int64) int64 { return n << 32 }

// Sessions implements store.Audit.
func (a Audit) Sessions(ctx context.Context, after int64) (rows []session.Row, last int64, err error) {
	err = a.DB.Select(ctx, "SELECT n, id, owner, last, deleted FROM sessions WHERE n > ? ORDER BY n LIMIT ?", func(v []driver.Value) error {
		last = v[0].(int64)
		rows = append(rows, session.Row{ID: session.ID(v[1].(string)), Owner: v[2].(string), Last: v[3].(int64), Deleted: v[4].(int64) != 0})
		return nil
	}, after, int64(store.AuditPage))
	return rows, last, err
}

// Orphans implements store.Audit. It goes from log to log.
func (a Audit) Orphans(ctx context.Context) (orphans []int64, err error) {
	for at, more := int64(0), true; more && err == nil; {
		more = false
		err = a.DB.Select(ctx, `WITH RECURSIVE logs (n, i) AS (
			SELECT (SELECT id >> 32 FROM events WHERE id > ?1 ORDER BY id LIMIT 1), 1
			UNION ALL SELECT (SELECT id >> 32 FROM events WHERE id >= (logs.n + 1) << 32 ORDER BY id LIMIT 1), i + 1 FROM logs WHERE n IS NOT NULL AND i < ?2)
			SELECT n, EXISTS (SELECT 1 FROM sessions s WHERE s.n = logs.n) FROM logs WHERE n IS NOT NULL`, func(v []driver.Value) error {
			n := v[0].(int64)
			if at, more = first(n+1)-1, true; v[1].(int64) == 0 {
				orphans = append(orphans, n)
			}
			return nil
		}, at, int64(store.AuditPage))
	}
	return orphans, err
}

// OrphanEvents implements store.Audit.
func (a Audit) OrphanEvents(ctx context.Context, n int64) (all []store.OrphanEvents, err error) {
	err = a.DB.Select(ctx, "SELECT id, at, body FROM events WHERE id > ? AND id < ? ORDER BY id", func(v []driver.Value) error {
		body, _ := v[2].([]byte)
		all = append(all, store.OrphanEvents{Last: v[0].(int64) - first(n), At: time.UnixMicro(v[1].(int64)).UTC(), Body: string(packed.Opened(body))})
		return nil
	}, first(n), first(n+1))
	return all, err
}

// RemoveOrphan implements store.Audit.
func (a Audit) RemoveOrphan(ctx context.Context, n int64) error {
	return a.DB.Execute(ctx, "DELETE FROM events WHERE id > ? AND id < ? AND NOT EXISTS (SELECT 1 FROM sessions WHERE n = ?)", first(n), first(n+1), n)
}

// Reservations implements store.Audit.
func (a Audit) Reservations(ctx context.Context) (all []store.Reservation, err error) {
	err = a.DB.Select(ctx, "SELECT user, session, amount FROM reservations", func(v []driver.Value) error {
		all = append(all, store.Reservation{User: v[0].(string), Session: session.ID(v[1].(string)), Amount: session.Money(v[2].(int64))})
		return nil
	})
	return all, err
}

// SetReservation implements store.Audit.
func (a Audit) SetReservation(ctx context.Context, r store.Reservation) error {
	if r.Amount == 0 {
		return a.DB.Execute(ctx, "DELETE FROM reservations WHERE user = ? AND session = ?", r.User, string(r.Session))
	}
	return a.DB.Execute(ctx, "INSERT INTO reservations (user, session, amount) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET amount = excluded.amount",
		r.User, string(r.Session), int64(r.Amount))
}
