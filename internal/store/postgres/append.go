package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"deckhand/internal/notify"
	"deckhand/internal/session"
	"deckhand/internal/store/packed"
	"deckhand/internal/store/postgres/pg"
)

// appending is a batch in the form in which it is stored.
type appending struct {
	batch session.Batch
	at    int64
	body  []byte // of all its events
	row   []byte
	words *string // what the index of words gets; nil if it has it
	drops bool    // nothing before the last event is kept
	n     *int64
	ours  bool
	mark  packed.Mark // of the last event
}

// encode makes the row of a batch that follows an event with this mark.
func (db *DB) encode(b session.Batch, mark packed.Mark) (*appending, error) {
	a := &appending{batch: b}
	if len(b.Events) == 0 {
		return nil, fmt.Errorf("session %s: no events can be appended after event %d", b.ID, b.After)
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
			a.at = pg.Micros(e.At)
			a.body = slices.Grow(a.body, len(body)+32*len(b.Events)+96)
		}
		a.body = packed.Append(a.body, kind, e.At.UnixMicro()-a.at, body)
		mark = db.chain.Next(mark, e.At.UnixMicro(), kind, body)
	}
	a.mark, a.body = mark, db.chain.Mark(a.body, mark)
	a.batch.Row.Last = b.After + int64(len(b.Events))
	a.row = packed.Row(a.batch.Row)
	a.words = db.changedWords(a.batch)
	n, ours := db.ids.place(b.ID)
	if a.ours = ours; !ours && b.After == 0 {
		n = db.ids.take()
	}
	if n != 0 {
		a.n = &n
	}
	return a, nil
}

// size is about what a batch adds to a message.
func (a *appending) size() int { return len(a.body) + len(a.row) + 256 }

// Append implements session.Log.
func (db *DB) Append(ctx context.Context, b session.Batch) error {
	if db.base.ReadOnly {
		return pg.ErrReadOnly
	}
	prev, err := db.mark(ctx, b.ID, b.After)
	if err != nil {
		return err
	}
	a, err := db.encode(b, prev)
	if err != nil {
		return err
	}
	if err = db.writer.append(ctx, a); errors.Is(err, errTell) {
		err = db.base.Update(ctx, func(c *pg.Conn) error { return db.appendAndTell(c, a) })
	}
	if err != nil {
		return err
	}
	db.known.put(a.batch.Row)
	db.chain.Put(b.ID, a.batch.Row.Last, a.mark)
	if a.drops {
		db.recent.Forget(b.ID)
	} else {
		db.recent.Add(b.ID, b.After, packed.Appended(b, a.batch.Row.Last, a.at, a.body))
	}
	return nil
}

// AppendAll stores the batches of a new session in one transaction: after a crash
// either all of them are stored or none. ErrConflict if the session exists.
func (db *DB) AppendAll(ctx context.Context, batches []session.Batch) error {
	var all []*appending
	last := int64(0)
	mark := db.chain.Start(batches[0].ID, 0)
	for _, b := range batches {
		if b.ID != batches[0].ID || b.After != last {
			return fmt.Errorf("session %s: the batch after event %d does not follow event %d", b.ID, b.After, last)
		}
		last += int64(len(b.Events))
		a, err := db.encode(b, mark)
		if err != nil {
			return err
		}
		mark = a.mark
		all = append(all, a)
	}
	return db.base.Update(ctx, func(c *pg.Conn) error {
		for _, a := range all {
			if err := db.appendAndTell(c, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// errTell refuses an append with news for webhooks, which needs a transaction with several statements.
var errTell = errors.New("the batch has news for webhooks")

// appendAndTell is an append in a transaction, with its news for webhooks.
func (db *DB) appendAndTell(c *pg.Conn, a *appending) error {
	if a.batch.Charge != (session.Charge{}) {
		if err := c.Lock(pg.LockMoney, a.batch.Row.Owner); err != nil {
			return err
		}
	}
	var b pg.Batch
	if err := oneStatement(&b, a, false); err != nil {
		return err
	}
	var refused error
	if err := c.Run(&b, func(row []any) error { refused = a.outcome(row); return nil }); err != nil {
		return err
	}
	if refused != nil {
		return pg.Refuse(refused)
	}
	if len(a.batch.News) == 0 {
		return nil
	}
	t, err := db.QueueTx(c, notify.Queue)
	if err != nil {
		return err
	}
	return notify.Tell(t, a.batch.Row.Owner, a.batch.ID, a.batch.News)
}

// The codes of the database's function.
const (
	codeStored int64 = iota
	codeConflict
	codeOver
	codeTell
)

// outcome is what the function says of a batch.
func (a *appending) outcome(row []any) error {
	switch code := pg.Number(row[1]); code {
	case codeStored:
		return nil
	case codeConflict:
		return session.ErrConflict
	case codeOver:
		if err := a.batch.Charge.Over(session.Money(pg.Number(row[2])), session.Money(pg.Number(row[3]))); err != nil {
			return err
		}
		return session.ErrConflict // cannot happen
	case codeTell:
		return errTell
	default:
		return fmt.Errorf("append_1 returned the unknown code %d", code)
	}
}

// stepSQL stores the batches of plain steps, of sessions whose number is known: it costs a third of calling
// the function for each. Sessions that are not where they should be are missing in the result.
const stepSQL = `WITH i AS (
	SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::text[], $9::bigint[], $10::bigint[],
		$11::bigint[], $12::text[], $13::boolean[], $14::bytea[]) AS i (ord, id, n, after, last, at, body, owner, created, updated, attention, holder, deleted, row)),
	u AS (UPDATE deckhand.sessions s SET owner = i.owner, created_at = i.created, updated_at = i.updated, last = i.last, attention = i.attention,
		holder = i.holder, deleted = i.deleted, row = i.row FROM i WHERE s.n = i.n AND s.id = i.id AND s.last = i.after
		RETURNING i.ord, i.n, i.last, i.at, i.body),
	e AS (INSERT INTO deckhand.events (n, last, at, body) SELECT n, last, at, body FROM u)
	SELECT ord, 0::bigint, NULL::bigint, NULL::bigint FROM u`

// oneStepSQL is stepSQL for a single batch: without arrays, the database needs a third less time.
const oneStepSQL = `WITH u AS (UPDATE deckhand.sessions SET owner = $7, created_at = $8, updated_at = $9, last = $4, attention = $10, holder = $11, deleted = $12, row = $13
	WHERE n = $2 AND id = $1 AND last = $3 RETURNING n)
	INSERT INTO deckhand.events (n, last, at, body) SELECT n, $4, $5, $6 FROM u RETURNING 0::bigint, 0::bigint, NULL::bigint, NULL::bigint`

// minSteps is how many plain steps a group must have to be stored by stepSQL, if it is planned each time.
const minSteps = 3

// isStep reports whether a batch is a plain step: it changes nothing but the log and the row of its session.
func (a *appending) isStep() bool {
	return a.ours && a.batch.After > 0 && !a.drops && a.words == nil && a.batch.Charge == (session.Charge{}) && len(a.batch.News) == 0
}

const appendSQL = `SELECT i.ord, r.code, r.has_spent, r.has_reserved
	FROM unnest($1::text[], $2::boolean[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bytea[], $8::boolean[],
		$9::text[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::boolean[], $15::bytea[], $16::text[],
		$17::text[], $18::bigint[], $19::boolean[], $20::bigint[], $21::boolean[], $22::bigint[], $23::boolean[], $24::bigint[])
		AS i (id, ours, n, after, last, at, body, drops, owner, created, updated, attention, holder, deleted, row, words,
			month, spent, reserves, reserved, forfeits, most, news, ord),
	LATERAL deckhand.append_1(i.id, i.ours, i.n, i.after, i.last, i.at, i.body, i.drops, i.owner, i.created, i.updated, i.attention,
		i.holder, i.deleted, i.row, i.words, i.month, i.spent, i.reserves, i.reserved, i.forfeits, i.most, i.news) r`

// columns are the batches of a group, by column.
type columns struct {
	ords                                             []int64
	ids, owners, months, words, holders              []*string
	ours, drops, deleted, reserves, forfeits, news   []bool
	ns, after, last, at, created, updated, attention []int64
	spent, reserved, limit                           []int64
	bodies, rows                                     [][]byte
}

func (k *columns) add(ord int, a *appending, telling bool) {
	k.ords = append(k.ords, int64(ord))
	b, r, charge := &a.batch, &a.batch.Row, &a.batch.Charge
	id, month := string(b.ID), string(charge.Month)
	k.ids, k.owners, k.months = append(k.ids, &id), append(k.owners, &r.Owner), append(k.months, &month)
	k.words = append(k.words, a.words)
	var holder *string
	if r.Holder != "" {
		holder = &r.Holder
	}
	k.holders = append(k.holders, holder)
	var n int64
	if a.n != nil {
		n = *a.n
	}
	k.ours, k.ns = append(k.ours, a.ours), append(k.ns, n)
	k.after, k.last, k.at = append(k.after, b.After), append(k.last, r.Last), append(k.at, a.at)
	k.bodies, k.rows, k.drops = append(k.bodies, a.body), append(k.rows, a.row), append(k.drops, a.drops)
	k.created, k.updated = append(k.created, pg.Micros(r.CreatedAt)), append(k.updated, pg.Micros(r.UpdatedAt))
	k.attention, k.deleted = append(k.attention, packed.Attention(*r)), append(k.deleted, r.Deleted)
	k.spent, k.reserved, k.limit = append(k.spent, int64(charge.Spent)), append(k.reserved, int64(charge.Reserved)), append(k.limit, int64(charge.Limit))
	k.reserves, k.forfeits = append(k.reserves, charge.Reserves), append(k.forfeits, charge.Forfeits)
	k.news = append(k.news, telling && len(b.News) > 0)
}

// oneSQL stores one batch.
const oneSQL = `SELECT 0::bigint, r.code, r.has_spent, r.has_reserved FROM deckhand.append_1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
	$17, $18, $19, $20, $21, $22, $23) r`

// oneStatement adds the statement that stores one batch.
func oneStatement(to *pg.Batch, a *appending, telling bool) error {
	b, r, charge := &a.batch, &a.batch.Row, &a.batch.Charge
	var n int64
	var words any
	if a.n != nil {
		n = *a.n
	}
	if a.words != nil {
		words = *a.words
	}
	return to.Add(oneSQL, true, string(b.ID), a.ours, n, b.After, r.Last, a.at, a.body, a.drops, r.Owner, pg.Micros(r.CreatedAt), pg.Micros(r.UpdatedAt), packed.Attention(*r),
		pg.OrNone(r.Holder), r.Deleted, a.row, words, string(charge.Month), int64(charge.Spent), charge.Reserves, int64(charge.Reserved), charge.Forfeits,
		int64(charge.Limit), telling && len(b.News) > 0)
}

// oneStep adds the statement that stores one plain step.
func oneStep(to *pg.Batch, a *appending) error {
	b, r := &a.batch, &a.batch.Row
	return to.Add(oneStepSQL, true, string(b.ID), *a.n, b.After, r.Last, a.at, a.body, r.Owner, pg.Micros(r.CreatedAt), pg.Micros(r.UpdatedAt), packed.Attention(*r),
		pg.OrNone(r.Holder), r.Deleted, a.row)
}

// appendStatements adds the statements that store a group: one for plain steps, if there are several, and one
// for the others. telling makes batches fail with errTell if there are webhooks for their news.
func appendStatements(to *pg.Batch, group []*appending, telling, byStep bool) error {
	var steps, others columns
	for i, a := range group {
		if byStep && a.isStep() {
			steps.add(i, a, telling)
		} else {
			others.add(i, a, telling)
		}
	}
	if len(steps.ords) > 0 {
		err := to.Add(stepSQL, true, steps.ords, steps.ids, steps.ns, steps.after, steps.last, steps.at, steps.bodies, steps.owners, steps.created, steps.updated,
			steps.attention, steps.holders, steps.deleted, steps.rows)
		if err != nil {
			return err
		}
	}
	if len(others.ords) == 0 {
		return nil
	}
	k := others
	return to.Add(appendSQL, true, k.ids, k.ours, k.ns, k.after, k.last, k.at, k.bodies, k.drops, k.owners, k.created, k.updated, k.attention, k.holders,
		k.deleted, k.rows, k.words, k.months, k.spent, k.reserves, k.reserved, k.forfeits, k.limit, k.news, k.ords)
}

// lockSQL takes the locks of several names in the order in which they are given.
const lockSQL = "SELECT pg_advisory_xact_lock($1::int, k) FROM unnest($2::int[]) k"

// moneyLocks adds the statement that locks the money of a group's owners, if it is about any. All
// groups take these locks first, in the same order, and then sessions in the order of their ids:
// so groups cannot deadlock.
func moneyLocks(to *pg.Batch, group []*appending) error {
	var owners []int32
	for _, a := range group {
		if a.batch.Charge != (session.Charge{}) {
			owners = append(owners, pg.Digest(a.batch.Row.Owner))
		}
	}
	if len(owners) == 0 {
		return nil
	}
	slices.Sort(owners)
	return to.Add(lockSQL, false, int64(pg.LockMoney), slices.Compact(owners))
}

// byID is the order in which sessions are locked.
func byID(a, b *appending) int { return cmp.Compare(a.batch.ID, b.batch.ID) }

// known remembers the rows of sessions that were written lately, so that the words of a working
// session are not sent with each of its steps. An entry is believed if the append follows it.
type known struct {
	mu   sync.Mutex
	rows map[session.ID]session.Row
}

const maxKnown = 4096

func (k *known) put(r session.Row) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, ok := k.rows[r.ID]; !ok && len(k.rows) >= maxKnown {
		for other := range k.rows { // any one
			delete(k.rows, other)
			break
		}
	}
	k.rows[r.ID] = r
}

func (k *known) forget(id session.ID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.rows, id)
}

// changedWords is what the index of words gets with a batch; nil if it has it.
func (db *DB) changedWords(b session.Batch) *string {
	db.known.mu.Lock()
	was, ok := db.known.rows[b.ID]
	db.known.mu.Unlock()
	same := was.Title == b.Row.Title && was.Repository == b.Row.Repository && was.Owner == b.Row.Owner
	if ok && was.Last == b.After && same || b.After == 0 && strings.TrimSpace(packed.WordsOf(b.Row)) == "" {
		return nil
	}
	list := gramList(b.Row)
	return &list
}
