package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// A group is bounded so that its last caller waits a limited time and a rollback does not undo
// much; the queue is bounded so that callers notice a slow disk.
const (
	groupWrites = 512
	groupBytes  = 8 << 20
	queueLength = 1024
)

// write is one caller's change, waiting for its turn.
type write struct {
	// do makes the change. It checks before it writes: a refusal means that it
	// wrote nothing. It may be run a second time, after a rollback of the first.
	// What it stores in its caller's variables may be read only when write
	// returned nil: a caller whose context ended leaves before it is done.
	do   func(*conn) error
	size int
	// taken decides between the writer and a caller that gives up: the first to set it wins.
	taken atomic.Bool
	done  chan error
	err   error
	probe bool // without a waiter; see healthy
}

// writer is the goroutine that owns the writing connection.
type writer struct {
	conn  *conn
	queue chan *write
	stop  chan struct{} // closed: no new writes
	ended chan struct{} // closed: the goroutine is gone
	// committed is told how much was committed.
	committed func(writes, bytes int)
	// diagnose gives a failure the name that callers know.
	diagnose func(error) error
	// undone is told of every rollback, when what was learned while writing is void.
	undone func()
	group  []*write

	commits, writes, refusals, failures, splits atomic.Int64
	trouble                                     atomic.Pointer[error] // why the database did not store the last write
	probing                                     atomic.Bool
}

func newWriter(c *conn, committed func(writes, bytes int), diagnose func(error) error, undone func()) *writer {
	w := &writer{
		conn: c, committed: committed, diagnose: diagnose, undone: undone,
		queue: make(chan *write, queueLength), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go w.loop()
	return w
}

// write queues a change and waits until it is durable. When ctx ends first, the
// change may or may not be made.
func (w *writer) write(ctx context.Context, size int, do func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &write{do: do, size: size, done: make(chan error, 1)}
	select {
	case <-w.stop:
		return ErrClosed
	default:
	}
	select {
	case w.queue <- j:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.stop:
		return ErrClosed
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		j.taken.Swap(true) // if it is not begun yet, it never will be
		return ctx.Err()
	case <-w.ended:
		select {
		case err := <-j.done:
			return err
		default:
			return ErrClosed // queued after the writer had looked for the last time
		}
	}
}

// close answers what is queued and ends the goroutine. The connection stays.
func (w *writer) close() {
	close(w.stop)
	<-w.ended
}

// healthy is why the last write was not stored. A server that says so may be
// sent no more work that could show it healed, so it tries a small write itself.
func (w *writer) healthy() error {
	err := w.trouble.Load()
	if err == nil {
		return nil
	}
	if !w.probing.Swap(true) {
		probe := &write{probe: true, done: make(chan error, 1), do: func(c *conn) error {
			_, err := c.exec("INSERT INTO counters (name, value) VALUES ('probes', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1")
			return err
		}}
		select {
		case w.queue <- probe:
		default: // there is work enough to show it
			w.probing.Store(false)
		}
	}
	return *err
}

func (w *writer) loop() {
	defer close(w.ended)
	for {
		select {
		case j := <-w.queue:
			w.take(j)
		case <-w.stop:
			select {
			case j := <-w.queue:
				w.take(j)
			default:
				return
			}
		}
	}
}

// companyTime is how long the writer waits for company at most.
const companyTime = time.Millisecond

// company lets those go first who are about to ask. Under load it is the processor that is
// short, and it has better to do than commits: each costs as much as many writes. The writer
// therefore gives way as long as others come while it does. On a machine that has nothing
// else to do, that is no time at all.
func (w *writer) company() {
	begin := time.Now()
	for had := -1; had < len(w.queue) && time.Since(begin) < companyTime; {
		had = len(w.queue)
		runtime.Gosched()
	}
}

// take stores j together with whatever else is waiting.
func (w *writer) take(j *write) {
	w.company()
	w.group = w.group[:0]
	bytes := 0
	for {
		if !j.taken.Swap(true) {
			w.group = append(w.group, j)
			bytes += j.size
		}
		if len(w.group) >= groupWrites || bytes >= groupBytes {
			break
		}
		select {
		case j = <-w.queue:
			continue
		default:
		}
		break
	}
	if len(w.group) > 0 {
		w.store(w.group)
	}
	clear(w.group) // the queue's memory must not keep what callers wrote
}

// store runs a group and answers its callers.
func (w *writer) store(group []*write) {
	began, err := w.transact(group)
	switch {
	case err == nil:
	case began && len(group) > 1:
		// One of them may be at fault: alone, it harms only itself.
		w.splits.Add(1)
		w.storeEach(group)
	default:
		for _, j := range group {
			j.err = err
		}
	}
	w.answer(group)
}

func (w *writer) storeEach(group []*write) {
	for i, j := range group {
		began, err := w.transact(group[i : i+1])
		if !began && busy(err) {
			for _, rest := range group[i:] { // no write of the group is at fault: do not wait again for each
				rest.err = err
			}
			return
		}
		if err != nil {
			j.err = err
		}
	}
}

func (w *writer) answer(group []*write) {
	for _, j := range group {
		w.writes.Add(1)
		var r refusal
		switch {
		case errors.As(j.err, &r):
			w.refusals.Add(1)
			j.err = r.error
		case j.err != nil:
			w.failures.Add(1)
			bad := ofDatabase(j.err)
			if j.err = w.diagnose(j.err); bad {
				w.trouble.Store(&j.err)
			}
		default:
			if w.trouble.Load() != nil {
				w.trouble.Store(nil)
			}
		}
		if j.probe {
			w.probing.Store(false)
		}
		j.done <- j.err
	}
}

// transact runs the group in one transaction. An error means that nothing of it
// was stored; refusals are the business of their writes and no error.
func (w *writer) transact(group []*write) (began bool, err error) {
	if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
		return false, err
	}
	w.conn.forgetFacts()
	writes, bytes := 0, 0
	for _, j := range group {
		j.err = w.run(j)
		if _, refused := j.err.(refusal); refused {
			continue
		}
		if j.err != nil {
			w.rollback()
			return true, j.err
		}
		writes++
		bytes += j.size
	}
	if writes == 0 { // all refused: nothing to make durable, and nothing was learned
		_, err := w.conn.exec("ROLLBACK")
		return true, err
	}
	if _, err := w.conn.exec("COMMIT"); err != nil {
		w.rollback()
		return true, err
	}
	w.commits.Add(1)
	w.committed(writes, bytes)
	return true, nil
}

// run keeps a panic of one write from ending the process and all other writes.
func (w *writer) run(j *write) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a write panicked: %v", p)
		}
	}()
	return j.do(w.conn)
}

func (w *writer) rollback() {
	w.undone()
	// SQLite has rolled back already after some errors, so this may have nothing to do and say so.
	_, _ = w.conn.exec("ROLLBACK")
}
