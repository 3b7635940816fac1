package postgres

import (
	"context"
	"iter"
	"slices"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

// Row implements session.Index.
func (db *DB) Row(ctx context.Context, id session.ID) (row session.Row, err error) {
	err = db.base.View(ctx, func(c *pg.Conn) error {
		var bad error
		found, err := db.find(c, "row", id, func(v []any) { row, bad = packed.ReadRow(pg.Bytes(v[0])) })
		switch {
		case err != nil:
			return err
		case !found:
			return session.ErrNotFound
		}
		return bad
	})
	return row, err
}

// most is how many rows are looked at in one go by a search.
const most = 512

const (
	selectRows = "SELECT row FROM deckhand.sessions WHERE owner = $1 AND NOT deleted ORDER BY created_at DESC, id DESC LIMIT $2"
	selectMore = "SELECT row FROM deckhand.sessions WHERE owner = $1 AND NOT deleted AND (created_at, id) < ($3, $4) ORDER BY created_at DESC, id DESC LIMIT $2"
	// Few sessions are active at a time, so they are found by attention and sorted
	// in memory.
	selectAwake = "SELECT row FROM deckhand.sessions WHERE attention > 0 AND owner = $1 AND NOT deleted"
)

// Rows implements session.Index. Filters are applied here and not in SQL, so that they mean the
// same in every database. The index of words finds what few sessions have; otherwise rows are
// read in pieces.
func (db *DB) Rows(ctx context.Context, q session.Query) ([]session.Row, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	search := packed.NewSearch(q)
	if q.Status != "" && q.Status != session.Halted {
		return db.awake(ctx, q, search)
	}
	if rows, ok, err := db.matches(ctx, q, search); ok || err != nil {
		return rows, err
	}
	piece := most
	if search.All() {
		piece = min(q.Limit, most)
	}
	rows := make([]session.Row, 0, min(q.Limit, 128))
	for more := true; more && len(rows) < q.Limit; {
		var some [][]byte
		err := db.base.View(ctx, func(c *pg.Conn) error {
			some = some[:0]
			sql, args := selectRows, []any{q.Owner, int64(piece)}
			if q.Before != nil {
				sql, args = selectMore, append(args, pg.Micros(q.Before.CreatedAt), string(q.Before.ID))
			}
			return c.Query(sql, func(v []any) error {
				some = append(some, pg.Bytes(v[0]))
				return nil
			}, args...)
		})
		if err != nil {
			return nil, err
		}
		more = len(some) == piece
		for i, b := range some {
			last := more && i == piece-1 // where the next piece begins
			wanted := search.Wants(b)
			if !wanted && !last {
				continue
			}
			r, err := packed.ReadRow(b)
			if err != nil {
				return nil, err
			}
			if wanted && len(rows) < q.Limit {
				rows = append(rows, r)
			}
			at := packed.CursorOf(r)
			q.Before = &at
		}
	}
	return rows, nil
}

// awake is Rows for those that are not stopped.
func (db *DB) awake(ctx context.Context, q session.Query, search packed.Search) (rows []session.Row, err error) {
	err = db.base.View(ctx, func(c *pg.Conn) error {
		rows = rows[:0]
		return c.Query(selectAwake, func(v []any) error {
			if !search.Wants(pg.Bytes(v[0])) {
				return nil
			}
			r, err := packed.ReadRow(pg.Bytes(v[0]))
			if err == nil && r.Shown() == q.Status && (q.Before == nil || packed.InOrder(*q.Before, packed.CursorOf(r)) < 0) {
				rows = append(rows, r)
			}
			return err
		}, q.Owner)
	})
	return packed.FirstOf(rows, q.Limit), err
}

const (
	selectWanting = "SELECT id, holder, owner FROM deckhand.sessions WHERE attention = 1 ORDER BY updated_at, id"
	selectIdle    = "SELECT id FROM deckhand.sessions WHERE attention = 2 AND updated_at < $1 ORDER BY updated_at, id LIMIT $2"
	selectOld     = "SELECT n, id, NOT deleted AND updated_at < $2 FROM deckhand.sessions WHERE n > $1 ORDER BY n LIMIT $3"
)

// Wanting implements session.Index. All are read before the first is yielded: there are few, and a slow
// consumer must not hold a connection.
func (db *DB) Wanting(ctx context.Context, held []string) iter.Seq2[session.Waiting, error] {
	return func(yield func(session.Waiting, error) bool) {
		var found []session.Waiting
		err := db.base.View(ctx, func(c *pg.Conn) error {
			found = found[:0]
			return c.Query(selectWanting, func(row []any) error {
				if by, ok := row[1].(string); !ok || !slices.Contains(held, by) {
					found = append(found, session.Waiting{ID: session.ID(pg.Text(row[0])), Owner: pg.Text(row[2])})
				}
				return nil
			})
		})
		if err != nil {
			yield(session.Waiting{}, err)
			return
		}
		for _, w := range found {
			if !yield(w, nil) {
				return
			}
		}
	}
}

// Idle implements session.Index.
func (db *DB) Idle(ctx context.Context, before time.Time, limit int) (ids []session.ID, err error) {
	if limit <= 0 {
		return nil, nil
	}
	err = db.base.View(ctx, func(c *pg.Conn) error {
		ids = ids[:0]
		return c.Query(selectIdle, func(row []any) error {
			ids = append(ids, session.ID(pg.Text(row[0])))
			return nil
		}, pg.Micros(before), int64(limit))
	})
	return ids, err
}

// Unchanged implements session.Index.
func (db *DB) Unchanged(ctx context.Context, before time.Time) iter.Seq2[session.ID, error] {
	return packed.Old(ctx, func(p *packed.Piece) error {
		return db.base.View(ctx, func(c *pg.Conn) error {
			p.Begin()
			return c.Query(selectOld, func(v []any) error {
				p.Add(pg.Number(v[0]), pg.Text(v[1]), pg.Truth(v[2]))
				return nil
			}, p.After, pg.Micros(before), int64(packed.PieceRows))
		})
	})
}

var (
	_ session.Log   = (*DB)(nil)
	_ session.Index = (*DB)(nil)
)
