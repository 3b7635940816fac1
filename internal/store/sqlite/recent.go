package sqlite

import (
	"cmp"
	lists "container/list"
	"slices"
	"sync"

	"deckhand/internal/session"
)

// recent caches the newest events of recently used sessions. Loops and live readers read what
// was just stored, and the next turn reads all of it again.
//
// It is believed only as far as the file says the same: a tail that does not end
// where the session's row says it does is passed over, and logs only grow. So
// others may write to the file, and nothing here has to be in time.
type recent struct {
	mu    sync.Mutex
	size  int
	tails map[session.ID]*lists.Element
	order lists.List // of *tail, the one that was used last in front
}

// Bounds, in bytes as they are stored; decoded, they are about three times as many.
const (
	maxRecent = 4 << 20
	maxTail   = 256 << 10
)

// tail holds all events of a session above floor up to last.
type tail struct {
	id          session.ID
	floor, last int64
	rows        []*remembered
	size        int
}

// remembered is a row of events, decoded at the first read, so that the result is the same as
// reading from the file.
type remembered struct {
	last, at int64
	body     []byte

	once   sync.Once
	events []session.Event
	err    error
}

func (r *remembered) decode() ([]session.Event, error) {
	r.once.Do(func() { r.events, r.err = decodeRow(r.last, r.at, r.body) })
	return r.events, r.err
}

func newRecent() *recent { return &recent{tails: map[session.ID]*lists.Element{}} }

// add takes in rows that hold the events above after. They continue the
// session's tail, or are a new one.
func (c *recent) add(id session.ID, after int64, rows ...*remembered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.tails[id]
	if e == nil {
		e = c.order.PushFront(&tail{id: id, floor: after, last: after})
		c.tails[id] = e
	}
	t := e.Value.(*tail)
	if t.last != after {
		c.size -= t.size
		*t = tail{id: id, floor: after, last: after}
	}
	for _, r := range rows {
		t.rows = append(t.rows, r)
		t.last = r.last
		t.size += len(r.body)
		c.size += len(r.body)
	}
	for t.size > maxTail {
		n := len(t.rows[0].body)
		t.floor = t.rows[0].last
		t.rows[0] = nil
		t.rows = t.rows[1:]
		t.size -= n
		c.size -= n
	}
	c.order.MoveToFront(e)
	for c.size > maxRecent {
		c.remove(c.order.Back())
	}
}

// after are the rows with the events above at, if all of them up to last are here.
func (c *recent) after(id session.ID, at, last int64) []*remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.tails[id]
	if e == nil {
		return nil
	}
	t := e.Value.(*tail)
	if t.last != last || at < t.floor {
		return nil
	}
	c.order.MoveToFront(e)
	from, _ := slices.BinarySearchFunc(t.rows, at+1, func(r *remembered, n int64) int { return int(r.last - n) })
	return slices.Clone(t.rows[from:])
}

// between are the rows with the events above at up to last, which ends one of
// them; nil if they are not all here. This process stored or read them, so the
// file need not be asked.
func (c *recent) between(id session.ID, at, last int64) []*remembered {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.tails[id]
	if e == nil {
		return nil
	}
	t := e.Value.(*tail)
	byLast := func(r *remembered, n int64) int { return cmp.Compare(r.last, n) }
	to, whole := slices.BinarySearchFunc(t.rows, last, byLast)
	if at < t.floor || !whole {
		return nil
	}
	c.order.MoveToFront(e)
	from, _ := slices.BinarySearchFunc(t.rows, at+1, byLast)
	return slices.Clone(t.rows[from : to+1])
}

// forget drops a session that was deleted or cut.
func (c *recent) forget(id session.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.tails[id]; e != nil {
		c.remove(e)
	}
}

// remove is called with mu held.
func (c *recent) remove(e *lists.Element) {
	t := c.order.Remove(e).(*tail)
	delete(c.tails, t.id)
	c.size -= t.size
}
