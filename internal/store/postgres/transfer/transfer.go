// Package transfer reads and writes all rows of a PostgreSQL database, for moves to and from other databases.
package transfer

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/store"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/postgres/pg"
)

// Local are the tables and columns that belong to the database, with the reason why they do not travel.
var Local = map[string]string{
	"schema_version":  "the version of the database's schema, and the ID of a copy",
	"server_lease":    "the server that uses the database",
	"members":         "the servers that use the database together",
	"shared":          "what these servers know for minutes",
	"shared_made_seq": "counts in that table",
	"words":           "made from the rows of sessions",
	"session_numbers": "continues after the last session",
}

// Side is an open database. It holds the server lease, so that no server can use the database.
type Side struct {
	name string
	db   *postgres.DB
	base *pg.DB
}

var _ store.Side = (*Side)(nil)

// Open opens a database under a name for messages, which also say what to correct in a flag. A source must have an up-to-date schema; in a target the schema is created.
func Open(ctx context.Context, name, address, flag string, target bool) (*Side, error) {
	db, err := postgres.Open(ctx, address, postgres.Options{Server: "migrate " + rand.Text(), Existing: !target, Bulk: true, Flag: flag})
	if err != nil {
		return nil, err
	}
	s := &Side{name: name, db: db, base: db.Base()}
	if target && db.ReadOnly() {
		_ = s.Close()
		return nil, fmt.Errorf("open the database %s: %w", name, pg.ErrReadOnly)
	}
	has, err := s.Schema(ctx)
	if err == nil {
		err = store.CheckSchema(has, Local)
	}
	if err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open the database %s: %w", name, err)
	}
	return s, nil
}

// String implements store.Side.
func (s *Side) String() string { return s.name }

func sequence(table string) string { return "deckhand." + table + "_id_seq" }

// where is the condition for the rows that travel.
func where(t store.Table) (string, []any) {
	first := t.Columns[0].Name
	switch {
	case t.Only != "":
		return first + " = $1", []any{t.Only}
	case t.Except != "":
		return first + " <> $1", []any{t.Except}
	}
	return "true", nil
}

// Read implements store.Side.
func (s *Side) Read(ctx context.Context, t store.Table, after []any, limit int, each func(row []any) error) error {
	if t.Name == "sequences" {
		return s.readSequences(ctx, after, limit, each)
	}
	condition, args := where(t)
	key := strings.Join(t.Names()[:t.Key], ", ")
	if after != nil {
		var marks []string
		for _, v := range after {
			args = append(args, v)
			marks = append(marks, "$"+strconv.Itoa(len(args)))
		}
		condition += " AND (" + key + ") > (" + strings.Join(marks, ", ") + ")"
	}
	sql := fmt.Sprintf("SELECT %s FROM deckhand.%s WHERE %s ORDER BY %s LIMIT %d", strings.Join(t.Names(), ", "), t.Name, condition, key, limit)
	return s.base.View(ctx, func(c *pg.Conn) error {
		return c.Query(sql, func(row []any) error { return each(slices.Clone(row)) }, args...)
	})
}

func (s *Side) readSequences(ctx context.Context, after []any, limit int, each func(row []any) error) error {
	if after != nil || limit < len(store.Sequences) {
		return nil
	}
	for _, name := range store.Sequences {
		var last int64
		used := false
		err := s.base.View(ctx, func(c *pg.Conn) error {
			_, err := c.One("SELECT last_value, is_called FROM "+sequence(name), func(v []any) { last, used = pg.Number(v[0]), pg.Truth(v[1]) })
			return err
		})
		if err == nil && used {
			err = each([]any{name, last})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Write implements store.Side.
func (s *Side) Write(ctx context.Context, t store.Table, rows [][]any, record []byte, clear bool) error {
	return s.base.Update(ctx, func(c *pg.Conn) error {
		if clear {
			condition, args := where(t)
			if _, err := c.Exec("DELETE FROM deckhand."+t.Name+" WHERE "+condition, args...); err != nil {
				return err
			}
		}
		if err := insert(c, t, rows); err != nil {
			return fmt.Errorf("write to the table %s: %w", t.Name, err)
		}
		_, err := c.Exec("INSERT INTO deckhand.meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", store.MetaMove, record)
		return err
	})
}

func insert(c *pg.Conn, t store.Table, rows [][]any) error {
	if len(rows) == 0 {
		return nil
	}
	if t.Name == "sequences" {
		for _, row := range rows {
			if _, err := c.One("SELECT setval('"+sequence(row[0].(string))+"', $1)", func([]any) {}, row[1]); err != nil {
				return err
			}
		}
		return nil
	}
	var lists []string
	var args []any
	for i, column := range t.Columns {
		arg, kind := list(rows, i, column.Type)
		args = append(args, arg)
		lists = append(lists, "$"+strconv.Itoa(i+1)+kind)
	}
	_, err := c.Exec(fmt.Sprintf("INSERT INTO deckhand.%s (%s) OVERRIDING SYSTEM VALUE SELECT * FROM unnest(%s)", t.Name, strings.Join(t.Names(), ", "), strings.Join(lists, ", ")), args...)
	if err == nil && t.Name == store.SessionsTable {
		err = insertWords(c, t, rows)
	}
	return err
}

// list is a column of some rows as a parameter, with its casts.
func list(rows [][]any, i int, kind store.Type) (arg any, cast string) {
	switch kind {
	case store.Blob:
		return column(rows, i, func(v any) []byte { b, _ := v.([]byte); return b }), "::bytea[]"
	case store.Bool:
		return column(rows, i, pg.Truth), "::boolean[]"
	case store.Text:
		return column(rows, i, func(v any) *string {
			if s, ok := v.(string); ok {
				return &s
			}
			return nil
		}), "::text[]"
	}
	if !slices.ContainsFunc(rows, func(row []any) bool { return row[i] == nil }) {
		return column(rows, i, pg.Number), "::bigint[]"
	}
	return column(rows, i, func(v any) *string { // a list of numbers cannot hold NULL
		n, ok := v.(int64)
		if !ok {
			return nil
		}
		digits := strconv.FormatInt(n, 10)
		return &digits
	}), "::text[]::bigint[]"
}

func column[T any](rows [][]any, i int, of func(any) T) []T {
	var out []T
	for _, row := range rows {
		out = append(out, of(row[i]))
	}
	return out
}

// insertWords adds sessions to the index of words. A damaged row is not in it.
func insertWords(c *pg.Conn, t store.Table, rows [][]any) error {
	var numbers []int64
	var words []string
	n, blob := 0, len(t.Columns)-1
	for _, row := range rows {
		r, err := packed.ReadRow(row[blob].([]byte))
		if err != nil {
			continue
		}
		if list := postgres.Grams(r); list != "{}" {
			numbers, words = append(numbers, row[n].(int64)), append(words, list)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	_, err := c.Exec("INSERT INTO deckhand.words (n, grams) SELECT w.n, w.grams::integer[] FROM unnest($1::bigint[], $2::text[]) AS w (n, grams)", numbers, words)
	return err
}

// Finish implements store.Side.
func (s *Side) Finish(ctx context.Context) error {
	if err := s.base.Update(ctx, func(c *pg.Conn) error {
		_, err := c.One("SELECT setval('deckhand.session_numbers', (SELECT coalesce(max(n), 0) + 1 FROM deckhand.sessions), false)", func([]any) {})
		return err
	}); err != nil {
		return err
	}
	return s.base.View(ctx, func(c *pg.Conn) error { return c.Script("ANALYZE deckhand.sessions, deckhand.events, deckhand.words") })
}

// Done implements store.Side.
func (s *Side) Done(ctx context.Context) error {
	return s.base.Update(ctx, func(c *pg.Conn) error {
		if _, err := c.Exec("DELETE FROM deckhand.meta WHERE name = $1", store.MetaMove); err != nil {
			return err
		}
		return postgres.MarkCopy(c)
	})
}

// Schema implements store.Side.
func (s *Side) Schema(ctx context.Context) (all map[string][]string, err error) {
	err = s.base.View(ctx, func(c *pg.Conn) error {
		all = map[string][]string{}
		return c.Query(`SELECT c.relname::text, a.attname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace s ON s.oid = c.relnamespace
			JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
			WHERE s.nspname = 'deckhand' AND c.relkind IN ('r', 'p', 'S', 'f') AND NOT c.relispartition`, func(v []any) error {
			table, column := pg.Text(v[0]), pg.Text(v[1])
			if name, ok := strings.CutSuffix(table, "_id_seq"); ok && slices.Contains(store.Sequences, name) {
				all["sequences"] = []string{"name", "value"}
				return nil
			}
			all[table] = append(all[table], column)
			return nil
		})
	})
	return all, err
}

// Close implements store.Side. It ends the lease.
func (s *Side) Close() error { return s.db.Close() }
