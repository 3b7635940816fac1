package live

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"deckhand/internal/session"
)

// The frames of a list.
const (
	EventSnapshot     = "snapshot"     // the newest rows: {"results":[…]}
	EventConversation = "conversation" // a row that changed
	EventDeleted      = "deleted"      // one that is gone: {"conversation_id"}
)

const (
	// snapshotRows is how many rows a snapshot has.
	snapshotRows = 20
	// tellEvery is how long a row that changes constantly waits: people cannot read faster than
	// four updates a second.
	tellEvery = 250 * time.Millisecond
	// maxListed is how many changed rows a list holds before it forgets some.
	maxListed = 256
)

// RowEncoder makes the JSON of a row. It is called from several goroutines.
type RowEncoder func(session.Row) ([]byte, error)

// Lists lets readers follow the list of a user's sessions. It implements
// session.Watcher: a row comes with the change, so nothing is read for it, and it
// is encoded once for all followers. Users without followers cost nothing.
//
// There is no queue. A list holds the newest state of what changed lately, each
// with the number of its publication, and a reader is a position among those: one
// that is slow skips what is out of date already. One that is too slow for that
// gets a new snapshot.
type Lists struct {
	index  session.Index
	encode RowEncoder

	mu     sync.RWMutex
	owners map[string]*list
}

// NewLists makes Lists that read snapshots from the index.
func NewLists(index session.Index, encode RowEncoder) *Lists {
	return &Lists{index: index, encode: encode, owners: map[string]*list{}}
}

// Changed implements session.Watcher; it never blocks. A row that is older than
// one before does no harm.
func (l *Lists) Changed(row session.Row) {
	l.mu.RLock()
	d := l.owners[row.Owner]
	l.mu.RUnlock()
	if d != nil {
		d.change(row)
	}
}

// Follows reports whether the list of a user has followers.
func (l *Lists) Follows(owner string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.owners[owner] != nil
}

// list is what is new for the readers of one user.
type list struct {
	followers int // guarded by Lists.mu

	mu   sync.Mutex
	rows map[session.ID]*listed
	// places are the newest ones in the queue of sessions that wait, or waited.
	places map[session.ID]*listed
	// told is the number of the newest publication. Those up to floor may be
	// forgotten, so a reader that stands before it must begin anew.
	told, floor int64
	changed     chan struct{} // closed and replaced at every publication
	// timer runs while a row is held back; nil otherwise.
	timer *time.Timer
	// checked is when the index was last read for this list.
	checked time.Time
	// shown are the sessions in the snapshots that readers got.
	shown map[session.ID]bool
}

// listed is a row that changed.
type listed struct {
	number int64 // of its newest publication
	at     time.Time
	last   int64 // the session's newest event
	news   *news
	next   *session.Row // newer than news and held back; nil if there is none
}

// news is a row on its way to readers; the first one encodes it for all.
type news struct {
	row   session.Row
	once  sync.Once
	frame Frame
	err   error
}

func (n *news) encoded(encode RowEncoder) (Frame, error) {
	n.once.Do(func() {
		if n.row.Deleted {
			n.frame.Event = EventDeleted
			n.frame.Data, n.err = json.Marshal(map[string]session.ID{"conversation_id": n.row.ID})
			return
		}
		n.frame.Event = EventConversation
		n.frame.Data, n.err = encode(n.row)
	})
	return n.frame, n.err
}

// change publishes a row, or holds it back until its time has come.
func (d *list) change(row session.Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.rows[row.ID]
	if e == nil {
		d.makeRoom()
		e = &listed{}
		d.rows[row.ID] = e
	}
	switch wait := tellEvery - time.Since(e.at); {
	case row.Last <= e.last:
	case wait > 0 && e.news != nil:
		e.last, e.next = row.Last, &row
		d.wait(wait)
	default:
		d.publish(e, row)
		d.broadcast()
	}
}

// publish is called with mu held.
func (d *list) publish(e *listed, row session.Row) {
	d.told++
	e.number, e.at, e.last, e.news, e.next = d.told, time.Now(), row.Last, &news{row: row}, nil
}

// wait is called with mu held.
func (d *list) wait(at time.Duration) {
	if d.timer == nil {
		d.timer = time.AfterFunc(at, d.release)
	}
}

// release publishes the rows whose time has come, and waits for the others.
func (d *list) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer == nil { // no followers are left
		return
	}
	d.timer = nil
	before, earliest, some := d.told, tellEvery, false
	for _, e := range d.rows {
		if e.next == nil {
			continue
		}
		if wait := tellEvery - time.Since(e.at); wait > 0 {
			earliest, some = min(earliest, wait), true
			continue
		}
		d.publish(e, *e.next)
	}
	if some {
		d.wait(earliest)
	}
	if d.told > before {
		d.broadcast()
	}
}

// makeRoom keeps the list within its bounds: it drops rows without pending changes. If that is
// not enough, all followers get a new snapshot. It is called with mu held.
func (d *list) makeRoom() {
	if len(d.rows) < maxListed {
		return
	}
	for id, e := range d.rows {
		if e.next == nil && time.Since(e.at) >= tellEvery {
			d.floor = max(d.floor, e.number)
			delete(d.rows, id)
		}
	}
	if len(d.rows) > maxListed/2 {
		d.told++
		d.floor = d.told
		clear(d.rows)
	}
}

// broadcast is called with mu held.
func (d *list) broadcast() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// lister is a reader of a list. It belongs to one goroutine.
type lister struct {
	lists *Lists
	list  *list
	owner string
	// position is the newest publication that was taken; -1 before the first snapshot.
	position int64
	// shown are the last events of the sessions in the snapshot: what was changed
	// while it was read is not told again.
	shown   map[session.ID]int64
	changed <-chan struct{}
}

// join subscribes a reader: it misses nothing that happens from now on.
func (l *Lists) join(owner string) *lister {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.owners[owner]
	if d == nil {
		d = &list{rows: map[session.ID]*listed{}, places: map[session.ID]*listed{}, shown: map[session.ID]bool{}, changed: make(chan struct{})}
		l.owners[owner] = d
	}
	d.followers++
	return &lister{lists: l, list: d, owner: owner, position: -1}
}

// leave takes a reader away; the last one takes the list along.
func (l *Lists) leave(r *lister) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.list.followers--; r.list.followers > 0 {
		return
	}
	delete(l.owners, r.owner)
	r.list.mu.Lock()
	defer r.list.mu.Unlock()
	if r.list.timer != nil {
		r.list.timer.Stop()
		r.list.timer = nil
	}
}

// next takes what is new without waiting; none if nothing is. Afterwards changed
// is closed as soon as something may be.
func (r *lister) next(ctx context.Context) ([]Frame, error) {
	found, anew := r.list.take(r)
	if anew {
		frame, err := r.snapshot(ctx)
		return []Frame{frame}, err
	}
	var out []Frame
	for _, n := range found {
		if n.row.Last > 0 && n.row.Last <= r.shown[n.row.ID] {
			continue
		}
		frame, err := n.encoded(r.lists.encode)
		if err != nil {
			return nil, err
		}
		out = append(out, frame)
	}
	return out, nil
}

// take moves the reader to the newest publication and returns what is on the way,
// or says that it must begin anew.
func (d *list) take(r *lister) (found []*news, anew bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := r.position
	r.position, r.changed = d.told, d.changed
	switch {
	case before < d.floor || before < 0:
		return nil, true
	case before == d.told:
		return nil, false
	}
	fresh := slices.AppendSeq(slices.Collect(maps.Values(d.rows)), maps.Values(d.places))
	fresh = slices.DeleteFunc(fresh, func(e *listed) bool { return e.number <= before })
	slices.SortFunc(fresh, func(a, b *listed) int { return cmp.Compare(a.number, b.number) })
	for _, e := range fresh {
		found = append(found, e.news)
	}
	return found, false
}

// recheck looks now and then for what no wake-up told of: another server may have
// changed a row, or removed it. What it finds goes to all readers of the list.
func (r *lister) recheck(ctx context.Context) {
	missing := r.list.due()
	if missing == nil {
		return
	}
	rows, err := r.lists.index.Rows(ctx, session.Query{Owner: r.owner, Limit: snapshotRows})
	if err != nil {
		return // the next one looks again
	}
	for _, row := range rows {
		delete(missing, row.ID)
		r.list.change(row)
	}
	for id := range missing {
		if row, err := r.lists.index.Row(ctx, id); err == nil {
			r.list.change(row)
		}
	}
}

// due returns the sessions that readers may know of; nil if it is too early to look again.
func (d *list) due() map[session.ID]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Since(d.checked) < recheckEvery {
		return nil
	}
	d.checked = time.Now()
	known := maps.Clone(d.shown)
	for id, e := range d.rows {
		if known[id] = true; e.news != nil && e.news.row.Deleted {
			delete(known, id)
			delete(d.shown, id)
		}
	}
	return known
}

// show keeps which sessions a reader got in a snapshot. Too many, and all readers
// begin anew.
func (d *list) show(rows []session.Row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, row := range rows {
		d.shown[row.ID] = true
	}
	if len(d.shown) > maxListed {
		clear(d.shown)
		d.told++
		d.floor = d.told
		d.broadcast()
	}
}

// snapshot reads the newest rows.
func (r *lister) snapshot(ctx context.Context) (Frame, error) {
	rows, err := r.lists.index.Rows(ctx, session.Query{Owner: r.owner, Limit: snapshotRows})
	if err != nil {
		return Frame{}, err
	}
	r.list.show(rows)
	r.shown = map[session.ID]int64{}
	data := []byte(`{"results":[`)
	for i, row := range rows {
		b, err := r.lists.encode(row)
		if err != nil {
			return Frame{}, err
		}
		if i > 0 {
			data = append(data, ',')
		}
		data = append(data, b...)
		r.shown[row.ID] = row.Last
	}
	return Frame{Event: EventSnapshot, Data: append(data, "]}"...)}, nil
}
