package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"

	"deckhand/internal/session"
)

// Repair makes a session end after an event and gives it the row that belongs
// there. It is for the doctor, while no server runs: nothing else may shorten a log.
func (db *DB) Repair(ctx context.Context, id session.ID, after int64, row session.Row) error {
	a, err := db.encodeRow(row)
	if err != nil {
		return err
	}
	return db.write(ctx, 0, func(c *conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		if _, err := c.exec("DELETE FROM events WHERE id > ? AND id < ?", key(n, after), key(n+1, 0)); err != nil {
			return err
		}
		delete(db.known, id)
		_, err = c.exec(replaceRow, append(a.columns(), n)...)
		return err
	})
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
		return c.query("SELECT id, at, kind, body FROM events WHERE id > ? AND id < ? ORDER BY id", func(row []driver.Value) error {
			return lines.Encode(map[string]any{"number": number(row[0]) & (1<<numberBits - 1), "at": moment(row[1]),
				"kind": text(row[2]), "body": string(bytesOf(row[3]))})
		}, key(n, after), key(n+1, 0))
	})
	return out.Bytes(), err
}
