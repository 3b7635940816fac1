package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
)

// A group is bounded so that its last caller waits a limited time and a failure does not undo
// much; the queue is bounded so that callers notice a slow database.
const (
	groupWrites = 512
	groupBytes  = 8 << 20
	queueLength = 1024
	// writers is how many groups are under way at most. While one waits for the disk, another
	// is on its way.
	writers = 2
	// gatherTime is how long a writer waits for more appends at most.
	gatherTime = time.Millisecond
)

// job is one caller's append, waiting for its turn.
type job struct {
	*appending
	// taken decides between the writer and a caller that gives up: the first to set it wins.
	taken atomic.Bool
	done  chan error
	err   error
}

// writer stores appends in groups.
type writer struct {
	db    *DB
	queue chan *job
	stop  chan struct{} // closed: no new appends
	ended chan struct{} // closed: the goroutines are gone

	splits atomic.Int64 // groups that failed and were tried again one by one
}

func newWriter(db *DB) *writer {
	w := &writer{db: db, queue: make(chan *job, queueLength), stop: make(chan struct{}), ended: make(chan struct{})}
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			l := &line{writer: w}
			l.loop()
			l.drop()
		})
	}
	go func() {
		all.Wait()
		close(w.ended)
	}()
	return w
}

// append queues a batch and waits until it is durable. When ctx ends first, it may or may not be
// stored. A batch that waits too long for its turn is refused; the time of a group in progress is limited.
func (w *writer) append(ctx context.Context, a *appending) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{appending: a, done: make(chan error, 1)}
	select {
	case <-w.stop:
		return pg.ErrClosed
	default:
	}
	late := time.NewTimer(w.db.base.Limits.Call)
	defer late.Stop()
	select {
	case w.queue <- j:
	case <-late.C:
		return pg.ErrOverloaded
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stop:
		return pg.ErrClosed
	}
	for late := late.C; ; late = nil {
		select {
		case err := <-j.done:
			return err
		case <-late:
			if !j.taken.Swap(true) { // keeps the writer from starting it
				return pg.ErrOverloaded
			}
		case <-ctx.Done():
			j.taken.Swap(true)
			return ctx.Err()
		case <-w.ended:
			select {
			case err := <-j.done:
				return err
			default:
				return pg.ErrClosed // queued after the writers had looked for the last time
			}
		}
	}
}

// close answers what is queued and ends the goroutines.
func (w *writer) close() {
	close(w.stop)
	<-w.ended
}

// line is a goroutine that stores groups, and its connection.
type line struct {
	*writer
	c     *pg.Conn // nil if there is none
	group []*job
	// later are appends to sessions that the group has one of already.
	later []*job
}

func (l *line) loop() {
	for {
		if len(l.later) > 0 {
			first := l.later[0]
			l.later = l.later[1:]
			l.take(first)
			continue
		}
		select {
		case j := <-l.queue:
			l.take(j)
		case <-l.stop:
			select {
			case j := <-l.queue:
				l.take(j)
			default:
				return
			}
		}
	}
}

// gather waits a moment for more appends to be queued: a commit costs as much as many appends.
func (l *line) gather() {
	begin := time.Now()
	for had := -1; had < len(l.queue) && time.Since(begin) < gatherTime; {
		had = len(l.queue)
		runtime.Gosched()
	}
}

// take stores j together with whatever else is waiting. A session is in a group once: the
// function of the database must see what came before.
func (l *line) take(j *job) {
	l.gather()
	l.group = l.group[:0]
	size := 0
	in := map[session.ID]bool{}
	for {
		if in[j.batch.ID] {
			l.later = append(l.later, j)
		} else if !j.taken.Swap(true) {
			in[j.batch.ID] = true
			l.group = append(l.group, j)
			size += j.size()
		}
		if len(l.group) >= groupWrites || size >= groupBytes || len(l.later) > 0 {
			break
		}
		select {
		case j = <-l.queue:
			continue
		default:
		}
		break
	}
	if len(l.group) > 0 {
		l.store(l.group)
	}
	clear(l.group)
}

// store stores a group and answers its callers.
func (l *line) store(group []*job) {
	slices.SortFunc(group, func(a, b *job) int { return byID(a.appending, b.appending) })
	err := l.send(group)
	switch {
	case err == nil:
	case pg.Unconnected(err):
		for _, j := range group {
			j.err = err
		}
	case pg.Lost(err):
		l.resend(group, err)
	case len(group) > 1:
		// One of them may be at fault: alone, it harms only itself.
		l.splits.Add(1)
		for i := range group {
			if err := l.try(group[i : i+1]); err != nil {
				group[i].err = err
			}
		}
	default:
		if pg.Retryable(err) {
			err = l.try(group)
		}
		if err != nil {
			group[0].err = err
		}
	}
	for _, j := range group {
		err := j.err
		if errors.Is(err, session.ErrConflict) || errors.Is(err, errTell) || isBudget(err) {
			err = pg.Refuse(err)
		}
		j.done <- l.db.base.Ended(err)
	}
}

func isBudget(err error) bool {
	var over *session.BudgetError
	return errors.As(err, &over)
}

// try sends a group, and sends it again if it conflicts with other transactions.
func (l *line) try(group []*job) (err error) {
	for range pg.Tries {
		if err = l.send(group); !pg.Retryable(err) {
			break
		}
	}
	return err
}

// resend stores a group whose connection failed. It may have been stored, so each of
// its batches that now meets a conflict is compared with what is stored in its place.
func (l *line) resend(group []*job, failure error) {
	if err := l.try(group); err != nil {
		for _, j := range group {
			j.err = errors.Join(err, failure)
		}
		return
	}
	for _, j := range group {
		if !errors.Is(j.err, session.ErrConflict) {
			continue
		}
		if there, err := l.stored(j.appending); err != nil {
			j.err = err
		} else if there {
			j.err = nil
		}
	}
}

// stored says whether a batch is in the log.
func (l *line) stored(a *appending) (there bool, err error) {
	err = l.db.base.View(context.Background(), func(c *pg.Conn) error {
		n, _, found, err := l.db.findSession(c, a.batch.ID)
		if err != nil || !found {
			return err
		}
		_, err = c.One("SELECT body FROM deckhand.events WHERE n = $1 AND last = $2 AND at = $3", func(v []any) { there = bytes.Equal(pg.Bytes(v[0]), a.body) },
			n, a.batch.Row.Last, a.at)
		return err
	})
	return there, err
}

// errElsewhere marks a plain step whose session was not found by its number with the expected last event.
var errElsewhere = errors.New("not found by its number")

// send stores a group. Plain steps that were not found are tried again by the function, which tells conflicts from
// sessions that are stored under another number.
func (l *line) send(group []*job) error {
	steps := 0
	for _, j := range group {
		if j.isStep() {
			steps++
		}
	}
	if err := l.sendOnce(group, steps); err != nil || steps == 0 {
		return err
	}
	var rest []*job
	for _, j := range group {
		if j.err == errElsewhere {
			rest = append(rest, j)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if err := l.sendOnce(rest, 0); err != nil {
		for _, j := range rest { // the others are stored
			j.err = err
		}
	}
	return nil
}

// sendOnce stores a group in one round trip. An error means that nothing of it was stored, or that
// the connection failed; a refused batch is not an error of the group. So many of the group are plain steps, or 0 if they are to be stored by the function.
func (l *line) sendOnce(group []*job, steps int) error {
	return pg.Within(context.Background(), l.db.base.Limits.Call, func(ctx context.Context) error { return l.sendWithin(ctx, group, steps) })
}

func (l *line) sendWithin(ctx context.Context, group []*job, plain int) error {
	if err := l.db.lease.check(ctx); err != nil {
		return err
	}
	if l.c != nil && l.c.Stale() {
		l.drop()
	}
	if l.c == nil {
		c, err := l.db.base.Connect(ctx)
		if err != nil {
			return err
		}
		l.c = c
		l.c.Use(ctx)
		if err := l.c.Keep(); err != nil {
			l.drop()
			return err
		}
	}
	l.c.Use(ctx)
	all := make([]*appending, len(group))
	for i, j := range group {
		all[i] = j.appending
	}
	byStep := plain >= minSteps || plain > 0 && l.c.Keeps()
	var b pg.Batch
	if err := statements(&b, all, byStep, l.c.Keeps()); err != nil {
		return err
	}
	steps, answered := 0, 0
	for _, j := range group {
		if j.err = nil; byStep && j.isStep() {
			j.err = errElsewhere
			steps++
		}
	}
	err := l.c.Run(&b, func(row []any) error {
		i := int(pg.Number(row[0]))
		if i < 0 || i >= len(group) {
			return fmt.Errorf("the database returned a result for batch %d of %d", i, len(group))
		}
		if group[i].err == errElsewhere {
			steps--
		}
		group[i].err = group[i].outcome(row)
		answered++
		return nil
	})
	l.c.Use(ctx)
	if pg.PlanLost(err) {
		l.drop()
	}
	if err == nil && answered+steps != len(group) {
		err = fmt.Errorf("the database returned results for %d of %d batches", answered, len(group))
	}
	if err == nil {
		l.db.base.Committed()
	}
	return err
}

// statements are those that store a group, in one transaction. begun says that the connection keeps the settings for it.
func statements(to *pg.Batch, group []*appending, byStep, begun bool) error {
	// A single batch without a charge is one statement: the function sets what it needs.
	if !begun && (len(group) > 1 || group[0].batch.Charge != (session.Charge{})) {
		if err := to.Add(pg.BeginGroup, false); err != nil {
			return err
		}
	}
	if err := moneyLocks(to, group); err != nil {
		return err
	}
	switch {
	case len(group) == 1 && byStep && group[0].isStep():
		return oneStep(to, group[0])
	case len(group) == 1 && !byStep:
		return oneStatement(to, group[0], true)
	}
	return appendStatements(to, group, true, byStep)
}

// drop ends the connection.
func (l *line) drop() {
	if l.c != nil {
		l.db.base.End(l.c)
		l.c = nil
	}
}
