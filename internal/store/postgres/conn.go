package postgres

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Every statement ends after a while, whatever becomes of who asked for it, and none waits long
// for a lock. They are set for each transaction: a connection may be another one the next time.
const (
	statementTimeout = 30 * time.Second
	lockTimeout      = 10 * time.Second
)

var (
	// nested makes the database look up rows by index, in the order in which they are given: groups then lock sessions
	// in the same order, whatever the planner thinks of the sizes of tables.
	nested = ", set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)"
	limits = "set_config('statement_timeout', '" + millis(statementTimeout) + "', true), set_config('lock_timeout', '" + millis(lockTimeout) + "', true)"
	// durable is for what is written: what was answered must survive, also where others may lose what they wrote last.
	durable = limits + ", CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END"

	beginRead  = "SELECT " + limits
	beginWrite = "SELECT " + durable
	beginGroup = beginWrite + nested
)

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// conn is one connection. It is used by one goroutine at a time.
type conn struct {
	raw  *pgconn.PgConn
	ctx  context.Context // of the one who uses it
	born time.Time
	idle time.Time // since; zero if it was never used
	gave bool      // rows, to who uses it
	// inside is true in a transaction that was begun.
	inside bool
	// fresh are the queues that the transaction changed.
	fresh map[string]bool
}

// binary1 asks for results in their binary form.
var binary1 = []int16{1}

// exec runs a statement, and returns how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int64, error) {
	p, err := encode(args)
	if err != nil {
		return 0, err
	}
	tag, err := c.raw.ExecParams(c.ctx, sql, p.values, p.oids, p.formats, nil).Close()
	return tag.RowsAffected(), failed(err)
}

// enough is returned by a row function to stop early.
var enough = io.EOF

// query calls each for every row. The slice is valid during the call only, and each must not use
// the connection. Outside of a transaction the statement is one itself.
func (c *conn) query(sql string, each func(row []any) error, args ...any) error {
	p, err := encode(args)
	if err != nil {
		return err
	}
	taking := func(row []any) error {
		c.gave = true
		return each(row)
	}
	if c.inside {
		return rowsOf(c.raw.ExecParams(c.ctx, sql, p.values, p.oids, p.formats, binary1), taking)
	}
	var b pgconn.Batch
	b.ExecParams(beginRead, nil, nil, nil, nil)
	b.ExecParams(sql, p.values, p.oids, p.formats, binary1)
	return c.last(&b, taking)
}

// last runs statements in one round trip and one transaction, and reads the rows of the last.
func (c *conn) last(b *pgconn.Batch, each func(row []any) error) error {
	results := c.raw.ExecBatch(c.ctx, b)
	var bad error
	for results.NextResult() {
		r := results.ResultReader()
		if len(r.FieldDescriptions()) == 0 || r.FieldDescriptions()[0].Format == 0 { // one before the last
			if _, err := r.Close(); err != nil {
				bad = errors.Join(bad, failed(err))
			}
			continue
		}
		bad = errors.Join(bad, rowsOf(r, each))
	}
	if err := results.Close(); err != nil {
		return failed(err)
	}
	return bad
}

// rowsOf reads all rows of a result.
func rowsOf(r *pgconn.ResultReader, each func(row []any) error) error {
	var bad error
	var row []any
	for bad == nil && r.NextRow() {
		row = row[:0]
		for i, b := range r.Values() {
			v, err := decode(r.FieldDescriptions()[i], b)
			if err != nil {
				bad = err
			}
			row = append(row, v)
		}
		if bad == nil {
			bad = each(row)
		}
	}
	if _, err := r.Close(); err != nil {
		return failed(err)
	}
	if bad == enough {
		return nil
	}
	return bad
}

// one reads a single row into a function and says whether there was one.
func (c *conn) one(sql string, get func(row []any), args ...any) (found bool, err error) {
	err = c.query(sql, func(row []any) error {
		get(row)
		found = true
		return enough
	}, args...)
	return found, err
}

// script runs several statements without parameters.
func (c *conn) script(sql string) error {
	_, err := c.raw.Exec(c.ctx, sql).ReadAll()
	return failed(err)
}

// begin starts a transaction.
func (c *conn) begin() error {
	clear(c.fresh)
	if err := c.script("BEGIN; " + beginWrite); err != nil {
		return err
	}
	c.inside = true
	return nil
}

// commit makes it durable.
func (c *conn) commit() error {
	c.inside = false
	results, err := c.raw.Exec(c.ctx, "COMMIT").ReadAll()
	if err == nil && (len(results) != 1 || results[0].CommandTag.String() != "COMMIT") {
		err = errors.New("the transaction was undone, because a statement in it had failed")
	}
	return failed(err)
}

// rollback undoes it.
func (c *conn) rollback() {
	c.inside = false
	if c.raw.IsClosed() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), closeTimeout)
	defer stop()
	if _, err := c.raw.Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
		_ = c.raw.Close(ctx)
	}
}

// lock keeps others from what goes by the same name until the transaction ends.
func (c *conn) lock(kind int32, name string) error {
	_, err := c.exec("SELECT pg_advisory_xact_lock($1::int, $2::int)", int64(kind), int64(digest(name)))
	return err
}
