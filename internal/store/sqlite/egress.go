package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"deckhand/internal/sandbox/egress"
)

// Egress is the ledger of what leaves sandboxes.
func (db *DB) Egress() egress.Ledger { return egressLedger{db} }

// egressLedger has a type of its own because its methods have general names.
type egressLedger struct{ db *DB }

// entrySize is about what an entry adds to a commit beside its texts.
const entrySize = 64

// Record implements egress.Ledger.
func (l egressLedger) Record(ctx context.Context, sandboxID string, entries []egress.Entry) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	size := 0
	for _, e := range entries {
		size += entrySize + len(sandboxID) + len(e.Call) + len(e.Host) + len(e.Reason)
	}
	return l.db.write(ctx, size, func(c *conn) error {
		var last int64
		_, err := c.one("SELECT max(id) FROM egress WHERE sandbox = ?", func(v []driver.Value) { last = number(v[0]) }, sandboxID)
		if err != nil {
			return err
		}
		for _, e := range entries {
			last++
			_, err := c.exec(`INSERT INTO egress (sandbox, id, at, took, call, method, host, port, sent, received, verdict, reason)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
				sandboxID, last, micros(e.At), e.Took.Microseconds(), e.Call, e.Method, e.Host, int64(e.Port), e.Sent, e.Received, string(e.Verdict), e.Reason)
			if err != nil {
				return err
			}
		}
		_, err = c.exec("DELETE FROM egress WHERE sandbox = ? AND id <= ?", sandboxID, last-egress.KeptEntries)
		return err
	})
}

// Entries implements egress.Ledger. It stops reading by itself in place of a
// LIMIT, which costs a statement per value.
func (l egressLedger) Entries(ctx context.Context, sandboxID string, before int64, limit int) (entries []egress.Entry, err error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	if before <= 0 {
		before = 1<<63 - 1
	}
	err = l.db.readers.read(ctx, func(c *conn) error {
		return c.query(`SELECT id, at, took, call, method, host, port, sent, received, verdict, reason FROM egress
			WHERE sandbox = ? AND id < ? ORDER BY id DESC`, func(v []driver.Value) error {
			entries = append(entries, egress.Entry{
				ID: number(v[0]), At: moment(v[1]), Took: time.Duration(number(v[2])) * time.Microsecond, Call: text(v[3]), Method: text(v[4]),
				Host: text(v[5]), Port: uint16(number(v[6])), Sent: number(v[7]), Received: number(v[8]), Verdict: egress.Verdict(text(v[9])), Reason: text(v[10]),
			})
			if len(entries) == limit {
				return enough
			}
			return nil
		}, sandboxID, before)
	})
	return entries, err
}

// forgetPiece is how many entries are removed in one go: others write in between.
const forgetPiece = 1000

// Forget implements egress.Ledger.
func (l egressLedger) Forget(ctx context.Context, sandboxID string) error {
	for {
		var removed int64
		err := l.db.writeAtLast(ctx, 0, true, func(c *conn) (err error) {
			removed, err = c.exec("DELETE FROM egress WHERE sandbox = ? AND id < (SELECT min(id) FROM egress WHERE sandbox = ?) + ?",
				sandboxID, sandboxID, int64(forgetPiece))
			return err
		})
		if err != nil || removed < forgetPiece {
			return err
		}
	}
}
