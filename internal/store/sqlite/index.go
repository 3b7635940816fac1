package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"time"

	"deckhand/internal/session"
)

// The columns besides n and id: those that a query looks at, and the row.
const rowColumns = "owner, created_at, updated_at, last, attention, deleted, status, trig, repository, row"

const (
	insertRow = "INSERT INTO sessions (n, id, " + rowColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

	replaceRow = `UPDATE sessions SET owner = ?, created_at = ?, updated_at = ?, last = ?, attention = ?, deleted = ?, status = ?, trig = ?,
		repository = ?, row = ? WHERE n = ?`

	// progressRow touches no index.
	progressRow = "UPDATE sessions SET updated_at = ?, last = ?, row = ? WHERE n = ? AND last = ?"
)

// What a session needs of us, for finding those that do.
const (
	nothing int64 = iota
	wanting
	idling
)

func attention(r session.Row) driver.Value {
	switch {
	case r.Wants:
		return wanting
	case r.Status == session.Running:
		return idling
	}
	return nothing
}

// columns are the values of rowColumns.
func (a *appending) columns() []driver.Value {
	r := a.batch.Row
	return []driver.Value{
		r.Owner, micros(r.CreatedAt), micros(r.UpdatedAt), r.Last, attention(r), truth(r.Deleted), string(r.Status),
		optional(r.Trigger), optional(r.Repository), a.row,
	}
}

// Row implements session.Index.
func (db *DB) Row(ctx context.Context, id session.ID) (row session.Row, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		var bad error
		found, err := db.find(c, "SELECT row FROM sessions WHERE", id, func(v []driver.Value) { row, bad = unpackRow(bytesOf(v[0])) })
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

// Rows implements session.Index.
func (db *DB) Rows(ctx context.Context, q session.Query) ([]session.Row, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	if q.Text != "" {
		return db.search(ctx, q)
	}
	rows := make([]session.Row, 0, min(q.Limit, 128))
	err := db.readers.read(ctx, func(c *conn) error {
		sql, args := list(q)
		return c.query(sql, func(v []driver.Value) error {
			r, err := unpackRow(bytesOf(v[0]))
			if rows = append(rows, r); err == nil && len(rows) == q.Limit {
				err = enough
			}
			return err
		}, args...)
	})
	return rows, err
}

// list is the statement for a query, without its Text. There are only as many
// different ones as there are sets of filters.
func list(q session.Query) (string, []driver.Value) {
	var where strings.Builder
	args := []driver.Value{q.Owner}
	filter := func(condition string, values ...driver.Value) {
		where.WriteString(" AND " + condition)
		args = append(args, values...)
	}
	if q.Repository != "" {
		filter("repository = ?", q.Repository)
	}
	if q.Trigger != "" {
		filter("trig = ?", q.Trigger)
	}
	if q.Status != "" {
		filter("status = ?", string(q.Status))
	}
	if q.Before != nil { // the first condition is for the index, the second for ties
		at := micros(q.Before.CreatedAt)
		filter("created_at <= ? AND (created_at < ? OR id < ?)", at, at, string(q.Before.ID))
	}
	return "SELECT row FROM sessions WHERE owner = ? AND deleted = 0" + where.String() +
		" ORDER BY created_at DESC, id DESC LIMIT " + most, args
}

// searchPiece is how many titles are looked at in one go.
const searchPiece = 512

// most is the limit in statements. It is a number and not a parameter, because
// SQLite plans for the limit, and so prepares a statement anew whenever one is
// bound; that costs more than the query. Whoever wants fewer rows stops early.
const most = "512"

// search looks for the text itself, because SQLite knows upper and lower case
// of ASCII only. It goes through the titles in pieces, so that it can be
// cancelled and others can read meanwhile.
func (db *DB) search(ctx context.Context, q session.Query) ([]session.Row, error) {
	want := strings.ToLower(q.Text)
	var rows []session.Row
	for more := true; more && len(rows) < q.Limit; {
		err := db.readers.read(ctx, func(c *conn) error {
			seen := 0
			sql, args := list(q)
			err := c.query(sql, func(v []driver.Value) error {
				seen++
				r, err := unpackRow(bytesOf(v[0]))
				q.Before = &session.Cursor{CreatedAt: r.CreatedAt, ID: r.ID}
				if err == nil && strings.Contains(strings.ToLower(r.Title), want) {
					if rows = append(rows, r); len(rows) == q.Limit {
						return enough
					}
				}
				return err
			}, args...)
			more = seen == searchPiece
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Wanting implements session.Index.
func (db *DB) Wanting(ctx context.Context, limit int) ([]session.ID, error) {
	return db.idsOf(ctx, limit, selectWanting)
}

// Idle implements session.Index.
func (db *DB) Idle(ctx context.Context, before time.Time, limit int) ([]session.ID, error) {
	return db.idsOf(ctx, limit, selectIdle, micros(before))
}

const (
	selectWanting = "SELECT id FROM sessions WHERE attention = 1 ORDER BY updated_at, id"
	selectIdle    = "SELECT id FROM sessions WHERE attention = 2 AND updated_at < ? ORDER BY updated_at, id"
)

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
