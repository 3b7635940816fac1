package records

import (
	"context"
	"time"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/store/postgres/pg"
)

// Egress is the ledger of what leaves sandboxes.
func (s *Store) Egress() egress.Ledger { return egressLedger{s} }

// egressLedger has a type of its own because its methods have general names.
type egressLedger struct{ s *Store }

// Record implements egress.Ledger.
func (l egressLedger) Record(ctx context.Context, sandboxID string, entries []egress.Entry) error {
	if len(entries) == 0 {
		return ctx.Err()
	}
	var at, took, port, sent, received []int64
	var call, method, host, verdict, reason []string
	for _, e := range entries {
		at, took, port = append(at, pg.Micros(e.At)), append(took, e.Took.Microseconds()), append(port, int64(e.Port))
		sent, received = append(sent, e.Sent), append(received, e.Received)
		call, method, host = append(call, e.Call), append(method, e.Method), append(host, e.Host)
		verdict, reason = append(verdict, string(e.Verdict)), append(reason, e.Reason)
	}
	return l.s.DB.Update(ctx, func(c *pg.Conn) error {
		if err := c.Lock(pg.LockSandbox, sandboxID); err != nil {
			return err
		}
		var last int64
		if _, err := c.One("SELECT max(id) FROM deckhand.egress WHERE sandbox = $1", func(v []any) { last = pg.Number(v[0]) }, sandboxID); err != nil {
			return err
		}
		_, err := c.Exec(`INSERT INTO deckhand.egress (sandbox, id, at, took, call, method, host, port, sent, received, verdict, reason)
			SELECT $1, $2 + i.ord, i.at, i.took, i.call, i.method, i.host, i.port, i.sent, i.received, i.verdict, i.reason
			FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[], $12::text[])
				WITH ORDINALITY AS i (at, took, call, method, host, port, sent, received, verdict, reason, ord)`,
			sandboxID, last, at, took, call, method, host, port, sent, received, verdict, reason)
		if err != nil {
			return err
		}
		_, err = c.Exec("DELETE FROM deckhand.egress WHERE sandbox = $1 AND id <= $2", sandboxID, last+int64(len(entries))-egress.KeptEntries)
		return err
	})
}

// Entries implements egress.Ledger.
func (l egressLedger) Entries(ctx context.Context, sandboxID string, before int64, limit int) (entries []egress.Entry, err error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	if before <= 0 {
		before = 1<<63 - 1
	}
	err = l.s.DB.View(ctx, func(c *pg.Conn) error {
		return c.Query(`SELECT id, at, took, call, method, host, port, sent, received, verdict, reason FROM deckhand.egress
			WHERE sandbox = $1 AND id < $2 ORDER BY id DESC LIMIT $3`, func(v []any) error {
			entries = append(entries, egress.Entry{
				ID: pg.Number(v[0]), At: pg.Moment(v[1]), Took: time.Duration(pg.Number(v[2])) * time.Microsecond, Call: pg.Text(v[3]), Method: pg.Text(v[4]),
				Host: pg.Text(v[5]), Port: uint16(pg.Number(v[6])), Sent: pg.Number(v[7]), Received: pg.Number(v[8]), Verdict: egress.Verdict(pg.Text(v[9])), Reason: pg.Text(v[10]),
			})
			return nil
		}, sandboxID, before, int64(limit))
	})
	return entries, err
}

// Forget implements egress.Ledger.
func (l egressLedger) Forget(ctx context.Context, sandboxID string) error {
	return l.s.DB.Update(ctx, func(c *pg.Conn) error {
		_, err := c.Exec("DELETE FROM deckhand.egress WHERE sandbox = $1", sandboxID)
		return err
	})
}
