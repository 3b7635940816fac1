package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"sync"
	"time"

	"deckhand/internal/queue"
)

// tx is a transaction, or what a reader sees, of one of the queues and of what
// belongs to it.
type tx struct {
	c     *conn
	db    *DB
	queue string
	// wrote is true once something was changed.
	wrote *bool
}

var _ queue.Tx = tx{}

// update runs fn in a transaction.
func (db *DB) update(ctx context.Context, name string, size int, fn func(tx) error) error {
	return db.write(ctx, size, func(c *conn) error {
		t := tx{c: c, db: db, queue: name, wrote: new(bool)}
		err := fn(t)
		if err != nil && !*t.wrote && !ofSQLite(err) {
			err = refuse(err)
		}
		return err
	})
}

// view runs fn on what is stored.
func (db *DB) view(ctx context.Context, name string, fn func(tx) error) error {
	return db.readers.read(ctx, func(c *conn) error { return fn(tx{c: c, db: db, queue: name, wrote: new(bool)}) })
}

// named is a queue with a name.
type named struct {
	db   *DB
	name string
}

// Queue implements store.Backend.
func (db *DB) Queue(name string) queue.Store { return named{db, name} }

// Update implements queue.Store.
func (q named) Update(ctx context.Context, fn func(queue.Tx) error) error {
	return q.db.update(ctx, q.name, 0, func(t tx) error { return fn(t) })
}

// View implements queue.Store.
func (q named) View(ctx context.Context, fn func(queue.Tx) error) error {
	return q.db.view(ctx, q.name, func(t tx) error { return fn(t) })
}

// exec makes a change.
func (t tx) exec(sql string, args ...driver.Value) (int64, error) {
	*t.wrote = true
	return t.c.exec(sql, args...)
}

// AddOwner implements queue.Owners.
func (t tx) AddOwner(id, user string) error {
	_, err := t.exec("INSERT INTO queue_owners (queue, id, user) VALUES (?, ?, ?)", t.queue, id, user)
	return err
}

// RemoveOwner implements queue.Owners.
func (t tx) RemoveOwner(id string) error {
	_, err := t.exec("DELETE FROM queue_owners WHERE queue = ? AND id = ?", t.queue, id)
	return err
}

const selectItem = `SELECT owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details FROM queue_items WHERE queue = ?`

func itemOf(v []driver.Value) queue.Item {
	return queue.Item{Owner: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Print: text(v[3]), Lane: text(v[4]), Session: text(v[5]), Kind: text(v[6]),
		State: text(v[7]), Open: number(v[8]) != 0, Attempts: int(number(v[9])), CreatedAt: moment(v[10]), NextAt: maybe(v[11]), Body: bytesOf(v[12]), Details: bytesOf(v[13])}
}

// Add implements queue.Items.
func (t tx) Add(it queue.Item) (queue.Item, bool, error) {
	*t.wrote = true
	added, err := t.c.one(`INSERT INTO queue_items (queue, owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details)
		SELECT queue, id, coalesce((SELECT max(seq) FROM queue_items i WHERE i.queue = o.queue AND i.owner = o.id), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
		FROM queue_owners o WHERE queue = ? AND id = ? ON CONFLICT DO NOTHING RETURNING seq`, func(v []driver.Value) { it.Seq = number(v[0]) },
		it.ID, orNone(it.Print), it.Lane, it.Session, it.Kind, it.State, truth(it.Open), int64(it.Attempts), micros(it.CreatedAt), orNull(it.NextAt), it.Body, it.Details,
		t.queue, it.Owner)
	return it, added, err
}

// orNone is NULL for an empty text.
func orNone(s string) driver.Value {
	if s == "" {
		return nil
	}
	return s
}

// Put implements queue.Items.
func (t tx) Put(it queue.Item) (bool, error) {
	there, err := t.exec(`UPDATE queue_items SET lane = ?, session = ?, state = ?, open = ?, attempts = ?, next_at = ?, body = ?, details = ?
		WHERE queue = ? AND owner = ? AND seq = ? AND id = ?`,
		it.Lane, it.Session, it.State, truth(it.Open), int64(it.Attempts), orNull(it.NextAt), it.Body, it.Details, t.queue, it.Owner, it.Seq, it.ID)
	return there > 0, err
}

// Find implements queue.Items.
func (t tx) Find(owner, id string) (it queue.Item, found bool, err error) {
	found, err = t.c.one(selectItem+" AND owner = ? AND id = ?", func(v []driver.Value) { it = itemOf(v) }, t.queue, owner, id)
	return it, found, err
}

// Page implements queue.Items. It stops reading by itself in place of a LIMIT,
// which costs a statement per value.
func (t tx) Page(owner string, below int64, limit int) ([]queue.Item, error) {
	return t.items(limit, selectItem+" AND owner = ? AND seq < ? ORDER BY seq DESC", t.queue, owner, below)
}

// Opened implements queue.Items.
func (t tx) Opened(session string) ([]queue.Item, error) {
	return t.items(math.MaxInt, selectItem+" AND open = 1 AND (?2 = '' OR session = ?2) ORDER BY session, owner, seq", t.queue, session)
}

func (t tx) items(limit int, sql string, args ...driver.Value) (found []queue.Item, err error) {
	err = t.c.query(sql, func(v []driver.Value) error {
		if len(found) >= limit {
			return enough
		}
		found = append(found, itemOf(v))
		return nil
	}, args...)
	return found, err
}

// First implements queue.Waiting.
func (t tx) First(lane string) (it queue.Item, found bool, err error) {
	found, err = t.c.one(selectItem+" AND lane = ? AND next_at IS NOT NULL ORDER BY next_at, owner, seq", func(v []driver.Value) { it = itemOf(v) }, t.queue, lane)
	return it, found, err
}

// Count implements queue.Waiting.
func (t tx) Count(lane string) (n int, err error) {
	_, err = t.c.one("SELECT count(*) FROM queue_items WHERE queue = ? AND lane = ? AND next_at IS NOT NULL", func(v []driver.Value) { n = int(number(v[0])) }, t.queue, lane)
	return n, err
}

// Advance implements queue.Waiting.
func (t tx) Advance(lane string, at time.Time) error {
	_, err := t.exec("UPDATE queue_items SET next_at = ?1 WHERE queue = ?2 AND lane = ?3 AND next_at > ?1", micros(at), t.queue, lane)
	return err
}

// Last implements queue.History.
func (t tx) Last(owner string) (seq int64, err error) {
	_, err = t.c.one("SELECT max(seq) FROM queue_items WHERE queue = ? AND owner = ?", func(v []driver.Value) { seq = number(v[0]) }, t.queue, owner)
	return seq, err
}

// Drop implements queue.History.
func (t tx) Drop(owner string, upTo int64, before time.Time) error {
	if upTo <= 0 {
		return nil
	}
	_, err := t.exec("DELETE FROM queue_items WHERE queue = ? AND owner = ? AND seq <= ? AND open = 0 AND created_at < ?", t.queue, owner, upTo, micros(before))
	return err
}

// Older implements queue.History.
func (t tx) Older(before time.Time, limit int) (found []queue.Item, err error) {
	err = t.c.query("SELECT owner, seq, id, lane, created_at FROM queue_items WHERE queue = ? AND created_at < ? ORDER BY created_at", func(v []driver.Value) error {
		if len(found) >= limit {
			return enough
		}
		found = append(found, queue.Item{Owner: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Lane: text(v[3]), CreatedAt: moment(v[4])})
		return nil
	}, t.queue, micros(before))
	return found, err
}

// Remove implements queue.History.
func (t tx) Remove(it queue.Item) error {
	_, err := t.exec("DELETE FROM queue_items WHERE queue = ? AND owner = ? AND seq = ?", t.queue, it.Owner, it.Seq)
	return err
}

const selectLane = "SELECT l.name, l.user, l.waiting, l.due_at, l.holder, l.until, l.claim FROM queue_lanes l"

func laneOf(v []driver.Value) queue.Lane {
	return queue.Lane{Name: text(v[0]), User: text(v[1]), Waiting: int(number(v[2])), DueAt: maybe(v[3]), Holder: text(v[4]), Until: maybe(v[5]), Claim: number(v[6])}
}

// Lane implements queue.Lanes.
func (t tx) Lane(name string) (l queue.Lane, found bool, err error) {
	found, err = t.c.one(selectLane+" WHERE l.queue = ? AND l.name = ?", func(v []driver.Value) { l = laneOf(v) }, t.queue, name)
	return l, found, err
}

// PutLane implements queue.Lanes.
func (t tx) PutLane(l queue.Lane) error {
	if l.Waiting == 0 && l.Holder == "" {
		_, err := t.exec("DELETE FROM queue_lanes WHERE queue = ? AND name = ?", t.queue, l.Name)
		return err
	}
	ready := l.ReadyAt()
	if l.Holder == "" && !ready.IsZero() {
		t.db.news.changed(t.queue)
	}
	_, err := t.exec("INSERT OR REPLACE INTO queue_lanes (queue, name, user, waiting, due_at, holder, until, claim, ready_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		t.queue, l.Name, l.User, int64(l.Waiting), orNull(l.DueAt), l.Holder, orNull(l.Until), l.Claim, orNull(ready))
	return err
}

// ofServed are the lanes of users who are not disabled. The first condition is that of the index.
const ofServed = " JOIN users u ON u.name = l.user WHERE l.ready_at IS NOT NULL AND l.queue = ? AND u.disabled = 0"

// Ready implements queue.Lanes.
func (t tx) Ready(now time.Time, limit int) (ready []queue.Lane, next time.Time, err error) {
	err = t.c.query(selectLane+ofServed+" AND l.ready_at <= ? ORDER BY l.ready_at, l.name", func(v []driver.Value) error {
		if len(ready) >= limit {
			return enough
		}
		ready = append(ready, laneOf(v))
		return nil
	}, t.queue, micros(now))
	if err != nil {
		return nil, next, err
	}
	_, err = t.c.one("SELECT l.ready_at FROM queue_lanes l"+ofServed+" AND l.ready_at > ? ORDER BY l.ready_at", func(v []driver.Value) { next = moment(v[0]) }, t.queue, micros(now))
	return ready, next, err
}

// Held implements queue.Lanes.
func (t tx) Held() (held []queue.Lane, err error) {
	err = t.c.query(selectLane+" WHERE l.queue = ? AND l.holder <> ''", func(v []driver.Value) error {
		held = append(held, laneOf(v))
		return nil
	}, t.queue)
	return held, err
}

// queueNews tells who works on a queue that something may have become due.
type queueNews struct {
	// fresh are the queues that the transaction changed; only the writer touches it.
	fresh map[string]bool

	mu    sync.Mutex
	added map[string]chan struct{}
}

func newQueueNews() queueNews {
	return queueNews{fresh: map[string]bool{}, added: map[string]chan struct{}{}}
}

func (n *queueNews) changed(name string) { n.fresh[name] = true }

func (n *queueNews) undone() { clear(n.fresh) }

// of is the channel of a queue.
func (n *queueNews) of(name string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.added[name] == nil {
		n.added[name] = make(chan struct{}, 1)
	}
	return n.added[name]
}

func (n *queueNews) committed() {
	for name := range n.fresh {
		select {
		case n.of(name) <- struct{}{}:
		default: // it was not looked at since the last time
		}
	}
	clear(n.fresh)
}
