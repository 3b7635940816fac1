package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// Repair makes a session end after an event and gives it the row that belongs
// there. It is for the doctor, while no server runs: nothing else may shorten a log.
// The ledger is left as it is: money was spent whether a log says so or not, and
// what a lost call has reserved ends with the session's next call, or with it.
func (db *DB) Repair(ctx context.Context, id session.ID, after int64, row session.Row) error {
	a := &appending{db: db, batch: session.Batch{Row: row}, row: packed.Row(row)}
	defer db.recent.Forget(id)
	return db.write(ctx, 0, func(c *conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		if err := cutRow(c, n, after); err != nil {
			return err
		}
		if _, err := c.exec("DELETE FROM events WHERE id > ? AND id < ?", key(n, after), key(n+1, 0)); err != nil {
			return err
		}
		delete(db.known, id)
		if err := db.sign(c, n, id); err != nil {
			return err
		}
		_, err = c.exec(replaceRow, append(a.columns(), n)...)
		return err
	})
}

// cutRow keeps the good events of a batch that is to be cut in two.
func cutRow(c *conn, n, after int64) error {
	var last, at int64
	var body []byte
	found, err := c.one("SELECT id, at, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT 1", func(row []driver.Value) {
		last, at, body = number(row[0])&(1<<numberBits-1), number(row[1]), bytesOf(row[2])
	}, key(n, after), key(n+1, 0))
	if err != nil || !found {
		return err
	}
	kept := packed.Until(body, last, after)
	if kept != nil {
		_, err = c.exec("INSERT INTO events (id, at, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", key(n, after), at, kept)
	}
	return err
}

// Dump is the stored events after a number as they lie in the file, one JSON
// object a line, without asking whether they make sense.
func (db *DB) Dump(ctx context.Context, id session.ID, after int64) ([]byte, error) {
	var out bytes.Buffer
	lines := json.NewEncoder(&out)
	err := db.readers.read(ctx, func(c *conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		return c.query("SELECT id, at, body FROM events WHERE id > ? AND id < ? ORDER BY id", func(row []driver.Value) error {
			return lines.Encode(map[string]any{"last": number(row[0]) & (1<<numberBits - 1), "at": moment(row[1]), "body": string(packed.Opened(bytesOf(row[2])))})
		}, key(n, after), key(n+1, 0))
	})
	return out.Bytes(), err
}
