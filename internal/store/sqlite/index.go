package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/session"
)

// The columns that a row consists of, besides n and id.
const rowColumns = "owner, created_at, updated_at, last, attention, deleted, status, title, agent, error_id, reason, trig, repository, branch, provider, totals"

const (
	insertRow = "INSERT INTO sessions (n, id, " + rowColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

	replaceRow = `UPDATE sessions SET owner = ?, created_at = ?, updated_at = ?, last = ?, attention = ?, deleted = ?, status = ?, title = ?,
		agent = ?, error_id = ?, reason = ?, trig = ?, repository = ?, branch = ?, provider = ?, totals = ? WHERE n = ?`

	// progressRow touches no index.
	progressRow = "UPDATE sessions SET updated_at = ?, last = ?, title = ?, agent = ?, error_id = ?, reason = ?, totals = ? WHERE n = ? AND last = ?"
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
		r.Owner, micros(r.CreatedAt), micros(r.UpdatedAt), r.Last, attention(r), truth(r.Deleted), string(r.Status), r.Title,
		optional(string(r.Agent)), optional(r.ErrorID), optional(r.Reason), optional(r.Trigger), optional(r.Repository),
		optional(r.Branch), optional(r.Provider), a.totals,
	}
}

// sessionRow reverses columns; the id comes first.
func sessionRow(v []driver.Value) (session.Row, error) {
	r := session.Row{
		ID: session.ID(text(v[0])), Owner: text(v[1]), CreatedAt: moment(v[2]), UpdatedAt: moment(v[3]), Last: number(v[4]),
		Wants: number(v[5]) == wanting, Deleted: number(v[6]) != 0, Status: session.Status(text(v[7])), Title: text(v[8]),
		Agent: session.AgentState(text(v[9])), ErrorID: text(v[10]), Reason: text(v[11]), Trigger: text(v[12]),
		Repository: text(v[13]), Branch: text(v[14]), Provider: text(v[15]),
	}
	if t := text(v[16]); t != "" {
		if err := json.Unmarshal([]byte(t), &r.Totals); err != nil {
			return r, fmt.Errorf("%w: the totals of session %s: %v", session.ErrCorrupt, r.ID, err)
		}
	}
	return r, nil
}

// Row implements session.Index.
func (db *DB) Row(ctx context.Context, id session.ID) (row session.Row, err error) {
	err = db.readers.read(ctx, func(c *conn) error {
		var bad error
		found, err := db.find(c, "SELECT id, "+rowColumns+" FROM sessions WHERE", id, func(v []driver.Value) { row, bad = sessionRow(v) })
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
	var rows []session.Row
	err := db.readers.read(ctx, func(c *conn) error {
		sql, args := list("id, "+rowColumns, q)
		return c.query(sql, func(v []driver.Value) error {
			r, err := sessionRow(v)
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
func list(columns string, q session.Query) (string, []driver.Value) {
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
	return "SELECT " + columns + " FROM sessions WHERE owner = ? AND deleted = 0" + where.String() +
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
			var hits []int64
			seen := 0
			sql, args := list("n, created_at, id, title", q)
			err := c.query(sql, func(v []driver.Value) error {
				seen++
				q.Before = &session.Cursor{CreatedAt: moment(v[1]), ID: session.ID(text(v[2]))}
				if strings.Contains(strings.ToLower(text(v[3])), want) {
					if hits = append(hits, number(v[0])); len(rows)+len(hits) == q.Limit {
						return enough
					}
				}
				return nil
			}, args...)
			more = seen == searchPiece
			for i := 0; err == nil && i < len(hits); i++ {
				err = c.query("SELECT id, "+rowColumns+" FROM sessions WHERE n = ?", func(v []driver.Value) error {
					r, err := sessionRow(v)
					if !r.Deleted { // or deleted since it was found
						rows = append(rows, r)
					}
					return err
				}, hits[i])
			}
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
