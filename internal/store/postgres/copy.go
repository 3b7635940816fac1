package postgres

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"deckhand/internal/store/postgres/pg"
)

// A dump is a list of tables in an order in which they can be filled, and then the sequences. Each part is a header as JSON,
// and the rows of a table in the text form of COPY, which does not depend on the version of the server. Headers and rows are
// preceded by their length; an empty row ends a table.

// part is the header of a part.
type part struct {
	Table   string   `json:"table,omitempty"`
	Columns []string `json:"columns,omitempty"`
	Key     []string `json:"key,omitempty"`
	// Sequences are the last numbers that were given away, or NULL.
	Sequences map[string]*int64 `json:"sequences,omitempty"`
}

// left are the tables that are not dumped: they are about this database.
var left = []string{"schema_version", "server_lease"}

// beginDump begins a transaction that sees the database as it is at one moment. Rows come in the order of their keys, and an index has
// them in this order.
const beginDump = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; ` + dumpForm

const dumpForm = `SET LOCAL enable_sort = off; SET LOCAL bytea_output = 'hex'; SET LOCAL datestyle = 'ISO'; SET LOCAL timezone = 'UTC'`

// Copy writes the database as it is at one moment, and returns the version of its schema. Others may write to it at the same
// time. It changes nothing: the database may be of an earlier version.
func Copy(ctx context.Context, address string, w io.Writer) (v int64, err error) {
	err = withConn(ctx, address, func(c *pg.Conn) error {
		return c.Transaction(beginDump, func() error {
			if v, _, err = version(c); err != nil {
				return err
			}
			if v == 0 {
				return errors.New("the database contains no Deckhand data")
			}
			return dump(c, w)
		})
	})
	return v, err
}

// Empty returns an error if the database has data.
func Empty(ctx context.Context, address string) error {
	return withConn(ctx, address, func(c *pg.Conn) error {
		v, _, err := version(c)
		if err == nil && v > 0 {
			err = errors.New("the database is not empty; use an empty one")
		}
		return err
	})
}

// Joins returns an error unless the database belongs to the installation and no server with this name uses it. It waits until the
// server's lease ends, which can remain when the server is killed or the database is copied.
func Joins(ctx context.Context, address, installation, server string) error {
	return withConn(ctx, address, func(c *pg.Conn) error {
		v, _, err := version(c)
		if err != nil {
			return err
		}
		has, runs := "", false
		if v > 0 {
			if _, err := c.One("SELECT value FROM deckhand.meta WHERE name = 'instance'", func(v []any) { has = string(pg.Bytes(v[0])) }); err != nil {
				return err
			}
			for begin := time.Now(); ; {
				if runs, err = c.One(`SELECT true FROM deckhand.members WHERE machine = $1 AND expires > clock_timestamp()
				UNION ALL SELECT true FROM deckhand.server_lease WHERE server = $1 AND expires > clock_timestamp()`, func([]any) {}, server); err != nil {
					return err
				}
				if has != installation || !runs || time.Since(begin) > leaseWait {
					break
				}
				select {
				case <-time.After(leasePoll):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
		switch {
		case has != installation:
			return errors.New("the backup belongs to another installation than the database; restore the database first, from a backup of the same installation")
		case runs:
			return errors.New("the server with these workspaces is running; stop it first")
		}
		return nil
	})
}

// Load fills an empty database from a dump in one transaction, and compares the result with the dump.
func Load(ctx context.Context, address string, v int64, r io.Reader) error {
	if v > schema {
		return fmt.Errorf("%w (its version is %d, this program knows up to %d)", pg.ErrNewer, v, schema)
	}
	return withConn(ctx, address, func(c *pg.Conn) error {
		return c.Transaction("BEGIN; SET LOCAL lock_timeout = '5min'; SET LOCAL statement_timeout = 0; "+dumpForm, func() error {
			if before, _, err := version(c); err != nil || before > 0 {
				return errors.Join(err, errors.New("the database is not empty; use an empty one"))
			}
			if err := runMissing(c, v); err != nil {
				return err
			}
			read, stored := sha256.New(), sha256.New()
			if err := load(c, bufio.NewReader(io.TeeReader(r, read))); err != nil {
				return err
			}
			if err := dump(c, stored); err != nil {
				return err
			}
			if !bytes.Equal(read.Sum(nil), stored.Sum(nil)) {
				return errors.New("the restored database differs from the backup")
			}
			return MarkCopy(c)
		})
	})
}

// withConn runs do with a connection of its own.
func withConn(ctx context.Context, address string, do func(*pg.Conn) error) error {
	config, _, err := parse(address)
	if err != nil {
		return err
	}
	db := pg.New(config, 1)
	defer db.Close()
	c, err := db.Connect(ctx)
	if err == nil {
		defer db.End(c)
		c.Use(ctx)
		err = do(c)
	}
	if err != nil {
		return fmt.Errorf("the database %s on %s: %w", config.Database, config.Host, pg.Explain(err))
	}
	return nil
}

// tables finds the tables in an order in which rows refer only to tables before.
func tables(c *pg.Conn) ([]part, error) {
	var all []part
	refers := map[string][]string{}
	err := c.Query(`SELECT r.relname::text,
			(SELECT string_agg(a.attname::text, ' ' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped),
			(SELECT string_agg(a.attname::text, ' ' ORDER BY k.at) FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (n, at), pg_attribute a
				WHERE i.indrelid = r.oid AND i.indisprimary AND a.attrelid = r.oid AND a.attnum = k.n),
			(SELECT string_agg(f.relname::text, ' ') FROM pg_constraint o JOIN pg_class f ON f.oid = o.confrelid WHERE o.conrelid = r.oid AND o.contype = 'f')
		FROM pg_class r WHERE r.relnamespace = 'deckhand'::regnamespace AND r.relkind IN ('r', 'p') AND NOT r.relispartition ORDER BY 1`, func(v []any) error {
		name := pg.Text(v[0])
		if !slices.Contains(left, name) {
			all = append(all, part{Table: name, Columns: strings.Fields(pg.Text(v[1])), Key: strings.Fields(pg.Text(v[2]))})
			refers[name] = strings.Fields(pg.Text(v[3]))
		}
		return nil
	})
	var sorted []part
	for len(all) > 0 && err == nil {
		n := len(all)
		all = slices.DeleteFunc(all, func(p part) bool {
			for _, other := range refers[p.Table] {
				if other != p.Table && !slices.ContainsFunc(sorted, func(s part) bool { return s.Table == other }) {
					return false
				}
			}
			sorted = append(sorted, p)
			return true
		})
		if len(all) == n {
			err = errors.New("the tables have circular references")
		}
	}
	return sorted, err
}

// framed writes what comes in pieces, each preceded by its length.
type framed struct{ to io.Writer }

func (f framed) Write(p []byte) (int, error) {
	if _, err := f.to.Write(binary.AppendUvarint(nil, uint64(len(p)))); err != nil {
		return 0, err
	}
	return f.to.Write(p)
}

func dump(c *pg.Conn, w io.Writer) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	out := framed{buffered}
	all, err := tables(c)
	if err != nil {
		return err
	}
	for _, p := range all {
		head, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if _, err := out.Write(head); err != nil {
			return err
		}
		if err := c.CopyTo(out, "COPY (SELECT "+quoted(p.Columns)+" FROM deckhand."+quoted([]string{p.Table})+" ORDER BY "+quoted(p.Key)+") TO STDOUT"); err != nil {
			return err
		}
		if _, err := out.Write(nil); err != nil {
			return err
		}
	}
	last := part{Sequences: map[string]*int64{}}
	err = c.Query("SELECT sequencename::text, last_value FROM pg_sequences WHERE schemaname = 'deckhand'", func(v []any) error {
		last.Sequences[pg.Text(v[0])] = nil
		if n, ok := v[1].(int64); ok {
			last.Sequences[pg.Text(v[0])] = &n
		}
		return nil
	})
	if err != nil {
		return err
	}
	head, err := json.Marshal(last)
	if err != nil {
		return err
	}
	if _, err := out.Write(head); err != nil {
		return err
	}
	return buffered.Flush()
}

// quoted is a list of names in a statement.
func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(`"` + strings.ReplaceAll(n, `"`, `""`) + `"`)
	}
	return b.String()
}

// maxHeader bounds a header.
const maxHeader = 1 << 20

func load(c *pg.Conn, r *bufio.Reader) error {
	known, err := tables(c)
	if err != nil {
		return err
	}
	for {
		size, err := binary.ReadUvarint(r)
		if err != nil || size > maxHeader {
			return errors.Join(err, errors.New("the dump is truncated"))
		}
		head := make([]byte, size)
		if _, err := io.ReadFull(r, head); err != nil {
			return err
		}
		var p part
		if err := json.Unmarshal(head, &p); err != nil {
			return err
		}
		if p.Table == "" {
			return setSequences(c, p, r)
		}
		if !slices.ContainsFunc(known, func(k part) bool { return k.Table == p.Table && slices.Equal(k.Columns, p.Columns) }) {
			return fmt.Errorf("the table %s is not one of this version", p.Table)
		}
		name := "deckhand." + quoted([]string{p.Table})
		if _, err := c.Exec("DELETE FROM " + name); err != nil { // what a migration has stored
			return err
		}
		rows := &rows{in: r}
		if err := c.CopyFrom(rows, "COPY "+name+" ("+quoted(p.Columns)+") FROM STDIN"); err != nil {
			return fmt.Errorf("table %s: %w", p.Table, err)
		}
		if !rows.done {
			return errors.New("the dump is truncated")
		}
	}
}

// rows reads the rows of a table.
type rows struct {
	in   *bufio.Reader
	left uint64
	done bool
}

func (f *rows) Read(p []byte) (int, error) {
	if f.left == 0 && !f.done {
		size, err := binary.ReadUvarint(f.in)
		if err != nil {
			return 0, errors.Join(errors.New("the dump is truncated"), err)
		}
		f.left, f.done = size, size == 0
	}
	if f.done {
		return 0, io.EOF
	}
	n, err := f.in.Read(p[:min(uint64(len(p)), f.left)])
	f.left -= uint64(n)
	return n, err
}

func setSequences(c *pg.Conn, p part, r *bufio.Reader) error {
	for name, at := range p.Sequences {
		if at == nil {
			continue
		}
		if _, err := c.Exec("SELECT setval(s.oid, $2) FROM pg_class s WHERE s.relnamespace = 'deckhand'::regnamespace AND s.relkind = 'S' AND s.relname = $1", name, *at); err != nil {
			return err
		}
	}
	if _, err := r.ReadByte(); err != io.EOF { // also checks the hash of the stream
		return errors.Join(err, errors.New("the dump has data after its end"))
	}
	return nil
}
