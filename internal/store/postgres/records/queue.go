package records

import (
	"context"
	"math"
	"time"

	"deckhand/internal/queue"
	"deckhand/internal/store/postgres/pg"
)

// Tx is a transaction, or what a reader sees, of one of the queues and of what
// belongs to it.
type Tx struct {
	c     *pg.Conn
	queue string
	// ahead is how far the clock of the database is ahead of that of this server. Servers compare when work is due
	// and until when it is claimed, so these times are stored by the clock of the database.
	ahead time.Duration
}

var _ queue.Tx = Tx{}

const databaseTime = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

// sameClock is the difference up to which two clocks count as equal. It is more than a query takes.
const sameClock = time.Second

// QueueTx returns a queue in a transaction. It locks the queue until the transaction ends, because
// the rules of queues read before they write.
func (s *Store) QueueTx(c *pg.Conn, name string) (Tx, error) {
	return s.queueTx(c, name, "SELECT pg_advisory_xact_lock($1::int, $2::int)::text, "+databaseTime, int64(pg.LockQueue), int64(pg.Digest(name)))
}

// queueTx runs a query whose last column is the time of the database, and returns a queue that uses this time.
func (s *Store) queueTx(c *pg.Conn, name, sql string, args ...any) (Tx, error) {
	t := Tx{c: c, queue: name}
	_, err := c.One(sql, func(v []any) {
		now := time.Now
		if s.Clock != nil {
			now = s.Clock
		}
		if d := pg.Moment(v[len(v)-1]).Sub(now()); d.Abs() > sameClock {
			t.ahead = d.Round(time.Second)
		}
	}, args...)
	return t, err
}

// stored converts a time of this server to a stored one, and orNull does the same with NULL for the zero time.
func (t Tx) stored(at time.Time) any { return pg.Micros(at.Add(t.ahead)) }

func (t Tx) orNull(at time.Time) any {
	if at.IsZero() {
		return nil
	}
	return t.stored(at)
}

// moment reverses orNull.
func (t Tx) moment(v any) time.Time {
	if v == nil {
		return time.Time{}
	}
	return pg.Moment(v).Add(-t.ahead)
}

// update runs fn in a transaction.
func (s *Store) update(ctx context.Context, name string, fn func(Tx) error) error {
	return s.DB.Update(ctx, func(c *pg.Conn) error {
		t, err := s.QueueTx(c, name)
		if err != nil {
			return err
		}
		return fn(t)
	})
}

// view runs fn on what is stored.
func (s *Store) view(ctx context.Context, name string, fn func(Tx) error) error {
	return s.DB.View(ctx, func(c *pg.Conn) error {
		t, err := s.queueTx(c, name, "SELECT "+databaseTime)
		if err != nil {
			return err
		}
		return fn(t)
	})
}

// named is a queue with a name.
type named struct {
	s    *Store
	name string
}

// Queue implements store.Backend.
func (s *Store) Queue(name string) queue.Store { return named{s, name} }

// Update implements queue.Store.
func (q named) Update(ctx context.Context, fn func(queue.Tx) error) error {
	return q.s.update(ctx, q.name, func(t Tx) error { return fn(t) })
}

// View implements queue.Store.
func (q named) View(ctx context.Context, fn func(queue.Tx) error) error {
	return q.s.view(ctx, q.name, func(t Tx) error { return fn(t) })
}

// AddOwner implements queue.Owners.
func (t Tx) AddOwner(id, user string) error {
	_, err := t.c.Exec("INSERT INTO deckhand.queue_owners (queue, id, username) VALUES ($1, $2, $3)", t.queue, id, user)
	return err
}

// RemoveOwner implements queue.Owners.
func (t Tx) RemoveOwner(id string) error {
	_, err := t.c.Exec("DELETE FROM deckhand.queue_owners WHERE queue = $1 AND id = $2", t.queue, id)
	return err
}

const selectItem = `SELECT owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details FROM deckhand.queue_items WHERE queue = $1`

func (t Tx) itemOf(v []any) queue.Item {
	return queue.Item{Owner: pg.Text(v[0]), Seq: pg.Number(v[1]), ID: pg.Text(v[2]), Print: pg.Text(v[3]), Lane: pg.Text(v[4]), Session: pg.Text(v[5]), Kind: pg.Text(v[6]),
		State: pg.Text(v[7]), Open: pg.Truth(v[8]), Attempts: int(pg.Number(v[9])), CreatedAt: pg.Moment(v[10]), NextAt: t.moment(v[11]), Body: pg.Bytes(v[12]), Details: pg.Bytes(v[13])}
}

// Add implements queue.Items.
func (t Tx) Add(it queue.Item) (queue.Item, bool, error) {
	added, err := t.c.One(`INSERT INTO deckhand.queue_items (queue, owner, seq, id, print, lane, session, kind, state, open, attempts, created_at, next_at, body, details)
		SELECT queue, id, coalesce((SELECT max(seq) FROM deckhand.queue_items i WHERE i.queue = o.queue AND i.owner = o.id), 0) + 1, $1, $2::text, $3, $4, $5, $6, $7, $8, $9, $10::bigint, $11::bytea, $12::bytea
		FROM deckhand.queue_owners o WHERE queue = $13 AND id = $14 ON CONFLICT DO NOTHING RETURNING seq`, func(v []any) { it.Seq = pg.Number(v[0]) },
		it.ID, pg.OrNone(it.Print), it.Lane, it.Session, it.Kind, it.State, it.Open, int64(it.Attempts), pg.Micros(it.CreatedAt), t.orNull(it.NextAt), pg.Blob(it.Body), pg.Blob(it.Details),
		t.queue, it.Owner)
	return it, added, err
}

// Put implements queue.Items.
func (t Tx) Put(it queue.Item) (bool, error) {
	there, err := t.c.Exec(`UPDATE deckhand.queue_items SET lane = $1, session = $2, state = $3, open = $4, attempts = $5, next_at = $6, body = $7, details = $8
		WHERE queue = $9 AND owner = $10 AND seq = $11 AND id = $12`,
		it.Lane, it.Session, it.State, it.Open, int64(it.Attempts), t.orNull(it.NextAt), pg.Blob(it.Body), pg.Blob(it.Details), t.queue, it.Owner, it.Seq, it.ID)
	return there > 0, err
}

// Find implements queue.Items.
func (t Tx) Find(owner, id string) (it queue.Item, found bool, err error) {
	found, err = t.c.One(selectItem+" AND owner = $2 AND id = $3", func(v []any) { it = t.itemOf(v) }, t.queue, owner, id)
	return it, found, err
}

// Page implements queue.Items. It stops reading by itself in place of a LIMIT,
// which costs a statement per value.
func (t Tx) Page(owner string, below int64, limit int) ([]queue.Item, error) {
	return t.items(limit, selectItem+" AND owner = $2 AND seq < $3 ORDER BY seq DESC LIMIT $4", t.queue, owner, below, int64(max(limit, 0)))
}

// Opened implements queue.Items.
func (t Tx) Opened(session string) ([]queue.Item, error) {
	return t.items(math.MaxInt, selectItem+" AND open AND ($2 = '' OR session = $2) ORDER BY session, owner, seq", t.queue, session)
}

func (t Tx) items(limit int, sql string, args ...any) (found []queue.Item, err error) {
	err = t.c.Query(sql, func(v []any) error {
		if len(found) >= limit {
			return pg.Enough
		}
		found = append(found, t.itemOf(v))
		return nil
	}, args...)
	return found, err
}

// First implements queue.Waiting.
func (t Tx) First(lane string) (it queue.Item, found bool, err error) {
	found, err = t.c.One(selectItem+" AND lane = $2 AND next_at IS NOT NULL ORDER BY next_at, owner, seq LIMIT 1", func(v []any) { it = t.itemOf(v) }, t.queue, lane)
	return it, found, err
}

// Count implements queue.Waiting.
func (t Tx) Count(lane string) (n int, err error) {
	_, err = t.c.One("SELECT count(*) FROM deckhand.queue_items WHERE queue = $1 AND lane = $2 AND next_at IS NOT NULL", func(v []any) { n = int(pg.Number(v[0])) }, t.queue, lane)
	return n, err
}

// Advance implements queue.Waiting.
func (t Tx) Advance(lane string, at time.Time) error {
	_, err := t.c.Exec("UPDATE deckhand.queue_items SET next_at = $1 WHERE queue = $2 AND lane = $3 AND next_at > $1", t.stored(at), t.queue, lane)
	return err
}

// Last implements queue.History.
func (t Tx) Last(owner string) (seq int64, err error) {
	_, err = t.c.One("SELECT max(seq) FROM deckhand.queue_items WHERE queue = $1 AND owner = $2", func(v []any) { seq = pg.Number(v[0]) }, t.queue, owner)
	return seq, err
}

// Drop implements queue.History.
func (t Tx) Drop(owner string, upTo int64, before time.Time) error {
	if upTo <= 0 {
		return nil
	}
	_, err := t.c.Exec("DELETE FROM deckhand.queue_items WHERE queue = $1 AND owner = $2 AND seq <= $3 AND NOT open AND created_at < $4", t.queue, owner, upTo, pg.Micros(before))
	return err
}

// Older implements queue.History.
func (t Tx) Older(before time.Time, limit int) (found []queue.Item, err error) {
	err = t.c.Query("SELECT owner, seq, id, lane, created_at FROM deckhand.queue_items WHERE queue = $1 AND created_at < $2 ORDER BY created_at LIMIT $3", func(v []any) error {
		if len(found) >= limit {
			return pg.Enough
		}
		found = append(found, queue.Item{Owner: pg.Text(v[0]), Seq: pg.Number(v[1]), ID: pg.Text(v[2]), Lane: pg.Text(v[3]), CreatedAt: pg.Moment(v[4])})
		return nil
	}, t.queue, pg.Micros(before), int64(max(limit, 0)))
	return found, err
}

// Remove implements queue.History.
func (t Tx) Remove(it queue.Item) error {
	_, err := t.c.Exec("DELETE FROM deckhand.queue_items WHERE queue = $1 AND owner = $2 AND seq = $3", t.queue, it.Owner, it.Seq)
	return err
}

const selectLane = "SELECT l.name, l.username, l.waiting, l.due_at, l.holder, l.until, l.claim FROM deckhand.queue_lanes l"

func (t Tx) laneOf(v []any) queue.Lane {
	return queue.Lane{Name: pg.Text(v[0]), User: pg.Text(v[1]), Waiting: int(pg.Number(v[2])), DueAt: t.moment(v[3]), Holder: pg.Text(v[4]), Until: t.moment(v[5]), Claim: pg.Number(v[6])}
}

// Lane implements queue.Lanes.
func (t Tx) Lane(name string) (l queue.Lane, found bool, err error) {
	found, err = t.c.One(selectLane+" WHERE l.queue = $1 AND l.name = $2", func(v []any) { l = t.laneOf(v) }, t.queue, name)
	return l, found, err
}

// PutLane implements queue.Lanes.
func (t Tx) PutLane(l queue.Lane) error {
	if l.Waiting == 0 && l.Holder == "" {
		_, err := t.c.Exec("DELETE FROM deckhand.queue_lanes WHERE queue = $1 AND name = $2", t.queue, l.Name)
		return err
	}
	ready := l.ReadyAt()
	if l.Holder == "" && !ready.IsZero() {
		t.c.MarkDue(t.queue)
	}
	_, err := t.c.Exec("INSERT INTO deckhand.queue_lanes (queue, name, username, waiting, due_at, holder, until, claim, ready_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) "+
		"ON CONFLICT (queue, name) DO UPDATE SET username = excluded.username, waiting = excluded.waiting, due_at = excluded.due_at, "+
		"holder = excluded.holder, until = excluded.until, claim = excluded.claim, ready_at = excluded.ready_at",
		t.queue, l.Name, l.User, int64(l.Waiting), t.orNull(l.DueAt), l.Holder, t.orNull(l.Until), l.Claim, t.orNull(ready))
	return err
}

// ofServed are the lanes of users who are not disabled. The first condition is that of the index.
const ofServed = " JOIN deckhand.users u ON u.name = l.username WHERE l.ready_at IS NOT NULL AND l.queue = $1 AND NOT u.disabled"

// Ready implements queue.Lanes.
func (t Tx) Ready(now time.Time, limit int) (ready []queue.Lane, next time.Time, err error) {
	err = t.c.Query(selectLane+ofServed+" AND l.ready_at <= $2 ORDER BY l.ready_at, l.name LIMIT $3", func(v []any) error {
		if len(ready) >= limit {
			return pg.Enough
		}
		ready = append(ready, t.laneOf(v))
		return nil
	}, t.queue, t.stored(now), int64(max(limit, 0)))
	if err != nil {
		return nil, next, err
	}
	_, err = t.c.One("SELECT l.ready_at FROM deckhand.queue_lanes l"+ofServed+" AND l.ready_at > $2 ORDER BY l.ready_at LIMIT 1", func(v []any) { next = t.moment(v[0]) }, t.queue, t.stored(now))
	return ready, next, err
}

// Held implements queue.Lanes.
func (t Tx) Held() (held []queue.Lane, err error) {
	err = t.c.Query(selectLane+" WHERE l.queue = $1 AND l.holder <> ''", func(v []any) error {
		held = append(held, t.laneOf(v))
		return nil
	}, t.queue)
	return held, err
}
