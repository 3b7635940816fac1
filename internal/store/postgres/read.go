package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

// Reading goes in pieces of this many rows, or bytes, so that a slow consumer
// holds neither a connection nor an old snapshot.
const (
	pieceRows  = 256
	pieceBytes = 1 << 20
)

// selectPiece stops after the row that makes it too much.
const selectPiece = `SELECT last, at, body FROM (
	SELECT last, at, body, sum(octet_length(body)) OVER (ORDER BY last ROWS UNBOUNDED PRECEDING) - octet_length(body) AS before
	FROM deckhand.events WHERE n = $1 AND last > $2 ORDER BY last LIMIT 256) p WHERE before < 1048576 ORDER BY last`

// Read implements session.Log.
func (db *DB) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		r := reading{db: db, id: id, at: max(after, 0)}
		for !r.done {
			failure := db.base.View(ctx, r.next) // after what could be read
			for i, e := range r.events {
				r.events[i] = session.Event{} // a consumer that is done with it must be able to free it
				if err := ctx.Err(); err != nil {
					yield(session.Event{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
			if failure != nil {
				yield(session.Event{}, fmt.Errorf("read session %s after event %d: %w", id, r.at, failure))
				return
			}
		}
	}
}

// Remembered implements session.Rememberer.
func (db *DB) Remembered(id session.ID, after, last int64) ([]session.Event, bool) {
	r := reading{at: after}
	rows := db.recent.Between(id, after, last)
	if len(rows) == 0 || r.recall(rows) != nil {
		return nil, false // what is damaged is reported by Read
	}
	return r.events, true
}

// reading is a walk through one session's events.
type reading struct {
	db      *DB
	id      session.ID
	n, last int64 // last is the end of the log when the walk began
	at      int64
	events  []session.Event
	done    bool
	// rows are what the walk has met since the event from, as long as it is little.
	from int64
	rows []*packed.Batch
	size int
	read int // bytes of all rows, decompressed
}

// next reads a piece. It may be run again after a failure.
func (r *reading) next(c *pg.Conn) error {
	r.events = r.events[:0]
	if r.n == 0 {
		n, last, found, err := r.db.findSession(c, r.id)
		if err != nil {
			return err
		}
		r.n, r.last = n, last
		if !found || r.at >= r.last {
			r.done = true
			return nil
		}
		if rows := r.db.recent.Between(r.id, r.at, r.last); rows != nil {
			r.done = true
			return r.recall(rows)
		}
	}
	count, size := 0, 0
	err := c.Query(selectPiece, func(row []any) error {
		count, size = count+1, size+len(pg.Bytes(row[2]))
		return r.take(row)
	}, r.n, r.at)
	// Not "number = last": a concurrent deletion leaves only its own event, beyond that.
	r.done = r.at >= r.last || count < pieceRows && size < pieceBytes
	if r.done && err == nil && r.at == r.last && r.size <= packed.MaxTail {
		r.db.recent.Add(r.id, r.from, r.rows...)
	}
	return err
}

// recall gives what is in memory.
func (r *reading) recall(rows []*packed.Batch) error {
	for _, row := range rows {
		events, err := row.Decode()
		for _, e := range events {
			if e.Number > r.at {
				r.events = append(r.events, e)
			}
		}
		if err != nil {
			return err
		}
		r.at = row.Last
	}
	return nil
}

// take adds the events of a row that are to be read.
func (r *reading) take(row []any) error {
	last := pg.Number(row[0])
	body, err := packed.Open(pg.Bytes(row[2]))
	if err != nil {
		return packed.Damaged(last, err)
	}
	m := &packed.Batch{Last: last, At: pg.Number(row[1]), Body: body}
	if err := r.recall([]*packed.Batch{m}); err != nil {
		return err
	}
	r.read += len(body)
	if r.size == 0 {
		r.from = m.First() - 1 // the row may begin before what was asked for
	}
	r.rows = append(r.rows, m)
	if r.size += len(m.Body); r.size > packed.MaxTail {
		r.rows = nil
	}
	return nil
}

// Repair makes a session end after an event and gives it the row that belongs
// there. It is for the doctor, while no server runs: nothing else may shorten a log.
// The ledger is left as it is: money was spent whether a log says so or not, and
// what a lost call has reserved ends with the session's next call, or with it.
func (db *DB) Repair(ctx context.Context, id session.ID, after int64, row session.Row) error {
	defer db.recent.Forget(id)
	defer db.known.forget(id)
	return db.base.Update(ctx, func(c *pg.Conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		if err := cutRow(c, n, after); err != nil {
			return err
		}
		if _, err := c.Exec("DELETE FROM deckhand.events WHERE n = $1 AND last > $2", n, after); err != nil {
			return err
		}
		_, err = c.Exec(`UPDATE deckhand.sessions SET owner = $2, created_at = $3, updated_at = $4, last = $5, attention = $6, holder = $7,
			deleted = $8, row = $9, compressed = least(compressed, $5) WHERE n = $1`,
			n, row.Owner, pg.Micros(row.CreatedAt), pg.Micros(row.UpdatedAt), row.Last, attention(row), pg.OrNone(row.Holder), row.Deleted, packed.Row(row))
		return err
	})
}

// cutRow keeps the good events of a batch that is to be cut in two.
func cutRow(c *pg.Conn, n, after int64) error {
	var last, at int64
	var body []byte
	found, err := c.One("SELECT last, at, body FROM deckhand.events WHERE n = $1 AND last > $2 ORDER BY last LIMIT 1", func(row []any) {
		last, at, body = pg.Number(row[0]), pg.Number(row[1]), pg.Bytes(row[2])
	}, n, after)
	if err != nil || !found {
		return err
	}
	if kept := packed.Until(body, last, after); kept != nil {
		_, err = c.Exec("INSERT INTO deckhand.events (n, last, at, body) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", n, after, at, kept)
	}
	return err
}

// Dump is the stored events after a number as they are in the database, one JSON
// object a line, without asking whether they make sense.
func (db *DB) Dump(ctx context.Context, id session.ID, after int64) ([]byte, error) {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	err := db.base.View(ctx, func(c *pg.Conn) error {
		out.Reset()
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		return c.Query("SELECT last, at, body FROM deckhand.events WHERE n = $1 AND last > $2 ORDER BY last", func(row []any) error {
			return lines.Encode(map[string]any{"last": pg.Number(row[0]), "at": pg.Moment(row[1]), "body": string(packed.Opened(pg.Bytes(row[2])))})
		}, n, after)
	})
	return out.Bytes(), err
}
