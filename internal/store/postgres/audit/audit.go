// Package audit compares the parts of a PostgreSQL database, for the doctor.
package audit

import (
	"context"

	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/postgres/pg"
)

// Audit implements store.Audit.
type Audit struct{ DB *postgres.DB }

var _ store.Audit = Audit{}

// Sessions implements store.Audit.
func (a Audit) Sessions(ctx context.Context, after int64) (rows []session.Row, last int64, err error) {
	err = a.DB.Base().View(ctx, func(c *pg.Conn) error {
		rows = nil
		return c.Query("SELECT n, id, owner, last, deleted FROM deckhand.sessions WHERE n > $1 ORDER BY n LIMIT $2", func(v []any) error {
			last = pg.Number(v[0])
			rows = append(rows, session.Row{ID: session.ID(pg.Text(v[1])), Owner: pg.Text(v[2]), Last: pg.Number(v[3]), Deleted: pg.Truth(v[4])})
			return nil
		}, after, int64(store.AuditPage))
	})
	return rows, last, err
}

// Orphans implements store.Audit. It goes from log to log.
func (a Audit) Orphans(ctx context.Context) (orphans []int64, err error) {
	for at, more := int64(0), true; more && err == nil; {
		err = a.DB.Base().View(ctx, func(c *pg.Conn) error {
			more = false
			return c.Query(`WITH RECURSIVE logs (n, i) AS (
				SELECT (SELECT min(e.n) FROM deckhand.events e WHERE e.n > $1), 1::bigint
				UNION ALL SELECT (SELECT min(e.n) FROM deckhand.events e WHERE e.n > logs.n), i + 1 FROM logs WHERE n IS NOT NULL AND i < $2)
				SELECT n, EXISTS (SELECT FROM deckhand.sessions s WHERE s.n = logs.n) FROM logs WHERE n IS NOT NULL`, func(v []any) error {
				if at, more = pg.Number(v[0]), true; !pg.Truth(v[1]) {
					orphans = append(orphans, at)
				}
				return nil
			}, at, int64(store.AuditPage))
		})
	}
	return orphans, err
}

// OrphanEvents implements store.Audit.
func (a Audit) OrphanEvents(ctx context.Context, n int64) (all []store.OrphanEvents, err error) {
	err = a.DB.Base().View(ctx, func(c *pg.Conn) error {
		all = nil
		return c.Query("SELECT last, at, body FROM deckhand.events WHERE n = $1 ORDER BY last", func(v []any) error {
			all = append(all, store.OrphanEvents{Last: pg.Number(v[0]), At: pg.Moment(v[1]), Body: string(packed.Opened(pg.Bytes(v[2])))})
			return nil
		}, n)
	})
	return all, err
}

// RemoveOrphan implements store.Audit.
func (a Audit) RemoveOrphan(ctx context.Context, n int64) error {
	return a.DB.UpdateExclusive(ctx, func(c *pg.Conn) error {
		_, err := c.Exec("DELETE FROM deckhand.events WHERE n = $1 AND NOT EXISTS (SELECT FROM deckhand.sessions WHERE n = $1)", n)
		return err
	})
}

// Reservations implements store.Audit.
func (a Audit) Reservations(ctx context.Context) (all []store.Reservation, err error) {
	err = a.DB.Base().View(ctx, func(c *pg.Conn) error {
		all = nil
		return c.Query("SELECT username, session, amount FROM deckhand.reservations", func(v []any) error {
			all = append(all, store.Reservation{User: pg.Text(v[0]), Session: session.ID(pg.Text(v[1])), Amount: session.Money(pg.Number(v[2]))})
			return nil
		})
	})
	return all, err
}

// SetReservation implements store.Audit.
func (a Audit) SetReservation(ctx context.Context, r store.Reservation) error {
	return a.DB.UpdateExclusive(ctx, func(c *pg.Conn) error {
		if r.Amount == 0 {
			_, err := c.Exec("DELETE FROM deckhand.reservations WHERE username = $1 AND session = $2", r.User, string(r.Session))
			return err
		}
		_, err := c.Exec(`INSERT INTO deckhand.reservations (username, session, amount) VALUES ($1, $2, $3)
			ON CONFLICT (username, session) DO UPDATE SET amount = excluded.amount`, r.User, string(r.Session), int64(r.Amount))
		return err
	})
}
