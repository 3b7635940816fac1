package postgres

import (
	"context"
	"errors"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

// ChainStart implements store.Backend.
func (db *DB) ChainStart(ctx context.Context) (start int64, err error) {
	err = db.base.View(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT value FROM deckhand.counters WHERE name = 'chain'", func(v []any) { start = pg.Number(v[0]) })
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
	err = db.base.View(ctx, func(c *pg.Conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err // the append says that there is a conflict
		}
		if _, err := c.One("SELECT body FROM deckhand.events WHERE n = $1 AND last = $2", func(v []any) { m, ok = packed.MarkOf(pg.Bytes(v[0])) }, n, last); err != nil || ok {
			return err
		}
		w := db.chain.Walk(id) // the log is older than the chain
		err = c.Query("SELECT last, at, body FROM deckhand.events WHERE n = $1 AND last <= $2 ORDER BY last", func(v []any) error {
			return w.Compute(pg.Number(v[0]), pg.Number(v[1]), pg.Bytes(v[2]))
		}, n, last)
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
	return db.UpdateExclusive(ctx, func(c *pg.Conn) error {
		n, _, found, err := db.findSession(c, id)
		if err != nil || !found {
			return err
		}
		return db.sign(c, n, id)
	})
}

// sign gives all rows of a log the marks of the events that they have.
func (db *DB) sign(c *pg.Conn, n int64, id session.ID) error {
	if !db.chain.On() {
		return nil
	}
	w := db.chain.Walk(id)
	db.chain.Forget(id)
	changed := map[int64][]byte{}
	err := c.Query("SELECT last, at, body FROM deckhand.events WHERE n = $1 ORDER BY last", func(v []any) error {
		body, differs, err := w.Signed(pg.Number(v[0]), pg.Number(v[1]), pg.Bytes(v[2]))
		if err == nil && differs {
			changed[pg.Number(v[0])] = body
		}
		return err
	}, n)
	for last, body := range changed {
		if err == nil {
			_, err = c.Exec("UPDATE deckhand.events SET body = $3 WHERE n = $1 AND last = $2", n, last, body)
		}
	}
	return err
}
