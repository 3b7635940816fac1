package pg

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Time limits of statements, also of those whose caller has gone, and of waiting for locks. They are
// set for each transaction, because a pooler may use another connection for the next one.
const (
	StatementTimeout = 30 * time.Second
	LockTimeout      = 10 * time.Second
)

// settings are settings of the database and their values.
type settings []string

var (
	// indexed makes the database look up rows by index, whatever the planner thinks of the sizes of tables: after many inserts
	// it does not know them for minutes. Compilation is off because a plan that cannot avoid a scan counts as expensive.
	indexed = settings{"enable_seqscan", "off", "jit", "off"}
	// nested makes it look them up in the order in which they are given: groups then lock sessions in the same order.
	nested = slices.Concat(settings{"enable_hashjoin", "off", "enable_mergejoin", "off"}, indexed)
	limits = settings{"statement_timeout", millis(StatementTimeout), "lock_timeout", millis(LockTimeout)}
	// watched makes the database notice soon that packets are dropped in the middle of a write: by default it takes two hours, and
	// the locks of the write remain.
	watched = slices.Concat(limits, settings{"idle_in_transaction_session_timeout", millis(Limit), "tcp_keepalives_idle", "15", "tcp_keepalives_interval", "5", "tcp_keepalives_count", "3"})

	// Pages of lists are read in the order of an index.
	beginRead  = slices.Concat(settings{"enable_sort", "off"}, limits, indexed).sql(true)
	BeginWrite = watched.sql(true) + durable(true)
	BeginGroup = slices.Concat(nested, watched).sql(true) + durable(true)
	// beginGroups is BeginGroup for all transactions of a connection.
	beginGroups = slices.Concat(nested, watched).sql(false) + durable(false)
)

// sql is a statement that sets them, until the end of the transaction if local is true.
func (s settings) sql(local bool) string {
	var calls []string
	for i := 0; i < len(s); i += 2 {
		calls = append(calls, fmt.Sprintf("set_config('%s', '%s', %v)", s[i], s[i+1], local))
	}
	return "SELECT " + strings.Join(calls, ", ")
}

// durable adds what a write needs to survive a crash even if synchronous_commit is off for the database.
func durable(local bool) string {
	return fmt.Sprintf(", CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', %v) END", local)
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
	// prepared are the names of the statements that Run has prepared; nil if the connection keeps nothing.
	prepared map[string]string
}

// Keep makes the connection keep what Run would otherwise send with each group: the settings of BeginGroup and the plans of statements, which cost
// more than running them. A pooler may use another connection for each transaction, which knows neither; then nothing is kept. It
// is recognized by its process: another one than that with which this connection was opened.
func (c *Conn) Keep() error {
	same := false
	if _, err := c.One("SELECT pg_backend_pid()::bigint", func(v []any) { same = Number(v[0]) == int64(c.raw.PID()) }); err != nil || !same {
		return err
	}
	if err := c.Script(beginGroups); err != nil {
		return err
	}
	c.prepared = map[string]string{}
	return nil
}

// Keeps reports whether the connection keeps settings and plans.
func (c *Conn) Keeps() bool { return c.prepared != nil }

// prepare returns the name under which a statement is prepared, or "".
func (c *Conn) prepare(s statement) (name string, err error) {
	if !c.Keeps() {
		return "", nil
	}
	name, ok := c.prepared[s.sql]
	if ok {
		return name, nil
	}
	name = "deckhand_" + strconv.Itoa(len(c.prepared))
	if _, err = c.raw.Prepare(c.ctx, name, s.sql, s.params.oids); err == nil {
		c.prepared[s.sql] = name
	}
	return name, err
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
	b.all = []statement{{sql: beginRead}, {sql, p, binaryFormat}}
	return c.Run(&b, taking)
}

// Batch is several statements that run in one round trip and one transaction.
type Batch struct{ all []statement }

type statement struct {
	sql     string
	params  params
	formats []int16 // of the columns of its rows
}

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
	b.all = append(b.all, statement{sql, p, formats})
	return nil
}

// Run runs a batch and calls each for the rows that are to be read.
func (c *Conn) Run(b *Batch, each func(row []any) error) error {
	var raw pgconn.Batch
	for _, s := range b.all {
		name, err := c.prepare(s)
		switch {
		case err != nil:
			return failed(err)
		case name != "":
			raw.ExecPrepared(name, s.params.values, s.params.formats, s.formats)
		default:
			raw.ExecParams(s.sql, s.params.values, s.params.oids, s.params.formats, s.formats)
		}
	}
	results := c.raw.ExecBatch(c.ctx, &raw)
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
