package pg

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Time limits of statements, also of those whose caller has gone, and of waiting for locks. They are
// set for each transaction, because a pooler may use another connection for the next one.
const (
	StatementTimeout = 30 * time.Second
	LockTimeout      = 10 * time.Second
)

var (
	// indexed makes the database look up rows by index, whatever the planner thinks of the sizes of tables: after many inserts
	// it does not know them for minutes. Compilation is off because a plan that cannot avoid a scan counts as expensive.
	indexed = off("enable_seqscan", "jit")
	// nested makes it look them up in the order in which they are given: groups then lock sessions in the same order.
	nested = off("enable_hashjoin", "enable_mergejoin") + indexed
	limits = "set_config('statement_timeout', '" + millis(StatementTimeout) + "', true), set_config('lock_timeout', '" + millis(LockTimeout) + "', true)"
	// durable is for writes: they must survive a crash even if synchronous_commit is off for the database. If packets are dropped in
	// the middle of a write, the database must notice soon: by default it takes two hours, and the locks of the write remain.
	durable = limits + ", set_config('idle_in_transaction_session_timeout', '" + millis(Limit) + "', true)" +
		", set_config('tcp_keepalives_idle', '15', true), set_config('tcp_keepalives_interval', '5', true), set_config('tcp_keepalives_count', '3', true)" +
		", CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true) END"

	// Pages of lists are read in the order of an index.
	beginRead  = "SELECT " + limits + indexed + off("enable_sort")
	BeginWrite = "SELECT " + durable
	BeginGroup = BeginWrite + nested
)

// off returns expressions that switch settings off until the end of the transaction.
func off(settings ...string) (sql string) {
	for _, name := range settings {
		sql += ", set_config('" + name + "', 'off', true)"
	}
	return sql
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Conn is one connection. It is used by one goroutine at a time.
type Conn struct {
	raw  *pgconn.PgConn
	ctx  context.Context // of the current user
	born time.Time
	idle time.Time // since; zero if it was never used
	gave bool      // whether rows were passed to the caller
	// inside is true in a transaction that was begun.
	inside bool
	// fresh are the queues that the transaction changed.
	fresh map[string]bool
}

// binaryFormat asks for results in their binary form.
var binaryFormat = []int16{1}

// Exec runs a statement, and returns how many rows it changed. Outside a transaction, the statement is a transaction of its own.
func (c *Conn) Exec(sql string, args ...any) (int64, error) {
	p, err := encode(args)
	if err != nil {
		return 0, err
	}
	if c.inside {
		tag, err := c.raw.ExecParams(c.ctx, sql, p.values, p.oids, p.formats, nil).Close()
		return tag.RowsAffected(), failed(err)
	}
	var b pgconn.Batch
	b.ExecParams(BeginWrite, nil, nil, nil, nil)
	b.ExecParams(sql, p.values, p.oids, p.formats, nil)
	results, err := c.raw.ExecBatch(c.ctx, &b).ReadAll()
	if err != nil {
		return 0, failed(err)
	}
	return results[len(results)-1].CommandTag.RowsAffected(), nil
}

// Enough is returned by a row function to stop early.
var Enough = io.EOF

// Query calls each for every row. The slice is valid during the call only, and each must not use
// the connection. Outside a transaction, the statement is a transaction of its own.
func (c *Conn) Query(sql string, each func(row []any) error, args ...any) error {
	p, err := encode(args)
	if err != nil {
		return err
	}
	taking := func(row []any) error {
		c.gave = true
		return each(row)
	}
	if c.inside {
		return rowsOf(c.raw.ExecParams(c.ctx, sql, p.values, p.oids, p.formats, binaryFormat), taking)
	}
	var b Batch
	b.raw.ExecParams(beginRead, nil, nil, nil, nil)
	b.raw.ExecParams(sql, p.values, p.oids, p.formats, binaryFormat)
	return c.Run(&b, taking)
}

// Batch is several statements that run in one round trip and one transaction.
type Batch struct{ raw pgconn.Batch }

// Add adds a statement. rows says whether its rows are to be read.
func (b *Batch) Add(sql string, rows bool, args ...any) error {
	p, err := encode(args)
	if err != nil {
		return err
	}
	var formats []int16
	if rows {
		formats = binaryFormat
	}
	b.raw.ExecParams(sql, p.values, p.oids, p.formats, formats)
	return nil
}

// Run runs a batch and calls each for the rows that are to be read.
func (c *Conn) Run(b *Batch, each func(row []any) error) error {
	results := c.raw.ExecBatch(c.ctx, &b.raw)
	var bad error
	for results.NextResult() {
		r := results.ResultReader()
		if len(r.FieldDescriptions()) == 0 || r.FieldDescriptions()[0].Format == 0 { // not to be read
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
	if bad == Enough {
		return nil
	}
	return bad
}

// One reads a single row into a function and says whether there was one.
func (c *Conn) One(sql string, get func(row []any), args ...any) (found bool, err error) {
	err = c.Query(sql, func(row []any) error {
		get(row)
		found = true
		return Enough
	}, args...)
	return found, err
}

// Script runs several statements without parameters.
func (c *Conn) Script(sql string) error {
	_, err := c.raw.Exec(c.ctx, sql).ReadAll()
	return failed(err)
}

// CopyTo writes the output of a COPY statement.
func (c *Conn) CopyTo(w io.Writer, sql string) error {
	_, err := c.raw.CopyTo(c.ctx, w, sql)
	return failed(err)
}

// CopyFrom feeds a COPY statement.
func (c *Conn) CopyFrom(r io.Reader, sql string) error {
	_, err := c.raw.CopyFrom(c.ctx, r, sql)
	return failed(err)
}

// begin starts a transaction with a script.
func (c *Conn) begin(script string) error {
	clear(c.fresh)
	if err := c.Script(script); err != nil {
		return err
	}
	c.inside = true
	return nil
}

// commit commits the transaction.
func (c *Conn) commit() error {
	c.inside = false
	results, err := c.raw.Exec(c.ctx, "COMMIT").ReadAll()
	if err == nil && (len(results) != 1 || results[0].CommandTag.String() != "COMMIT") {
		err = errors.New("the transaction was rolled back because a statement in it failed")
	}
	return failed(err)
}

// rollback rolls the transaction back. If that fails, the connection is closed.
func (c *Conn) rollback() {
	c.inside = false
	if c.raw.IsClosed() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(c.ctx), CloseTimeout)
	defer stop()
	if _, err := c.raw.Exec(ctx, "ROLLBACK").ReadAll(); err != nil {
		_ = c.raw.Close(ctx)
	}
}

// Lock takes the advisory lock with this name until the transaction ends.
func (c *Conn) Lock(kind int32, name string) error {
	_, err := c.Exec("SELECT pg_advisory_xact_lock($1::int, $2::int)", int64(kind), int64(Digest(name)))
	return err
}

// Digest is the number of a name in locks and in the search index. Names with the same number
// only wait for each other.
func Digest(name string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int32(h.Sum32())
}

// Stale reports whether a connection that was idle should be replaced.
func (c *Conn) Stale() bool { return c.ended() || c.unresponsive() }

func (c *Conn) ended() bool { return c.raw.IsClosed() || time.Since(c.born) > maxAge }

// unresponsive reports whether the server does not respond on a connection that was idle for a while.
func (c *Conn) unresponsive() bool {
	if time.Since(c.idle) <= idleCheck {
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), CloseTimeout)
	defer stop()
	return c.raw.Ping(ctx) != nil
}

// Use sets the context of the next statements of a connection outside of the pool.
func (c *Conn) Use(ctx context.Context) { c.ctx, c.idle = ctx, time.Now() }

// MarkDue records that the transaction makes items of a queue due.
func (c *Conn) MarkDue(queue string) { c.fresh[queue] = true }
