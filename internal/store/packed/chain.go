package packed

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"deckhand/internal/session"
)

// Mark is the value of a log's hash chain after an event: a keyed hash of the mark before and of the event. The row of a
// batch ends with the mark of its last event. It depends on the events alone, so rows can be joined: the joined row has the
// last mark.
type Mark [16]byte

// markSize is what a mark takes in a row: it follows an empty kind.
const markSize = 1 + len(Mark{})

// Chain computes marks. Its zero value has no key, and neither writes nor checks marks.
type Chain struct {
	on    bool
	key   [32]byte
	start int64

	mu    sync.Mutex
	heads map[session.ID]head
}

// head is the mark of the last event of a log.
type head struct {
	last int64
	mark Mark
}

// maxHeads bounds the heads in memory; those of others are read from the database.
const maxHeads = 8192

// Use sets the key. Sessions with numbers up to start are older than the chain: their logs may begin without marks. It
// must be called before the first append.
func (c *Chain) Use(key [32]byte, start int64) {
	c.on, c.key, c.start, c.heads = true, key, start, map[session.ID]head{}
}

// On reports whether there is a key.
func (c *Chain) On() bool { return c.on }

// Known returns the mark of an event, if it is in memory or not needed.
func (c *Chain) Known(id session.ID, last int64) (Mark, bool) {
	if !c.on || last == 0 {
		return c.Start(id, 0), true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.heads[id]
	return h.mark, ok && h.last == last
}

// Put remembers the mark of the last event of a log.
func (c *Chain) Put(id session.ID, last int64, m Mark) {
	if !c.on {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.heads[id]; !ok && len(c.heads) >= maxHeads {
		for other := range c.heads { // any one
			delete(c.heads, other)
			break
		}
	}
	c.heads[id] = head{last, m}
}

// Forget drops a session that was cut.
func (c *Chain) Forget(id session.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.heads, id)
}

// Start is the mark before the first event of a log, which has the number after+1: a deleted session keeps its last event only.
func (c *Chain) Start(id session.ID, after int64) Mark {
	return c.sum(Mark{}, after, session.Kind(id), nil)
}

// Next is the mark of the event that follows one with the mark m.
func (c *Chain) Next(m Mark, at int64, kind session.Kind, body []byte) Mark {
	return c.sum(m, at, kind, body)
}

// sum is SHA-256 of the key and what follows, which has one meaning only: nothing but the last part has an open length. Half of
// the hash is left out, so it cannot be continued with more bytes; HMAC would hash twice.
func (c *Chain) sum(m Mark, n int64, name session.Kind, body []byte) (out Mark) {
	if !c.on {
		return out
	}
	var room [1024]byte
	b := append(room[:0], c.key[:]...)
	b = append(b, m[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	b = binary.BigEndian.AppendUint32(b, uint32(len(name)))
	b = append(b, name...)
	b = append(b, body...)
	full := sha256.Sum256(b)
	copy(out[:], full[:])
	return out
}

// Mark ends a row.
func (c *Chain) Mark(row []byte, m Mark) []byte {
	if !c.on {
		return row
	}
	return appendMark(row, m)
}

func appendMark(row []byte, m Mark) []byte { return append(append(row, 0), m[:]...) }

// Walk checks the marks of a log that is read from its beginning.
type Walk struct {
	chain *Chain
	id    session.ID
	mark  Mark
	at    int64 // the event that has the mark
	begun bool
	// marked is true since the first row with a mark: all rows after it must have one.
	marked bool
}

// Walk begins at the beginning of a log.
func (c *Chain) Walk(id session.ID) *Walk { return &Walk{chain: c, id: id} }

// BrokenError says that a log is not as it was written.
type BrokenError struct {
	// Last is the last event of the first row that is wrong.
	Last int64
	What string
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("%v: %s up to event %d: they were changed outside of deckhand or damaged", session.ErrCorrupt, e.What, e.Last)
}

// Unwrap makes it a damaged log.
func (e *BrokenError) Unwrap() error { return session.ErrCorrupt }

// ChainBroken is the method by which others recognise the error.
func (e *BrokenError) ChainBroken() int64 { return e.Last }

// errUnread keeps the text of a row that cannot be parsed: reading it says more.
var errUnread = errors.New("the row cannot be read")

// Row checks the next row, decompressed.
func (w *Walk) Row(last, at int64, body []byte) error {
	found, err := w.next(last, at, body)
	switch {
	case err != nil:
		return nil // reading it says what is wrong
	case found == nil && w.marked:
		return &BrokenError{last, "the hash chain is missing in events"}
	case found != nil && !hmac.Equal(found, w.mark[:]):
		return &BrokenError{last, "the hash chain does not match the events"}
	}
	w.marked = w.marked || found != nil
	return nil
}

// next computes the mark of a row, and returns the stored one.
func (w *Walk) next(last, at int64, body []byte) ([]byte, error) {
	events, found, err := parse(body)
	if err != nil {
		return nil, errUnread
	}
	before := last - int64(len(events))
	if !w.begun {
		w.mark, w.at, w.begun = w.chain.Start(w.id, before), before, true
	}
	for i, e := range events {
		if before+int64(i) >= w.at { // rows may have been joined since the one before was read
			w.mark = w.chain.Next(w.mark, at+e.Delay, e.Kind, e.Body)
		}
	}
	w.at = last
	return found, nil
}

// Compute computes the mark of the next row and does not check it.
func (w *Walk) Compute(last, at int64, row []byte) error {
	_, _, err := w.Signed(last, at, row)
	return err
}

// Signed returns the next row as it must be: with the right mark, and not compressed. changed is false if it is so.
func (w *Walk) Signed(last, at int64, row []byte) (body []byte, changed bool, err error) {
	body, err = Open(row)
	if err != nil {
		return nil, false, Damaged(last, err)
	}
	found, err := w.next(last, at, body)
	if err != nil {
		return nil, false, Damaged(last, ErrCut)
	}
	if found != nil && hmac.Equal(found, w.mark[:]) {
		return body, false, nil
	}
	if found != nil {
		body = body[:len(body)-markSize]
	}
	return appendMark(append([]byte(nil), body...), w.mark), true, nil
}

// End is called at the end of a log with the number of its session. The mark of its last event is remembered.
func (w *Walk) End(n, last int64) error {
	if !w.marked && n > w.chain.start && w.begun {
		return &BrokenError{last, "the hash chain is missing in events"}
	}
	w.chain.Put(w.id, last, w.mark)
	return nil
}

// Mark is the mark of the last row.
func (w *Walk) Mark() Mark { return w.mark }

// MarkOf returns the mark at the end of a row, if it has one.
func MarkOf(row []byte) (m Mark, ok bool) {
	body, err := Open(row)
	if err != nil {
		return m, false
	}
	_, found, err := parse(body)
	copy(m[:], found)
	return m, err == nil && found != nil
}
