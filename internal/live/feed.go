package live

import (
	"context"
	"slices"
	"sort"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Bounds of a tail. It may grow to twice as much before it is cut, so that
// cutting is rare. One frame is always kept, however large: a thousand readers
// must not read and encode it a thousand times.
const (
	tailFrames = 256
	tailBytes  = 1 << 20
)

// publishEvery is after how many events readers are told, when there are many at once;
// large ones are told sooner, so that no more of them is held than a tail may hold.
const publishEvery = 64

// recheckEvery is how often the log is looked at without a wake-up: between
// replicas they may be lost.
const recheckEvery = 10 * time.Second

// feed is one session that is followed in one format. A goroutine reads for all its followers, but
// only while there is something to read: a session that is followed and quiet
// costs its followers and nothing else.
type feed struct {
	hub *Hub
	feedKey
	encode Encoder
	ctx    context.Context // ends with the last follower
	cancel context.CancelFunc

	mu        sync.Mutex
	followers int
	// The tail holds the frames of all events above floor up to last; readers
	// that are further behind read the log themselves. It is only appended to
	// or replaced, so readers use slices of it without a copy.
	tail        []item
	bytes       int
	floor, last int64
	// based is false until the first reader has found the end of the log: only
	// then is it known from where on the feed must read.
	based bool
	// round grows with every publication; current counts the readers that have
	// taken it. When all have, the tail is not needed any more.
	round   int64
	current int
	settled string // the model call that was settled last

	dirty   bool  // there may be something new
	stored  int64 // an event that is known to be stored, or anyNumber
	pumping bool
	err     error
	changed chan struct{} // closed and replaced at every change
	checked time.Time
}

// poke says that the log has an event with this number.
func (d *feed) poke(last int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.based && last <= d.last {
		return
	}
	d.dirty, d.stored = true, max(d.stored, last)
	d.start()
}

// recheck pokes the feed without a reason, now and then.
func (d *feed) recheck() {
	d.mu.Lock()
	due := time.Since(d.checked) >= recheckEvery
	if due {
		d.checked = time.Now()
	}
	d.mu.Unlock()
	if due {
		d.poke(anyNumber)
	}
}

// base tells the feed that a reader has read the log up to last.
func (d *feed) base(last int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.based {
		d.based, d.floor, d.last = true, last, last
	}
	if last > d.last {
		d.dirty, d.stored = true, max(d.stored, last)
	}
	d.start()
}

// start is called with mu held.
func (d *feed) start() {
	if d.based && d.dirty && !d.pumping && d.err == nil && d.followers > 0 {
		d.pumping = true
		go d.pump()
	}
}

// pump reads until nothing is left to read.
func (d *feed) pump() {
	for {
		d.mu.Lock()
		if !d.dirty || d.err != nil || d.followers == 0 {
			d.pumping = false
			d.mu.Unlock()
			return
		}
		from, stored := d.last, d.stored
		d.dirty, d.stored = false, 0
		d.mu.Unlock()
		if err := d.read(from, stored); err != nil {
			d.fail(err)
		}
	}
}

// read publishes what the log holds after from, at least up to stored.
func (d *feed) read(from, stored int64) error {
	var batch []item
	last, n, size := from, 0, 0
	for e, err := range session.ReadUpTo(d.ctx, d.hub.log, d.id, from, stored) {
		if err != nil {
			return err
		}
		it, needed, err := d.item(e)
		if err != nil {
			return err
		}
		if needed {
			batch, size = append(batch, it), size+len(it.frame.Data)
		}
		last = e.Number
		if n++; n >= publishEvery || size >= tailBytes {
			d.publish(batch, last)
			batch, n, size = nil, 0, 0
		}
	}
	if n > 0 {
		d.publish(batch, last)
	}
	return nil
}

// publish appends to the tail and wakes the readers.
func (d *feed) publish(batch []item, last int64) {
	settled := ""
	d.mu.Lock()
	for _, it := range batch {
		d.bytes += len(it.frame.Data)
		if it.settles != "" {
			settled = it.settles
		}
	}
	d.tail = append(d.tail, batch...)
	d.last = last
	d.cut()
	d.round++
	d.current = 0
	if settled != "" {
		d.settled = settled
	}
	d.broadcast()
	d.mu.Unlock()
	if settled != "" {
		d.hub.EndDelta(d.id, settled)
	}
}

// cut keeps the tail in its bounds. It makes a new slice, because the old one
// holds on to every frame that was ever in it, and readers hold on to it.
func (d *feed) cut() {
	if len(d.tail) <= 2*tailFrames && d.bytes <= 2*tailBytes {
		return
	}
	keep, size := len(d.tail), 0
	for keep > 0 {
		n := len(d.tail[keep-1].frame.Data)
		if kept := len(d.tail) - keep; kept >= tailFrames || kept > 0 && size+n > tailBytes {
			break
		}
		size += n
		keep--
	}
	if keep > 0 {
		d.floor = d.tail[keep-1].number
		d.tail, d.bytes = slices.Clone(d.tail[keep:]), size
	}
}

// dropTail lets the tail go when every reader has it. It is called with mu held.
func (d *feed) dropTail() {
	if d.current == d.followers {
		d.tail, d.bytes, d.floor = nil, 0, d.last
	}
}

// broadcast is called with mu held.
func (d *feed) broadcast() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// wake is for what is not in the tail: deltas.
func (d *feed) wake() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broadcast()
}

// fail ends all readers of this feed; they come back and get a new one.
func (d *feed) fail(err error) {
	d.hub.forget(d)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
	d.broadcast()
}

// view is what a feed has for one reader.
type view struct {
	items   []item
	behind  bool // the reader must read the log itself
	err     error
	changed <-chan struct{}
}

// view moves the reader to the end of the tail and returns what is on the way.
func (d *feed) view(f *follower) view {
	d.mu.Lock()
	defer d.mu.Unlock()
	v := view{changed: d.changed, err: d.err}
	switch {
	case d.err != nil:
	case !d.based, f.cursor < d.floor, f.cursor > d.last && !f.verified:
		v.behind = true
	default:
		f.verified = true
		at := sort.Search(len(d.tail), func(i int) bool { return d.tail[i].number > f.cursor })
		v.items = d.tail[at:len(d.tail):len(d.tail)]
		f.cursor = max(f.cursor, d.last)
		if f.round != d.round {
			f.round = d.round
			d.current++
		}
		d.dropTail()
	}
	return v
}
