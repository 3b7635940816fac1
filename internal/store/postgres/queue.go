package postgres

import (
	"context"
	"math"
	"sync"
	"time"

	"deckhand/internal/queue"
)

// tx is a transaction, or what a reader sees, of one of the queues and of what
// belongs to it.
type tx struct {
	c     *conn
	queue string
}

var _ queue.Tx = tx{}

// tx makes what a queue sees of a transaction. Until it ends, no other changes the queue: the rules read before they write.
func (db *DB) tx(c *conn, name string) (tx, error) {
	return tx{c: c, queue: name}, c.lock(lockQueue, name)
}

// update runs fn in a transaction.
func (db *DB) update(ctx context.Context, name string, fn func(tx) error) error {
	return db.write(ctx, func(c *conn) error {
		t, err := db.tx(c, name)
		if err != nil {
			return err
		}
		return fn(t)
	})
}

// view runs fn on what is stored.
func (db *DB) view(ctx context.Context, name string, fn func(tx) error) error {
	return db.read(ctx, func(c *conn) error { return fn(tx{c: c, queue: name}) })
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
	return q.db.update(ctx, q.name, func(t tx) error { return fn(t) })
}

// View implements queue.Store.
func (q named) View(ctx context.Context, fn func(queue.Tx) error) error {
	return q.db.view(ctx, q.name, func(t tx) error { return fn(t) })
}

// AddOwner implements queue.Owners.
func (t tx) AddOwner(id, user string) error {
	_, err := t.c.exec("INSERT INTO deckhand.queue_owners (queue, id, username) VALUES ($1, $2, $3)", t.queue, id, user)
	return err
}

// RemoveOwner implements queue.Owners.
func (t tx) RemoveOwner(id string) error {
	_, err := t.c.exec("DELETE FROM deckhand.queue_owners WHERE queue = $1 AND id = $2", t.queue, id)
	return err
}

const selectItem = `SELECT owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details FROM deckhand.queue_items WHERE queue = $1`

func itemOf(v []any) queue.Item {
	return queue.Item{Owner: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Print: text(v[3]), Lane: text(v[4]), Session: text(v[5]), Kind: text(v[6]),
		State: text(v[7]), Open: truth(v[8]), Attempts: int(number(v[9])), CreatedAt: moment(v[10]), NextAt: maybe(v[11]), Body: bytesOf(v[12]), Details: bytesOf(v[13])}
}

// Add implements queue.Items.
func (t tx) Add(it queue.Item) (queue.Item, bool, error) {
	added, err := t.c.one(`INSERT INTO deckhand.queue_items (queue, owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details)
		SELECT queue, id, coalesce((SELECT max(seq) FROM deckhand.queue_items i WHERE i.queue = o.queue AND i.owner = o.id), 0) + 1, $1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11::bytea, $12::bytea
		FROM deckhand.queue_owners o WHERE queue = $13 AND id = $14 ON CONFLICT DO NOTHING RETURNING seq`, func(v []any) { it.Seq = number(v[0]) },
		it.ID, orNone(it.Print), it.Lane, it.Session, it.Kind, it.State, it.Open, int64(it.Attempts), micros(it.CreatedAt), orNull(it.NextAt), blob(it.Body), blob(it.Details),
		t.queue, it.Owner)
	return it, added, err
}

// Put implements queue.Items.
func (t tx) Put(it queue.Item) (bool, error) {
	there, err := t.c.exec(`UPDATE deckhand.queue_items SET lane = $1, session = $2, state = $3, open = $4, attempts = $5, next_at = $6, body = $7, details = $8
		WHERE queue = $9 AND owner = $10 AND seq = $11 AND id = $12`,
		it.Lane, it.Session, it.State, it.Open, int64(it.Attempts), orNull(it.NextAt), blob(it.Body), blob(it.Details), t.queue, it.Owner, it.Seq, it.ID)
	return there > 0, err
}

// Find implements queue.Items.
func (t tx) Find(owner, id string) (it queue.Item, found bool, err error) {
	found, err = t.c.one(selectItem+" AND owner = $2 AND id = $3", func(v []any) { it = itemOf(v) }, t.queue, owner, id)
	return it, found, err
}

// Page implements queue.Items. It stops reading by itself in place of a LIMIT,
// which costs a statement per value.
func (t tx) Page(owner string, below int64, limit int) ([]queue.Item, error) {
	return t.items(limit, selectItem+" AND owner = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4", t.queue, owner, below, int64(max(limit, 0)))
}

// Opened implements queue.Items.
func (t tx) Opened(session string) ([]queue.Item, error) {
	return t.items(math.MaxInt, selectItem+" AND open AND ($2 = '' OR session = $2) ORDER BY session, owner, seq", t.queue, session)
}

func (t tx) items(limit int, sql string, args ...any) (found []queue.Item, err error) {
	err = t.c.query(sql, func(v []any) error {
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
	found, err = t.c.one(selectItem+" AND lane = $2 AND next_at IS NOT NULL ORDER BY next_at, owner, seq LIMIT 1", func(v []any) { it = itemOf(v) }, t.queue, lane)
	return it, found, err
}

// Count implements queue.Waiting.
func (t tx) Count(lane string) (n int, err error) {
	_, err = t.c.one("SELECT count(*) FROM deckhand.queue_items WHERE queue = $1 AND lane = $2 AND next_at IS NOT NULL", func(v []any) { n = int(number(v[0])) }, t.queue, lane)
	return n, err
}

// Advance implements queue.Waiting.
func (t tx) Advance(lane string, at time.Time) error {
	_, err := t.c.exec("UPDATE deckhand.queue_items SET next_at = $1 WHERE queue = $2 AND lane = $3 AND next_at > $1", micros(at), t.queue, lane)
	return err
}

// Last implements queue.History.
func (t tx) Last(owner string) (seq int64, err error) {
	_, err = t.c.one("SELECT max(seq) FROM deckhand.queue_items WHERE queue = $1 AND owner = $2", func(v []any) { seq = number(v[0]) }, t.queue, owner)
	return seq, err
}

// Drop implements queue.History.
func (t tx) Drop(owner string, upTo int64, before time.Time) error {
	if upTo <= 0 {
		return nil
	}
	_, err := t.c.exec("DELETE FROM deckhand.queue_items WHERE queue = $1 AND owner = $2 AND seq <= $3 AND NOT open AND created_at < $4", t.queue, owner, upTo, micros(before))
	return err
}

// Older implements queue.History.
func (t tx) Older(before time.Time, limit int) (found []queue.Item, err error) {
	err = t.c.query("SELECT owner, seq, id, lane, created_at FROM deckhand.queue_items WHERE queue = $1 AND created_at < $2 ORDER BY created_at LIMIT $3", func(v []any) error {
		if len(found) >= limit {
			return enough
		}
		found = append(found, queue.Item{Owner: text(v[0]), Seq: number(v[1]), ID: text(v[2]), Lane: text(v[3]), CreatedAt: moment(v[4])})
		return nil
	}, t.queue, micros(before), int64(max(limit, 0)))
	return found, err
}

// Remove implements queue.History.
func (t tx) Remove(it queue.Item) error {
	_, err := t.c.exec("DELETE FROM deckhand.queue_items WHERE queue = $1 AND owner = $2 AND seq = $3", t.queue, it.Owner, it.Seq)
	return err
}

const selectLane = "SELECT l.name, l.username, l.waiting, l.due_at, l.holder, l.until, l.claim FROM deckhand.queue_lanes l"

func laneOf(v []any) queue.Lane {
	return queue.Lane{Name: text(v[0]), User: text(v[1]), Waiting: int(number(v[2])), DueAt: maybe(v[3]), Holder: text(v[4]), Until: maybe(v[5]), Claim: number(v[6])}
}

// Lane implements queue.Lanes.
func (t tx) Lane(name string) (l queue.Lane, found bool, err error) {
	found, err = t.c.one(selectLane+" WHERE l.queue = $1 AND l.name = $2", func(v []any) { l = laneOf(v) }, t.queue, name)
	return l, found, err
}

// PutLane implements queue.Lanes.
func (t tx) PutLane(l queue.Lane) error {
	if l.Waiting == 0 && l.Holder == "" {
		_, err := t.c.exec("DELETE FROM deckhand.queue_lanes WHERE queue = $1 AND name = $2", t.queue, l.Name)
		return err
	}
	ready := l.ReadyAt()
	if l.Holder == "" && !ready.IsZero() {
		t.c.fresh[t.queue] = true
	}
	_, err := t.c.exec("INSERT INTO deckhand.queue_lanes (queue, name, username, waiting, due_at, holder, until, claim, ready_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) "+
		"ON CONFLICT (queue, name) DO UPDATE SET username = excluded.username, waiting = excluded.waiting, due_at = excluded.due_at, "+
		"holder = excluded.holder, until = excluded.until, claim = excluded.claim, ready_at = excluded.ready_at",
		t.queue, l.Name, l.User, int64(l.Waiting), orNull(l.DueAt), l.Holder, orNull(l.Until), l.Claim, orNull(ready))
	return err
}

// ofServed are the lanes of users who are not disabled. The first condition is that of the index.
const ofServed = " JOIN deckhand.users u ON u.name = l.username WHERE l.ready_at IS NOT NULL AND l.queue = $1 AND NOT u.disabled"

// Ready implements queue.Lanes.
func (t tx) Ready(now time.Time, limit int) (ready []queue.Lane, next time.Time, err error) {
	err = t.c.query(selectLane+ofServed+" AND l.ready_at <= $2 ORDER BY l.ready_at, l.name LIMIT $3", func(v []any) error {
		if len(ready) >= limit {
			return enough
		}
		ready = append(ready, laneOf(v))
		return nil
	}, t.queue, micros(now), int64(max(limit, 0)))
	if err != nil {
		return nil, next, err
	}
	_, err = t.c.one("SELECT l.ready_at FROM deckhand.queue_lanes l"+ofServed+" AND l.ready_at > $2 ORDER BY l.ready_at LIMIT 1", func(v []any) { next = moment(v[0]) }, t.queue, micros(now))
	return ready, next, err
}

// Held implements queue.Lanes.
func (t tx) Held() (held []queue.Lane, err error) {
	err = t.c.query(selectLane+" WHERE l.queue = $1 AND l.holder <> ''", func(v []any) error {
		held = append(held, laneOf(v))
		return nil
	}, t.queue)
	return held, err
}

// queueNews tells who works on a queue that something may have become due.
type queueNews struct {
	mu    *sync.Mutex
	added map[string]chan struct{}
}

func newQueueNews() queueNews { return queueNews{mu: &sync.Mutex{}, added: map[string]chan struct{}{}} }

// of is the channel of a queue.
func (n queueNews) of(name string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.added[name] == nil {
		n.added[name] = make(chan struct{}, 1)
	}
	return n.added[name]
}

// committed is told which queues a transaction has changed.
func (n queueNews) committed(fresh map[string]bool) {
	for name := range fresh {
		select {
		case n.of(name) <- struct{}{}:
		default: // it was not looked at since the last time
		}
	}
}
