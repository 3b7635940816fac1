package sqlite

import (
	"context"
	"database/sql/driver"
	"iter"
	"slices"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
)

// The columns besides n and id: those that an index holds or a rule asks for, and
// the row itself.
const (
	insertRow = `INSERT INTO sessions (n, id, owner, created_at, updated_at, last, attention, holder, deleted, row, filed)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

	replaceRow = `UPDATE sessions SET owner = ?, created_at = ?, updated_at = ?, last = ?, attention = ?, holder = ?, deleted = ?, row = ? WHERE n = ?`

	// progressRow touches no index.
	progressRow = "UPDATE sessions SET updated_at = ?, last = ?, holder = ?, row = ? WHERE n = ? AND last = ?"
)

// holder is NULL for a session that no member holds.
func holder(r session.Row) driver.Value {
	if r.Holder == "" {
		return nil
	}
	return r.Holder
}

// columns are the values for both statements, besides n and id.
func (a *appending) columns() []driver.Value {
	r := a.batch.Row
	return []driver.Value{
		r.Owner, micros(r.CreatedAt), micros(r.UpdatedAt), r.Last, packed.Attention(r), holder(r), truth(r.Deleted), a.row,
	}
}

// Row implements session.Index.
func (db *DB) Row(ctx context.Context, id session.ID) (row session.Row, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		var bad error
		found, err := db.find(c, "SELECT row FROM sessions WHERE", id, func(v []driver.Value) { row, bad = packed.ReadRow(bytesOf(v[0])) })
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

// most is the limit in statements. It is a literal, not a parameter, because SQLite plans for
// the limit and prepares a statement again whenever one is bound; that costs more than the
// query. Callers that need fewer rows stop early.
const most = 512

const (
	selectRows = "SELECT row, created_at, id FROM sessions WHERE filed = 1 AND owner = ?1 AND deleted = 0 UNION ALL " +
		"SELECT row, created_at, id FROM sessions WHERE " + notFiled + " AND owner = ?1 AND deleted = 0" + newestFirst
	selectMore = "SELECT row, created_at, id FROM sessions WHERE filed = 1 AND owner = ?1 AND deleted = 0" + below + " UNION ALL " +
		"SELECT row, created_at, id FROM sessions WHERE " + notFiled + " AND owner = ?1 AND deleted = 0" + below + newestFirst
	// The first condition is for the index, the second for ties.
	below       = " AND created_at <= ?2 AND (created_at < ?2 OR id < ?3)"
	newestFirst = " ORDER BY created_at DESC, id DESC LIMIT 512"
	// Of all that users have, few are at work at a time, so they are found by that
	// and put in order by us.
	selectAwake = "SELECT row FROM sessions INDEXED BY sessions_by_attention WHERE attention > 0 AND owner = ? AND deleted = 0"
)

// Rows implements session.Index. Filters are applied here and not in SQL: SQLite only folds the
// case of ASCII, and every additional column costs each create. The index of words finds what few
// sessions have; otherwise rows are read in pieces, so that a long search can be cancelled and
// does not block other readers.
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
	rows := make([]session.Row, 0, min(q.Limit, 128))
	for more := true; more && len(rows) < q.Limit; {
		seen, last := 0, []byte(nil)
		err := db.readers.read(ctx, func(c *conn) error {
			sql, args := list(q)
			return c.query(sql, func(v []driver.Value) error {
				seen, last = seen+1, bytesOf(v[0])
				if !search.Wants(last) {
					return nil
				}
				r, err := packed.ReadRow(last)
				if err != nil {
					return err
				}
				if rows = append(rows, r); len(rows) == q.Limit {
					return enough
				}
				return nil
			}, args...)
		})
		if err != nil {
			return nil, err
		}
		if more = seen == most; more {
			r, err := packed.ReadRow(last)
			if err != nil {
				return nil, err
			}
			at := packed.CursorOf(r)
			q.Before = &at
		}
	}
	return rows, nil
}

// awake is Rows for those that are not stopped.
func (db *DB) awake(ctx context.Context, q session.Query, search packed.Search) ([]session.Row, error) {
	var rows []session.Row
	err := db.readers.read(ctx, func(c *conn) error {
		return c.query(selectAwake, func(v []driver.Value) error {
			if !search.Wants(bytesOf(v[0])) {
				return nil
			}
			r, err := packed.ReadRow(bytesOf(v[0]))
			if err == nil && r.Shown() == q.Status && (q.Before == nil || packed.InOrder(*q.Before, packed.CursorOf(r)) < 0) {
				rows = append(rows, r)
			}
			return err
		}, q.Owner)
	})
	return packed.FirstOf(rows, q.Limit), err
}

// list is the statement that goes on where the query is.
func list(q session.Query) (string, []driver.Value) {
	if q.Before == nil {
		return selectRows, []driver.Value{q.Owner}
	}
	return selectMore, []driver.Value{q.Owner, micros(q.Before.CreatedAt), string(q.Before.ID)}
}

// Wanting implements session.Index. The index finds the few sessions that want a
// loop; those that others hold are skipped here. An index on the holder would
// change with every claim, and save little.
func (db *DB) Wanting(ctx context.Context, held []string) iter.Seq2[session.Waiting, error] {
	return func(yield func(session.Waiting, error) bool) {
		stopped := false
		err := db.readers.read(ctx, func(c *conn) error {
			return c.query(selectWanting, func(row []driver.Value) error {
				if by, ok := row[1].(string); ok && slices.Contains(held, by) {
					return nil
				}
				if stopped = !yield(session.Waiting{ID: session.ID(text(row[0])), Owner: text(row[2])}, nil); stopped {
					return enough
				}
				return nil
			})
		})
		if err != nil && !stopped {
			yield(session.Waiting{}, err)
		}
	}
}

// Idle implements session.Index.
func (db *DB) Idle(ctx context.Context, before time.Time, limit int) ([]session.ID, error) {
	return db.idsOf(ctx, limit, selectIdle, micros(before))
}

const (
	selectWanting = "SELECT id, holder, owner FROM sessions WHERE attention = 1 ORDER BY updated_at, id"
	selectIdle    = "SELECT id FROM sessions WHERE attention = 2 AND updated_at < ? ORDER BY updated_at, id"
	selectOld     = "SELECT n, id, deleted = 0 AND updated_at < ?2 FROM sessions WHERE n > ?1 ORDER BY n LIMIT ?3"
)

// Unchanged implements session.Index.
func (db *DB) Unchanged(ctx context.Context, before time.Time) iter.Seq2[session.ID, error] {
	return packed.Old(ctx, func(p *packed.Piece) error {
		return db.readers.read(ctx, func(c *conn) error {
			return c.query(selectOld, func(v []driver.Value) error {
				p.Add(number(v[0]), text(v[1]), number(v[2]) != 0)
				return nil
			}, p.After, micros(before), int64(packed.PieceRows))
		})
	})
}

// idsOf lists the sessions that a statement finds.
func (db *DB) idsOf(ctx context.Context, limit int, sql string, args ...driver.Value) ([]session.ID, error) {
	var ids []session.ID
	if limit <= 0 {
		return nil, nil
	}
	err := db.readers.read(ctx, func(c *conn) error {
		return c.query(sql, func(row []driver.Value) error {
			if ids = append(ids, session.ID(text(row[0]))); len(ids) == limit {
				return enough
			}
			return nil
		}, args...)
	})
	return ids, err
}
