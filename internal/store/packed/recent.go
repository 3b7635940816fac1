package packed

import (
	"cmp"
	lists "container/list"
	"fmt"
	"slices"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Recent caches the newest events of recently used sessions. Loops and live readers read what
// was just stored, and the next turn reads all of it again.
//
// It is believed only as far as the file says the same: a tail that does not end
// where the session's row says it does is passed over, and logs only grow. So
// others may write to the file, and nothing here has to be in time.
type Recent struct {
	mu    sync.Mutex
	size  int
	tails map[session.ID]*lists.Element
	order lists.List // of *tail, the one that was used last in front
}

// MaxRecent and MaxTail are bounds: of all, and of a session. They are in bytes as they are
// stored; decoded, they are about three times as many. A session counts as TailCost besides:
// of many short ones, what holds the events takes more memory than they do.
const (
	MaxRecent = 4 << 20
	MaxTail   = 256 << 10
	TailCost  = 1 << 10
)

// tail holds all events of a session above floor up to last.
type tail struct {
	id          session.ID
	floor, last int64
	rows        []*Batch
	size        int
}

// Batch is a row of events. They are decoded at the first read, unless asStored knows the result of decoding them.
// Either way, the result is the same as reading from the file.
type Batch struct {
	Last, At int64
	Body     []byte

	once   sync.Once
	events []session.Event
	err    error
}

// Appended returns the row of a batch that was just stored. at is the time of its first event.
func Appended(b session.Batch, last, at int64, body []byte) *Batch {
	row := &Batch{Last: last, At: at, Body: body}
	events := make([]session.Event, len(b.Events))
	for i, e := range b.Events {
		p, ok := asStored(e.Payload)
		if !ok {
			return row
		}
		events[i] = session.Event{Number: e.Number, At: time.UnixMicro(e.At.UnixMicro()).UTC(), Payload: p}
	}
	row.once.Do(func() { row.events = events })
	return row
}

// Decode reads the events, the last of which has the number Last. With an error come the
// events before what cannot be read.
func (r *Batch) Decode() ([]session.Event, error) {
	r.once.Do(func() { r.events, r.err = decode(r.Last, r.At, r.Body) })
	return r.events, r.err
}

// First is the number of the first event, once it was decoded.
func (r *Batch) First() int64 { return r.Last - int64(len(r.events)) + 1 }

// Damaged is the error of a row of events that cannot be read.
func Damaged(last int64, err error) error {
	return fmt.Errorf("%w: the row of event %d: %v", session.ErrCorrupt, last, err)
}

func decode(last, at int64, body []byte) ([]session.Event, error) {
	all, err := Events(body)
	if err != nil {
		return nil, Damaged(last, err)
	}
	events := make([]session.Event, 0, len(all))
	for i, p := range all {
		payload, err := session.Decode(p.Kind, p.Body)
		if err != nil {
			return events, err
		}
		n := last - int64(len(all)-1-i)
		events = append(events, session.Event{Number: n, At: time.UnixMicro(at + p.Delay).UTC(), Payload: payload})
	}
	return events, nil
}

// NewRecent makes an empty one.
func NewRecent() *Recent { return &Recent{tails: map[session.ID]*lists.Element{}} }

// Add takes in rows that hold the events above after. They continue the
// session's tail, or are a new one.
func (c *Recent) Add(id session.ID, after int64, rows ...*Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.tails[id]
	if e == nil {
		e = c.order.PushFront(&tail{id: id, floor: after, last: after})
		c.tails[id] = e
		c.size += TailCost
	}
	t := e.Value.(*tail)
	if t.last != after {
		c.size -= t.size
		*t = tail{id: id, floor: after, last: after}
	}
	for _, r := range rows {
		t.rows = append(t.rows, r)
		t.last = r.Last
		t.size += len(r.Body)
		c.size += len(r.Body)
	}
	for t.size > MaxTail {
		n := len(t.rows[0].Body)
		t.floor = t.rows[0].Last
		t.rows[0] = nil
		t.rows = t.rows[1:]
		t.size -= n
		c.size -= n
	}
	c.order.MoveToFront(e)
	for c.size > MaxRecent {
		c.remove(c.order.Back())
	}
}

// Between are the rows with the events above at up to last, which ends one of
// them; nil if they are not all here. This process stored or read them, so the
// file need not be asked.
func (c *Recent) Between(id session.ID, at, last int64) []*Batch {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.tails[id]
	if e == nil {
		return nil
	}
	t := e.Value.(*tail)
	byLast := func(r *Batch, n int64) int { return cmp.Compare(r.Last, n) }
	to, whole := slices.BinarySearchFunc(t.rows, last, byLast)
	if at < t.floor || !whole {
		return nil
	}
	c.order.MoveToFront(e)
	from, _ := slices.BinarySearchFunc(t.rows, at+1, byLast)
	return slices.Clone(t.rows[from : to+1])
}

// Forget drops a session that was deleted or cut.
func (c *Recent) Forget(id session.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.tails[id]; e != nil {
		c.remove(e)
	}
}

// remove is called with mu held.
func (c *Recent) remove(e *lists.Element) {
	t := c.order.Remove(e).(*tail)
	delete(c.tails, t.id)
	c.size -= t.size + TailCost
}

// Sizes are the bytes of each session, and how many all of them count as.
func (c *Recent) Sizes() (each map[session.ID]int, all int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	each = map[session.ID]int{}
	for id, e := range c.tails {
		for _, r := range e.Value.(*tail).rows {
			each[id] += len(r.Body)
		}
	}
	return each, c.size - len(each)*TailCost
}
