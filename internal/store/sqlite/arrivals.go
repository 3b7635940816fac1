package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/trigger"
)

const selectArrival = `SELECT integration, seq, id, print, event, repository, pull, number, actor, created_at, state, reason, task, session, said, posting, attempts, next_at, done_at FROM arrivals`

func arrivalOf(v []driver.Value) trigger.Delivery {
	return trigger.Delivery{Integration: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Print: text(v[3]), Event: text(v[4]),
		Thread: trigger.Thread{Repository: text(v[5]), Pull: number(v[6]) != 0, Number: int(number(v[7]))}, Actor: text(v[8]), CreatedAt: moment(v[9]),
		State: trigger.State(text(v[10])), Reason: text(v[11]), Task: bytesOf(v[12]), Session: session.ID(text(v[13])), Said: number(v[14]), Posting: number(v[15]),
		Attempts: int(number(v[16])), NextAt: maybe(v[17]), DoneAt: maybe(v[18])}
}

// Deliveries implements trigger.Store.
func (s Triggers) Deliveries(ctx context.Context, user, integration string, before int64, limit int) (found []trigger.Delivery, err error) {
	if before <= 0 {
		before = 1<<63 - 1
	}
	err = s.db.readers.read(ctx, func(c *conn) error {
		if _, err := s.of(c, user, integration); err != nil || limit <= 0 {
			return err
		}
		return c.query(selectArrival+" WHERE integration = ? AND seq < ? ORDER BY seq DESC", func(v []driver.Value) error {
			if found = append(found, arrivalOf(v)); len(found) == limit {
				return enough
			}
			return nil
		}, integration, before)
	})
	return found, err
}

// Record implements trigger.Inbox.
func (s Triggers) Record(ctx context.Context, d trigger.Delivery) (fresh bool, err error) {
	err = s.db.write(ctx, len(d.Task), func(c *conn) error {
		added, err := c.exec(`INSERT INTO arrivals (integration, seq, id, print, event, repository, pull, number, actor, created_at, state, reason, task, session, said, posting, attempts, next_at, done_at)
			SELECT w.id, coalesce((SELECT max(seq) FROM arrivals WHERE integration = w.id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
			FROM integrations w WHERE w.id = ? ON CONFLICT DO NOTHING`, d.ID, d.Print, d.Event, d.Repository, truth(d.Pull), int64(d.Number), d.Actor, micros(d.CreatedAt),
			string(d.State), d.Reason, d.Task, string(d.Session), d.Said, d.Posting, int64(d.Attempts), orNull(d.NextAt), orNull(d.DoneAt), d.Integration)
		if fresh = added > 0; err != nil || !fresh {
			return err
		}
		_, err = c.exec(`DELETE FROM arrivals WHERE integration = ?1 AND next_at IS NULL AND state <> 'working' AND created_at < ?2
			AND seq <= (SELECT max(seq) FROM arrivals WHERE integration = ?1) - ?3`, d.Integration, micros(d.CreatedAt.Add(-trigger.KeptFor)), int64(trigger.KeptDeliveries))
		return err
	})
	return fresh && err == nil, err
}

// ofServed is a condition: what belongs to users who are not disabled.
const ofServed = " AND EXISTS (SELECT 1 FROM integrations i, users u WHERE i.id = arrivals.integration AND u.name = i.user AND u.disabled = 0)"

// Due implements trigger.Inbox.
func (s Triggers) Due(ctx context.Context, now time.Time, limit int) (due []trigger.Delivery, next time.Time, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		err := c.query(selectArrival+" WHERE next_at IS NOT NULL AND next_at <= ?"+ofServed+" ORDER BY next_at, integration, seq", func(v []driver.Value) error {
			if len(due) == limit {
				return enough
			}
			due = append(due, arrivalOf(v))
			return nil
		}, micros(now))
		if err != nil {
			return err
		}
		_, err = c.one("SELECT next_at FROM arrivals WHERE next_at IS NOT NULL AND next_at > ?"+ofServed+" ORDER BY next_at", func(v []driver.Value) { next = moment(v[0]) }, micros(now))
		return err
	})
	return due, next, err
}

// AtWork implements trigger.Inbox.
func (s Triggers) AtWork(ctx context.Context, id session.ID) (found []trigger.Delivery, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		return c.query(selectArrival+" WHERE state = 'working' AND (?1 = '' OR session = ?1) ORDER BY session, integration, seq", func(v []driver.Value) error {
			found = append(found, arrivalOf(v))
			return nil
		}, string(id))
	})
	return found, err
}

// Settle implements trigger.Inbox. What was removed meanwhile stays removed.
func (s Triggers) Settle(ctx context.Context, ds ...trigger.Delivery) error {
	return s.db.write(ctx, 0, func(c *conn) error {
		for _, d := range ds {
			there, err := c.exec(`UPDATE arrivals SET state = ?, reason = ?, task = ?, session = ?, said = ?, posting = ?, attempts = ?, next_at = ?, done_at = ?
				WHERE integration = ? AND seq = ? AND id = ?`, string(d.State), d.Reason, d.Task, string(d.Session), d.Said, d.Posting, int64(d.Attempts),
				orNull(d.NextAt), orNull(d.DoneAt), d.Integration, d.Seq, d.ID)
			if err == nil && there > 0 && d.State == trigger.Working {
				_, err = c.exec(`INSERT INTO threads (integration, repository, pull, number, session) VALUES (?, ?, ?, ?, ?)
					ON CONFLICT (integration, repository, pull, number) DO UPDATE SET session = excluded.session`,
					d.Integration, d.Repository, truth(d.Pull), int64(d.Number), string(d.Session))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// SessionOf implements trigger.Inbox.
func (s Triggers) SessionOf(ctx context.Context, integration string, t trigger.Thread) (id session.ID, err error) {
	err = s.db.readers.read(ctx, func(c *conn) error {
		_, err := c.one("SELECT session FROM threads WHERE integration = ? AND repository = ? AND pull = ? AND number = ?", func(v []driver.Value) { id = session.ID(text(v[0])) },
			integration, t.Repository, truth(t.Pull), int64(t.Number))
		return err
	})
	return id, err
}
