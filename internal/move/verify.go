package move

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"math/bits"
	"strings"

	"deckhand/internal/session"
	"deckhand/internal/store"
)

// ErrDiffers is the error of a copy that differs from the source.
var ErrDiffers = errors.New("the copy differs from the source")

// maxNamed is the maximum number of conversations that ErrDiffers lists.
const maxNamed = 10

// Digest is a digest of a table: the sum of the SHA-256 of each row in canonical form. It is independent of the order of
// rows, because databases sort texts differently.
type Digest struct {
	Rows int64
	sum  [4]uint64
}

func (d *Digest) add(row []any) {
	h := sha256.New()
	canonical(h, row)
	var sum [sha256.Size]byte
	h.Sum(sum[:0])
	carry := uint64(0)
	for i := range d.sum {
		d.sum[i], carry = bits.Add64(d.sum[i], binary.LittleEndian.Uint64(sum[8*i:]), carry)
	}
	d.Rows++
}

// String returns the digest in hexadecimal.
func (d Digest) String() string {
	var b []byte
	for _, n := range d.sum {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return hex.EncodeToString(b)
}

// canonical hashes a row in a form that is independent of the database: each value with its type and length.
func canonical(h hash.Hash, row []any) {
	head := func(kind store.Type, n int) {
		_, _ = h.Write(binary.BigEndian.AppendUint64([]byte{byte(kind)}, uint64(n)))
	}
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			head(0, 0)
		case int64:
			head(store.Int, int(v))
		case bool:
			n := 0
			if v {
				n = 1
			}
			head(store.Bool, n)
		case string:
			head(store.Text, len(v))
			_, _ = h.Write([]byte(v))
		case []byte:
			head(store.Blob, len(v))
			_, _ = h.Write(v)
		}
	}
}

// Digests are the digests of a table in both databases.
type Digests struct {
	Table    string
	From, To Digest
}

// Conversation is a verified conversation.
type Conversation struct {
	ID session.ID
	// SHA256 is the hash of its row and its stored events.
	SHA256 [sha256.Size]byte
	n      int64
}

// verify compares both databases.
func (m *Move) verify(ctx context.Context) (Report, error) {
	var report Report
	var differing []string
	for _, t := range store.Tables {
		if t.Name == store.SessionsTable || t.Name == store.EventsTable {
			continue
		}
		d := Digests{Table: t.Name}
		for side, into := range map[store.Side]*Digest{m.From: &d.From, m.To: &d.To} {
			for row, err := range rowsOf(ctx, side, t) {
				if err != nil {
					return report, err
				}
				into.add(row)
			}
		}
		report.Tables = append(report.Tables, d)
		if d.From.Rows > 0 {
			m.tell(Progress{Phase: Verifying, Table: t.Name, Rows: d.From.Rows})
		}
	}
	sessions, events := Digests{Table: store.SessionsTable}, Digests{Table: store.EventsTable}
	named, err := m.verifyConversations(ctx, &report, &sessions, &events)
	if err != nil {
		return report, err
	}
	report.Tables = append(report.Tables, sessions, events)
	for _, d := range report.Tables {
		if d.From != d.To {
			differing = append(differing, "table "+d.Table)
		}
	}
	if differing = append(differing, named...); len(differing) > 0 {
		return report, fmt.Errorf("%w (%s)", ErrDiffers, strings.Join(differing, ", "))
	}
	return report, nil
}

// verifyConversations compares all conversations, and returns the first ones that differ.
func (m *Move) verifyConversations(ctx context.Context, report *Report, sessions, events *Digests) (differing []string, err error) {
	left, stop := iter.Pull2(conversations(ctx, m.From, &sessions.From, &events.From))
	defer stop()
	right, stopRight := iter.Pull2(conversations(ctx, m.To, &sessions.To, &events.To))
	defer stopRight()
	a, errA, okA := left()
	b, errB, okB := right()
	for okA || okB {
		if err := errors.Join(errA, errB); err != nil {
			return nil, err
		}
		first, second := okA && (!okB || a.n <= b.n), okB && (!okA || b.n <= a.n)
		id := a.ID
		if !first {
			id = b.ID
		}
		switch {
		case (!first || !second || a != b) && len(differing) < maxNamed:
			differing = append(differing, "conversation "+string(id))
		case first && second && a == b && m.OnConversation != nil:
			m.OnConversation(a)
		}
		if first {
			report.Conversations++
			a, errA, okA = left()
		}
		if second {
			b, errB, okB = right()
		}
		if report.Conversations%1000 == 0 || !okA {
			m.tell(Progress{Phase: Verifying, Table: "conversations", Rows: report.Conversations})
		}
	}
	return differing, errors.Join(errA, errB)
}

// conversations yields the conversations of a database, ordered by number. Events without a session row count as a
// conversation without an ID.
func conversations(ctx context.Context, s store.Side, sessions, events *Digest) iter.Seq2[Conversation, error] {
	return func(yield func(Conversation, error) bool) {
		nextRow, stop := iter.Pull2(rowsOf(ctx, s, tableOf(store.SessionsTable)))
		defer stop()
		nextEvent, stopEvents := iter.Pull2(rowsOf(ctx, s, tableOf(store.EventsTable)))
		defer stopEvents()
		row, err, more := nextRow()
		event, errEvent, moreEvents := nextEvent()
		for more || moreEvents {
			if err := errors.Join(err, errEvent); err != nil {
				yield(Conversation{}, err)
				return
			}
			var c Conversation
			h := sha256.New()
			if more && (!moreEvents || row[0].(int64) <= event[0].(int64)) {
				c.n, c.ID = row[0].(int64), session.ID(row[1].(string))
				canonical(h, row)
				sessions.add(row)
				row, err, more = nextRow()
			} else {
				c.n = event[0].(int64)
			}
			for moreEvents && errEvent == nil && event[0].(int64) == c.n {
				canonical(h, event)
				events.add(event)
				event, errEvent, moreEvents = nextEvent()
			}
			h.Sum(c.SHA256[:0])
			if !yield(c, nil) {
				return
			}
		}
	}
}

func tableOf(name string) store.Table {
	for _, t := range store.Tables {
		if t.Name == name {
			return t
		}
	}
	panic("no table " + name)
}

// errFull ends a page that has enough bytes.
var errFull = errors.New("the page is full")

// page reads the next rows of a table.
func page(ctx context.Context, s store.Side, t store.Table, after []any, limit int) (rows [][]any, err error) {
	size := 0
	err = s.Read(ctx, t, after, limit, func(row []any) error {
		rows = append(rows, row)
		for _, v := range row {
			switch v := v.(type) {
			case string:
				size += len(v)
			case []byte:
				size += len(v)
			}
		}
		if size >= batchBytes {
			return errFull
		}
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return rows, err
}

// rowsOf yields all rows of a table in the order of their keys.
func rowsOf(ctx context.Context, s store.Side, t store.Table) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		var after []any
		for {
			rows, err := page(ctx, s, t, after, defaultRows)
			if err != nil {
				yield(nil, fmt.Errorf("read the table %s of %s: %w", t.Name, s, err))
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if len(rows) == 0 {
				return
			}
			after = rows[len(rows)-1][:t.Key]
		}
	}
}
