package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// ChainStart implements store.Backend.
func (db *DB) ChainStart(ctx context.Context) (start int64, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		_, err := c.one("SELECT value FROM counters WHERE name = 'chain'", func(v []driver.Value) { start = number(v[0]) })
		return err
	})
	return start, err
}

// UseChain implements store.Backend.
func (db *DB) UseChain(key [32]byte, start int64) { db.chain.Use(key, start) }

// mark is the mark of an event that is the last one of its session.
func (db *DB) mark(ctx context.Context, id session.ID, last int64) (m packed.Mark, err error) {
	m, ok := db.chain.Known(id, last)
	if ok {
		return m, nil
	}
	err = db.readers.read(ctx, func(c *conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err // the append says that there is a conflict
		}
		if _, err := c.one("SELECT body FROM events WHERE id = ?", func(v []driver.Value) { m, ok = packed.MarkOf(bytesOf(v[0])) }, key(n, last)); err != nil || ok {
			return err
		}
		w := db.chain.Walk(id) // the log is older than the chain
		err = c.query("SELECT id, at, body FROM events WHERE id > ? AND id <= ? ORDER BY id", func(v []driver.Value) error {
			return w.Compute(number(v[0])&(1<<numberBits-1), number(v[1]), bytesOf(v[2]))
		}, key(n, 0), key(n, last))
		if m = w.Mark(); errors.Is(err, session.ErrCorrupt) {
			return nil // a damaged log can only be deleted, which needs no mark
		}
		return err
	})
	return m, err
}

// RestartChain implements store.Backend.
func (db *DB) RestartChain(ctx context.Context, id session.ID) error {
	defer db.recent.Forget(id)
	return db.write(ctx, 0, func(c *conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		return db.sign(c, n, id)
	})
}

// sign gives all rows of a log the marks of the events that they have.
func (db *DB) sign(c *conn, n int64, id session.ID) error {
	if !db.chain.On() {
		return nil
	}
	w := db.chain.Walk(id)
	db.chain.Forget(id)
	changed := map[int64][]byte{}
	err := c.query("SELECT id, at, body FROM events WHERE id > ? AND id < ? ORDER BY id", func(v []driver.Value) error {
		body, differs, err := w.Signed(number(v[0])&(1<<numberBits-1), number(v[1]), bytesOf(v[2]))
		if err == nil && differs {
			changed[number(v[0])] = body
		}
		return err
	}, key(n, 0), key(n+1, 0))
	for key, body := range changed {
		if err == nil {
			_, err = c.exec("UPDATE events SET body = ? WHERE id = ?", body, key)
		}
	}
	return err
}
