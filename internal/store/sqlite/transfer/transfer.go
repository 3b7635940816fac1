// Package transfer reads and writes all rows of a SQLite file, for moves to and from other databases.
package transfer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	driver "modernc.org/sqlite"

	"deckhand/internal/store"
	"deckhand/internal/store/sqlite"
)

// Local are the tables and columns that belong to the file, with the reason why they do not travel.
var Local = map[string]string{
	"goose_db_version": "the version of the file's schema",
	"words":            "made from the rows of sessions",
	"words_config":     "part of words",
	"words_data":       "part of words",
	"words_docsize":    "part of words",
	"words_idx":        "part of words",
	"unfiled":          "which sessions words lacks",
	"sessions.filed":   "which sessions an index lacks",
}

// Side is an open file.
type Side struct {
	path string
	db   *sql.DB
}

var _ store.Side = (*Side)(nil)

// Open opens a file. A source is opened for reading only; it must exist, and its schema must be up to date. A target is created
// if it is missing.
func Open(ctx context.Context, path string, target bool) (*Side, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if used(path) {
		return nil, fmt.Errorf("another process uses %s: stop the server and other deckhand commands first", path)
	}
	query := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout=5000"}}
	if target {
		if err := create(ctx, path); err != nil {
			return nil, err
		}
		query = url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout=5000", "synchronous=full", "foreign_keys=on"}}
	} else if err := settled(path, query); err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector((&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	s := &Side{path: path, db: sql.OpenDB(connector)}
	s.db.SetMaxOpenConns(1)
	if err := s.check(ctx); err != nil {
		_ = s.db.Close()
		return nil, fmt.Errorf("open the database %s: %w", path, err)
	}
	return s, nil
}

// used reports whether another process has the file open: SQLite then holds a lock on these bytes of it.
func used(path string) bool {
	const first, size = 0x40000000, 512
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart, Start: first, Len: size}
	return syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock) == nil && lock.Type != syscall.F_UNLCK
}

// create makes the file if it is missing, and brings its schema up to date.
func create(ctx context.Context, path string) error {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	readonly := db.ReadOnly()
	if err := db.Close(); err != nil {
		return err
	}
	if readonly {
		return fmt.Errorf("%s: %w", path, sqlite.ErrReadOnly)
	}
	return nil
}

// settled adds the option for a file without a log beside it. SQLite then needs no other files, and writes none.
func settled(path string, query url.Values) error {
	if _, err := os.Stat(path); err != nil {
		return err
	}
	wal, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && wal.Size() == 0 {
		query.Set("immutable", "1")
		return nil
	}
	return err
}

func (s *Side) check(ctx context.Context) error {
	var version int64
	err := s.db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&version)
	switch {
	case err != nil:
		return fmt.Errorf("it is not a database of Deckhand: %w", err)
	case version > sqlite.Schema:
		return sqlite.ErrNewer
	case version < sqlite.Schema:
		return errors.New("its schema is out of date: start this version of deckhand on it once, stop it, and try again")
	}
	has, err := s.Schema(ctx)
	if err != nil {
		return err
	}
	return store.CheckSchema(has, Local)
}

// String implements store.Side.
func (s *Side) String() string { return "sqlite:" + s.path }

// numberBits and number are how the key of an event holds the session's number and its own; see package sqlite.
const (
	numberBits = 32
	number     = 1<<numberBits - 1
	maxSession = 1<<31 - 1
)

// source is the table in this file, and expression a column of it.
func source(t store.Table) string {
	if t.Name == "sequences" {
		return "sqlite_sequence"
	}
	return t.Name
}

func expression(t store.Table, column string) string {
	switch {
	case t.Name == store.EventsTable && column == "n":
		return fmt.Sprintf("id >> %d", numberBits)
	case t.Name == store.EventsTable && column == "last":
		return fmt.Sprintf("id & %d", number)
	case t.Name == "sequences" && column == "value":
		return "seq"
	case column == "username":
		return "user"
	}
	return column
}

// where is the condition for the rows that travel.
func where(t store.Table) (string, []any) {
	first := t.Columns[0].Name
	switch {
	case t.Name == "sequences":
		var names []any
		for _, n := range store.Sequences {
			names = append(names, n)
		}
		return "name IN (?" + strings.Repeat(", ?", len(names)-1) + ")", names
	case t.Only != "":
		return first + " = ?", []any{t.Only}
	case t.Except != "":
		return first + " <> ?", []any{t.Except}
	}
	return "true", nil
}

// Read implements store.Side.
func (s *Side) Read(ctx context.Context, t store.Table, after []any, limit int, each func(row []any) error) error {
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, expression(t, c.Name))
	}
	key := columns[:t.Key]
	if t.Name == store.EventsTable {
		key = []string{"id"}
		if after != nil {
			after = []any{after[0].(int64)<<numberBits | after[1].(int64)}
		}
	}
	condition, args := where(t)
	if after != nil {
		condition += " AND (" + strings.Join(key, ", ") + ") > (?" + strings.Repeat(", ?", len(key)-1) + ")"
		args = append(args, after...)
	}
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT %d",
		strings.Join(columns, ", "), source(t), condition, strings.Join(key, ", "), limit), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range row {
			into[i] = &row[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		for i, c := range t.Columns {
			if row[i], err = travelling(row[i], c); err != nil {
				return fmt.Errorf("the table %s: %w", t.Name, err)
			}
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// travelling is a value in the form in which rows travel.
func travelling(v any, c store.Column) (any, error) {
	ok := true
	switch x := v.(type) {
	case nil:
	case int64:
		if ok = c.Type == store.Int; c.Type == store.Bool && x&^1 == 0 {
			return x == 1, nil
		}
	case string:
		ok = c.Type == store.Text
	case []byte:
		if ok = c.Type == store.Blob; x == nil {
			return []byte{}, nil
		}
	default:
		ok = false
	}
	if !ok {
		return nil, fmt.Errorf("the column %s has an unexpected value of type %T", c.Name, v)
	}
	return v, nil
}

// Write implements store.Side.
func (s *Side) Write(ctx context.Context, t store.Table, rows [][]any, record []byte, clear bool) error {
	return s.change(ctx, func(tx *sql.Tx) error {
		if clear {
			condition, args := where(t)
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+source(t)+" WHERE "+condition, args...); err != nil {
				return err
			}
		}
		columns := t.Names()
		if t.Name == store.EventsTable {
			columns = append([]string{"id"}, columns[t.Key:]...)
		} else {
			for i, c := range columns {
				columns[i] = expression(t, c)
			}
		}
		insert, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s (%s) VALUES (?%s)", source(t), strings.Join(columns, ", "), strings.Repeat(", ?", len(columns)-1)))
		if err != nil {
			return err
		}
		defer insert.Close()
		for _, row := range rows {
			if err := fits(t, row); err != nil {
				return err
			}
			if t.Name == "sequences" {
				if _, err := tx.ExecContext(ctx, "DELETE FROM sqlite_sequence WHERE name = ?", row[0]); err != nil {
					return err
				}
			}
			values := slices.Clone(row)
			if t.Name == store.EventsTable {
				values = append([]any{row[0].(int64)<<numberBits | row[1].(int64)}, row[t.Key:]...)
			}
			if _, err := insert.ExecContext(ctx, values...); err != nil {
				return fmt.Errorf("write to the table %s: %w", t.Name, err)
			}
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", store.MetaMove, record)
		return err
	})
}

// fits returns an error for a row whose numbers SQLite has no room for.
func fits(t store.Table, row []any) error {
	n, _ := row[0].(int64)
	switch t.Name {
	case store.EventsTable:
		if last := row[1].(int64); last < 0 || last > number {
			return fmt.Errorf("event %d has no room in a SQLite file; keep this installation on PostgreSQL", last)
		}
	case store.SessionsTable:
	default:
		return nil
	}
	if n < 0 || n > maxSession {
		return fmt.Errorf("the conversation with the internal number %d has no room in a SQLite file; keep this installation on PostgreSQL", n)
	}
	return nil
}

func (s *Side) change(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// Finish implements store.Side.
func (s *Side) Finish(ctx context.Context) error {
	if _, err := s.db.ExecContext(ctx, "UPDATE counters SET value = (SELECT coalesce(max(n), 0) FROM sessions) WHERE name = 'filed'"); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, s.path, sqlite.Options{})
	if err != nil {
		return err
	}
	return errors.Join(db.Tend(ctx, time.Time{}), db.Close())
}

// Done implements store.Side.
func (s *Side) Done(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM meta WHERE name = ?", store.MetaMove)
	return err
}

// Schema implements store.Side.
func (s *Side) Schema(ctx context.Context) (map[string][]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_xinfo(m.name) c WHERE m.type = 'table'")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string][]string{}
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			return nil, err
		}
		names := []string{column}
		switch {
		case table == "sqlite_sequence":
			table = "sequences"
			names[0] = map[string]string{"name": "name", "seq": "value"}[column]
		case table == store.EventsTable && column == "id":
			names = []string{"n", "last"}
		case column == "user":
			names[0] = "username"
		}
		all[table] = append(all[table], names...)
	}
	return all, rows.Err()
}

// Close implements store.Side.
func (s *Side) Close() error { return s.db.Close() }
