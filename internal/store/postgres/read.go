package postgres

import (
	"bytes"
	"context"
	"encoding/json"
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
	return packed.Read(ctx, &db.chain, id, after, func(r *packed.Reading) error {
		return db.base.View(ctx, func(c *pg.Conn) error { return db.next(c, r) })
	})
}

// Remembered implements session.Rememberer.
func (db *DB) Remembered(id session.ID, after, last int64) ([]session.Event, bool) {
	return packed.Remembered(db.recent, id, after, last)
}

// next reads a piece. It may be run again after a failure.
func (db *DB) next(c *pg.Conn, r *packed.Reading) error {
	r.Events = r.Events[:0]
	if r.N == 0 {
		n, last, found, err := db.findSession(c, r.ID)
		if err != nil {
			return err
		}
		if done, err := r.Begin(n, last, found, db.recent); done {
			return err
		}
	}
	count, size := 0, 0
	err := c.Query(selectPiece, func(row []any) error {
		count, size = count+1, size+len(pg.Bytes(row[2]))
		return r.Take(pg.Number(row[0]), pg.Number(row[1]), pg.Bytes(row[2]))
	}, r.N, r.At)
	if err != nil {
		return err
	}
	return r.End(count < pieceRows && size < pieceBytes, db.recent)
}

// Repair makes a session end after an event and gives it the row that belongs
// there. It is for the doctor, and refuses while a server runs: nothing else may shorten a log.
// The ledger is left as it is: money was spent whether a log says so or not, and
// what a lost call has reserved ends with the session's next call, or with it.
func (db *DB) Repair(ctx context.Context, id session.ID, after int64, row session.Row) error {
	defer db.recent.Forget(id)
	defer db.known.forget(id)
	return db.UpdateExclusive(ctx, func(c *pg.Conn) error {
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
		if err := db.sign(c, n, id); err != nil {
			return err
		}
		_, err = c.Exec(`UPDATE deckhand.sessions SET owner = $2, created_at = $3, updated_at = $4, last = $5, attention = $6, holder = $7,
			deleted = $8, row = $9, compressed = least(compressed, $5) WHERE n = $1`,
			n, row.Owner, pg.Micros(row.CreatedAt), pg.Micros(row.UpdatedAt), row.Last, packed.Attention(row), pg.OrNone(row.Holder), row.Deleted, packed.Row(row))
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
