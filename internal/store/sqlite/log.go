package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"iter"
	"slices"

	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/sqlite/reserve"
)

// A key of events is the session's n above, and the number of the last event in
// the row below: a batch is one row, because most of what a row costs is being one.
const numberBits = 32

func key(n, number int64) int64 { return n<<numberBits | number }

// Reading goes in pieces of this many events or bytes, so that a slow consumer
// holds neither a connection nor an old snapshot of the file.
const (
	pieceEvents = 256 // stands in the statement, too
	pieceBytes  = 1 << 20
)

// known remembers sessions that were written lately: where they are, and what
// their row looks like, so that a step of a working session changes no index.
// An entry is only a hint: it is believed if the row still has its last number.
type known map[session.ID]place

type place struct {
	n   int64
	row session.Row
}

const maxKnown = 1024

func (k known) put(id session.ID, p place) {
	if _, ok := k[id]; !ok && len(k) >= maxKnown {
		for other := range k { // any one
			delete(k, other)
			break
		}
	}
	k[id] = p
}

// Append implements session.Log.
func (db *DB) Append(ctx context.Context, b session.Batch) error {
	// All that can be done here is done here, in the caller's goroutine: there
	// are many of them and only one writer.
	prev, err := db.mark(ctx, b.ID, b.After)
	if err != nil {
		return err
	}
	a, err := db.encode(b, prev)
	if err != nil {
		return err
	}
	if reserve.Closing(b) {
		err = db.writeAtLast(ctx, len(a.body), reserve.Final(b), a.store)
	} else {
		err = db.write(ctx, len(a.body), a.store)
	}
	if err != nil {
		return err
	}
	db.chain.Put(b.ID, a.batch.Row.Last, a.mark)
	if a.drops {
		db.recent.Forget(b.ID)
	} else {
		db.recent.Add(b.ID, b.After, packed.Appended(b, a.batch.Row.Last, number(a.at), a.body))
	}
	return nil
}

// appending is a batch in the form in which it is stored.
type appending struct {
	db    *DB
	batch session.Batch
	at    driver.Value
	body  []byte // of all its events
	row   []byte
	drops bool        // nothing before the last event is kept
	mark  packed.Mark // of the last event
}

// encode makes the row of a batch that follows an event with this mark.
func (db *DB) encode(b session.Batch, mark packed.Mark) (*appending, error) {
	a := &appending{db: db, batch: b}
	if len(b.Events) == 0 || b.After+int64(len(b.Events)) >= 1<<numberBits {
		return nil, fmt.Errorf("session %s: %d events cannot be appended after event %d", b.ID, len(b.Events), b.After)
	}
	for i, e := range b.Events {
		if e.Number != b.After+int64(i)+1 {
			return nil, fmt.Errorf("session %s: event %d is numbered %d", b.ID, b.After+int64(i)+1, e.Number)
		}
		body, err := packed.Encode(e.Payload)
		if err != nil {
			return nil, err
		}
		kind := e.Payload.Kind()
		if kind == session.KindDeleted {
			a.drops, a.body = true, a.body[:0]
			mark = db.chain.Start(b.ID, e.Number-1)
		}
		if len(a.body) == 0 {
			a.at = micros(e.At)
			a.body = slices.Grow(a.body, len(body)+32*len(b.Events)+96)
		}
		a.body = packed.Append(a.body, kind, e.At.UnixMicro()-number(a.at), body)
		mark = db.chain.Next(mark, e.At.UnixMicro(), kind, body)
	}
	a.mark, a.body = mark, db.chain.Mark(a.body, mark)
	a.batch.Row.Last = b.After + int64(len(b.Events))
	a.row = packed.Row(a.batch.Row)
	return a, nil
}

func (a *appending) store(c *conn) error {
	if err := a.afford(c); err != nil {
		return err
	}
	n, err := a.place(c)
	if err != nil {
		return err
	}
	if a.drops {
		a.db.unfiled = true
		if _, err := c.exec("DELETE FROM events WHERE id > ? AND id <= ?", key(n, 0), key(n, a.batch.After)); err != nil {
			return err
		}
	}
	if _, err := c.exec("INSERT INTO events (id, at, body) VALUES (?, ?, ?)", key(n, a.batch.Row.Last), a.at, a.body); err != nil {
		return err
	}
	if err := a.charge(c); err != nil {
		return err
	}
	if err := a.tell(c); err != nil {
		return err
	}
	a.db.known.put(a.batch.ID, place{n, a.batch.Row})
	return nil
}

// place writes the session's row and returns its n, or refuses.
func (a *appending) place(c *conn) (int64, error) {
	b, r := a.batch, a.batch.Row
	if b.After == 0 {
		n, err := a.insert(c)
		if err == nil {
			err = a.unfile(c, n)
		}
		return n, err
	}
	if p, ok := a.db.known[b.ID]; ok && p.row.Last == b.After && sameButProgress(p.row, r) && p.row.Title == r.Title && p.row.Repository == r.Repository {
		changed, err := c.exec(progressRow, micros(r.UpdatedAt), r.Last, holder(r), a.row, p.n, b.After)
		if err != nil || changed == 1 {
			return p.n, err
		}
	}
	n, last, found, err := a.db.findSession(c, b.ID)
	if err != nil {
		return 0, err
	}
	if !found || last != b.After {
		return 0, refuse(session.ErrConflict)
	}
	if _, err = c.exec(replaceRow, append(a.columns(), n)...); err == nil {
		err = a.unfile(c, n)
	}
	return n, err
}

// unfile has a session filed, or filed again, by its words.
func (a *appending) unfile(c *conn, n int64) error {
	a.db.unfiled = true
	f, err := c.facts()
	if err == nil && n <= f.words { // else it is new there
		_, err = c.exec("INSERT OR IGNORE INTO unfiled (n) VALUES (?)", n)
	}
	return err
}

// sameButProgress says that no column changed that an index knows.
func sameButProgress(was, is session.Row) bool {
	return was.Owner == is.Owner && was.CreatedAt.Equal(is.CreatedAt) && was.Deleted == is.Deleted && packed.Attention(was) == packed.Attention(is)
}

// Read implements session.Log.
func (db *DB) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	return packed.Read(ctx, &db.chain, id, after, func(r *packed.Reading) error {
		return db.readers.read(ctx, func(c *conn) error { return db.next(c, r) })
	})
}

// Remembered implements session.Rememberer.
func (db *DB) Remembered(id session.ID, after, last int64) ([]session.Event, bool) {
	return packed.Remembered(db.recent, id, after, last)
}

// next reads a piece.
func (db *DB) next(c *conn, r *packed.Reading) error {
	r.Events = r.Events[:0]
	if r.N == 0 {
		n, last, found, err := db.findSession(c, r.ID)
		if err != nil {
			return err
		}
		if done, err := r.Begin(n, last, found, db.recent); done {
			return err
		}
	}
	count, before := 0, r.Read
	err := c.query("SELECT id, at, body FROM events WHERE id > ? AND id < ? ORDER BY id LIMIT 256", func(row []driver.Value) error {
		if err := r.Take(number(row[0])&(1<<numberBits-1), number(row[1]), bytesOf(row[2])); err != nil {
			return err
		}
		if count++; r.Read-before >= pieceBytes {
			return enough
		}
		return nil
	}, key(r.N, r.At), key(r.N+1, 0))
	if err != nil {
		return err
	}
	return r.End(count < pieceEvents && r.Read-before < pieceBytes, db.recent)
}
