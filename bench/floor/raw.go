package floor

import (
	"context"
	"database/sql/driver"
	"fmt"
	"net/url"

	"modernc.org/sqlite"
)

// Raw is plain SQLite: the same driver, the same settings as the store, one table. The store is
// compared with it.
type Raw struct {
	conn   driver.Conn
	insert driver.StmtExecContext
	begin  driver.StmtExecContext
	commit driver.StmtExecContext
	args   []driver.NamedValue
}

// rawPragmas are those of the store's writer.
var rawPragmas = []string{"journal_mode = wal", "synchronous = full", "cache_size = -4096", "wal_autocheckpoint = 2000", "busy_timeout = 5000"}

// The two kinds of rows: one that can be found by its ID, which is the minimum for any use, and
// one that is only written.
const (
	FoundAgain  = "CREATE TABLE raw (id TEXT PRIMARY KEY, at INTEGER NOT NULL, body BLOB NOT NULL)"
	WrittenDown = "CREATE TABLE raw (n INTEGER PRIMARY KEY, id TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL)"
)

func OpenRaw(ctx context.Context, path, table string) (*Raw, error) {
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: path}).String())
	if err != nil {
		return nil, err
	}
	r := &Raw{args: []driver.NamedValue{{Ordinal: 1}, {Ordinal: 2}, {Ordinal: 3}}}
	if r.conn, err = connector.Connect(ctx); err != nil {
		return nil, err
	}
	for _, p := range rawPragmas {
		if err := r.run("PRAGMA " + p); err != nil {
			return nil, err
		}
	}
	if err := r.run(table); err != nil {
		return nil, err
	}
	for sql, to := range map[string]*driver.StmtExecContext{
		"INSERT INTO raw (id, at, body) VALUES (?, ?, ?)": &r.insert, "BEGIN IMMEDIATE": &r.begin, "COMMIT": &r.commit,
	} {
		if *to, err = r.prepare(sql); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *Raw) Close() error { return r.conn.Close() }

func (r *Raw) prepare(sql string) (driver.StmtExecContext, error) {
	s, err := r.conn.Prepare(sql)
	if err != nil {
		return nil, err
	}
	e, ok := s.(driver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("the driver's statement %T takes no context", s)
	}
	return e, nil
}

func (r *Raw) run(sql string) error {
	s, err := r.prepare(sql)
	if err == nil {
		_, err = s.ExecContext(context.Background(), nil)
	}
	return err
}

// Add inserts one row. Outside of begin and commit it is durable when it returns.
func (r *Raw) Add(id string, at int64, body []byte) error {
	r.args[0].Value, r.args[1].Value, r.args[2].Value = id, at, body
	_, err := r.insert.ExecContext(context.Background(), r.args)
	return err
}

// together inserts several rows in one durable transaction.
func (r *Raw) together(rows []*row) error {
	if _, err := r.begin.ExecContext(context.Background(), nil); err != nil {
		return err
	}
	for _, w := range rows {
		if err := r.Add(w.id, w.at, w.body); err != nil {
			return err
		}
	}
	_, err := r.commit.ExecContext(context.Background(), nil)
	return err
}
