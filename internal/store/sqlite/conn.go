package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net/url"
	"time"

	"modernc.org/sqlite"
)

// conn is one connection with its prepared statements. It is used by one
// goroutine at a time.
type conn struct {
	raw   driver.Conn
	stmts map[string]prepared
	args  []driver.NamedValue
	row   []driver.Value
	known facts // of the transaction that is under way
}

// prepared is what the driver's statements can do.
type prepared interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// dsn is the address of a file for the driver. The path may contain any character.
func dsn(path string, query url.Values) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return u.String()
}

func connect(ctx context.Context, dsn string, pragmas ...string) (*conn, error) {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	raw, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &conn{raw: raw, stmts: map[string]prepared{}}
	for _, p := range pragmas {
		if err := c.query("PRAGMA "+p, func([]driver.Value) error { return nil }); err != nil {
			c.close()
			return nil, fmt.Errorf("PRAGMA %s: %w", p, err)
		}
	}
	return c, nil
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	c.stmts = nil
	return c.raw.Close()
}

func (c *conn) prepare(sql string) (prepared, error) {
	if s, ok := c.stmts[sql]; ok {
		return s, nil
	}
	s, err := c.raw.Prepare(sql)
	if err != nil {
		return nil, err
	}
	p, ok := s.(prepared)
	if !ok {
		return nil, fmt.Errorf("the driver's statement %T lacks contexts", s)
	}
	c.stmts[sql] = p
	return p, nil
}

// named puts args into the driver's form, in a slice that is used again.
func (c *conn) named(args []driver.Value) []driver.NamedValue {
	c.args = c.args[:0]
	for i, v := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return c.args
}

// exec runs a statement without result rows, and returns how many rows it changed. sql must be
// one of few texts: its prepared statement is kept.
func (c *conn) exec(sql string, args ...driver.Value) (int64, error) {
	res, err := c.run(sql, args)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (c *conn) run(sql string, args []driver.Value) (driver.Result, error) {
	s, err := c.prepare(sql)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(context.Background(), c.named(args))
	clear(c.args) // what was bound may be large
	return res, err
}

// enough is returned by a row function to stop early.
var enough = io.EOF

// query calls each for every row. The slice is valid during the call only, and
// each must not use the connection; texts and blobs are copies and may be kept.
func (c *conn) query(sql string, each func(row []driver.Value) error, args ...driver.Value) error {
	s, err := c.prepare(sql)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), c.named(args))
	clear(c.args)
	if err != nil {
		return err
	}
	n := len(rows.Columns())
	if cap(c.row) < n {
		c.row = make([]driver.Value, n)
	}
	row := c.row[:n]
	for err == nil {
		if err = rows.Next(row); err == nil {
			err = each(row)
		}
	}
	clear(row)
	if closeErr := rows.Close(); err == io.EOF {
		err = closeErr
	}
	return err
}

// one reads a single row into a function and says whether there was one.
func (c *conn) one(sql string, get func(row []driver.Value), args ...driver.Value) (found bool, err error) {
	err = c.query(sql, func(row []driver.Value) error {
		get(row)
		found = true
		return enough
	}, args...)
	return found, err
}

// The values that go in and come out.

// micros is how a time is stored.
func micros(t time.Time) driver.Value { return t.UnixMicro() }

func moment(v driver.Value) time.Time { return time.UnixMicro(number(v)).UTC() }

func number(v driver.Value) int64 {
	n, _ := v.(int64)
	return n
}

// text is the string of a column that may be NULL.
func text(v driver.Value) string {
	s, _ := v.(string)
	return s
}

func truth(b bool) driver.Value {
	if b {
		return int64(1)
	}
	return int64(0)
}

// bytesOf is a blob; nil and empty are the same.
func bytesOf(v driver.Value) []byte {
	b, _ := v.([]byte)
	return b
}
