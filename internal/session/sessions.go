package session

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Sessions is the one way to change a session.
type Sessions struct {
	log       Log
	observers []Observer
	watchers  []Watcher
	now       func() time.Time
	cache     *cache
	userLimit Money
	written   func(id ID, call string) string
}

// Option configures Sessions.
type Option func(*Sessions)

// WithClock replaces the clock, for tests.
func WithClock(now func() time.Time) Option { return func(s *Sessions) { s.now = now } }

// WithCache sets how many folded states are kept (default 1024).
func WithCache(n int) Option { return func(s *Sessions) { s.cache = newCache(n) } }

// WithUserLimit sets what each user may spend in a calendar month; 0 is as much
// as they like. It is kept by the log, with every call that costs something.
func WithUserLimit(limit Money) Option { return func(s *Sessions) { s.userLimit = limit } }

// New makes Sessions on a log.
func New(log Log, opts ...Option) *Sessions {
	s := &Sessions{log: log, now: time.Now, cache: newCache(1024)}
	for _, o := range opts {
		o(s)
	}
	return s
}

// Observe adds an observer. Call it before the first change.
func (s *Sessions) Observe(o Observer) { s.observers = append(s.observers, o) }

// Watch adds a watcher. Call it before the first change, too.
func (s *Sessions) Watch(w Watcher) { s.watchers = append(s.watchers, w) }

// Create makes a session that is known to be new, without reading the log first. ErrConflict if it exists after all. For first and more see Begin.
func (s *Sessions) Create(ctx context.Context, id ID, c Created, first *UserSaid, more ...Payload) (State, error) {
	if err := id.Check(); err != nil {
		return State{}, err
	}
	state := State{ID: id}
	payloads, err := state.Begin(c, first, more...)
	if err != nil {
		return State{}, err
	}
	e := s.cache.get(id)
	defer s.cache.put(e)
	if err := e.lock(ctx); err != nil {
		return State{}, err
	}
	defer e.unlock()
	if e.loaded && e.state.Exists() {
		return State{}, ErrConflict
	}
	next, batch, err := s.plan(state, payloads)
	if err != nil {
		return State{}, err
	}
	if err := s.log.Append(ctx, batch); err != nil {
		return State{}, err
	}
	e.state, e.loaded = next, true
	s.tell(batch.Row)
	return next, nil
}

// Update calls decide with the current state of the session and appends what it returns. If the session has grown by
// then, decide is called again with the new state. No payloads and no error means that nothing changes.
//
// A refusal is never given on an old state: before it is returned, the log is looked at once more.
func (s *Sessions) Update(ctx context.Context, id ID, decide func(State) ([]Payload, error)) (State, error) {
	e := s.cache.get(id)
	defer s.cache.put(e)
	if err := e.lock(ctx); err != nil {
		return State{}, err
	}
	defer e.unlock()
	fresh := false
	if !e.loaded {
		if err := s.advance(ctx, e, id); err != nil {
			return State{}, err
		}
		fresh = true
	}
	for {
		var next State
		var batch Batch
		var failure error
		payloads, refusal := decide(s.asked(e.state))
		if refusal == nil && len(payloads) > 0 {
			if next, batch, refusal = s.plan(e.state, payloads); refusal == nil {
				refusal, failure = s.append(ctx, batch)
			}
		}
		if refusal != nil || len(payloads) == 0 {
			last := e.state.Last
			if fresh {
				return e.state, refusal
			}
			if err := s.advance(ctx, e, id); err != nil {
				return State{}, err
			}
			if fresh = true; e.state.Last == last {
				return e.state, refusal
			}
			continue
		}
		switch {
		case errors.Is(failure, ErrConflict):
			before := e.state.Last
			if err := s.advance(ctx, e, id); err != nil {
				return State{}, err
			}
			if e.state.Last == before {
				return State{}, fmt.Errorf("%w: the store reports a conflict at event %d but has nothing newer", ErrCorrupt, before)
			}
			fresh = true
		case failure != nil:
			e.loaded = false // the batch may have been stored: look before the next change
			return State{}, failure
		default:
			e.state = next
			s.tell(batch.Row)
			return next, nil
		}
	}
}

// append stores a batch. A limit that stands in the way is a refusal, like that of a rule, and no failure.
func (s *Sessions) append(ctx context.Context, b Batch) (refusal, failure error) {
	err := s.log.Append(ctx, b)
	var over *BudgetError
	if errors.As(err, &over) {
		return over, nil
	}
	return nil, err
}

// Peek is the session as this process last changed it, without a look at the log; false when it is not in memory or
// being changed. It is good for finding out whether a closer look is worth it.
func (s *Sessions) Peek(id ID) (State, bool) {
	e := s.cache.get(id)
	defer s.cache.put(e)
	select {
	case e.turn <- struct{}{}:
	default:
		return State{}, false
	}
	defer e.unlock()
	return e.state, e.loaded
}

// Known is like Peek, but waits for a change that is being made.
func (s *Sessions) Known(ctx context.Context, id ID) (State, bool) {
	e := s.cache.get(id)
	defer s.cache.put(e)
	if e.lock(ctx) != nil {
		return State{}, false
	}
	defer e.unlock()
	return e.state, e.loaded
}

// Bury deletes a session whose log is damaged, so that no rule can be asked: the row says who it was and where it
// ended. A call that was open is taken to have cost what was reserved for it, as always.
func (s *Sessions) Bury(ctx context.Context, row Row) error {
	now := s.now().UTC().Truncate(time.Microsecond)
	ev := Event{Number: row.Last + 1, At: now, Payload: Deleted{}}
	row.Last, row.UpdatedAt, row.Deleted, row.Wants, row.Holder, row.Status, row.Agent = ev.Number, now, true, false, "", Halted, AgentStopped
	b := Batch{ID: row.ID, After: row.Last - 1, Events: []Event{ev}, Row: row, Charge: Charge{Month: MonthOf(now), Forfeits: true}}
	if err := s.log.Append(ctx, b); err != nil {
		return err
	}
	s.tell(row)
	return nil
}

// Load folds the session as it is now.
func (s *Sessions) Load(ctx context.Context, id ID) (State, error) {
	st, err := s.Update(ctx, id, func(State) ([]Payload, error) { return nil, nil })
	if err == nil && !st.Exists() {
		return st, ErrNotFound
	}
	return st, err
}

// plan numbers and checks the payloads. It returns the state after them, and what to store so that it becomes true.
func (s *Sessions) plan(at State, payloads []Payload) (State, Batch, error) {
	b := Batch{ID: at.ID, After: at.Last, Events: make([]Event, len(payloads))}
	now := s.now().UTC().Truncate(time.Microsecond)
	if now.Before(at.UpdatedAt) { // a clock that was set back does not reorder history
		now = at.UpdatedAt
	}
	next := at
	for i, p := range payloads {
		if err := next.Check(p); err != nil {
			return State{}, Batch{}, err
		}
		b.Events[i] = Event{Number: at.Last + int64(i) + 1, At: now, Payload: p}
		before := next
		next = before.Apply(b.Events[i])
		b.News = addNews(b.News, before, next, b.Events[i])
	}
	b.Row = next.Row()
	b.Charge = charge(at, next, b.Events, s.userLimit)
	return next, b, nil
}

// advance reads what is new and folds it.
func (s *Sessions) advance(ctx context.Context, e *entry, id ID) error {
	st := e.state
	if !e.loaded {
		st = State{ID: id}
	}
	st, err := Fold(ctx, s.log, st)
	if err != nil {
		e.loaded = false
		return err
	}
	e.state, e.loaded = st, true
	return nil
}

// Fold reads the log after st.Last and applies it, checking every event.
func Fold(ctx context.Context, log Log, st State) (State, error) {
	for ev, err := range log.Read(ctx, st.ID, st.Last) {
		if err != nil {
			return st, err
		}
		if _, ok := ev.Payload.(Deleted); ok && ev.Number > st.Last+1 {
			// The store dropped what came before; the tombstone is all there is.
			st = State{ID: st.ID, Last: ev.Number - 1}
		}
		if ev.Number != st.Last+1 {
			return st, fmt.Errorf("%w: event %d follows event %d", ErrCorrupt, ev.Number, st.Last)
		}
		if err := st.Check(ev.Payload); err != nil {
			return st, fmt.Errorf("%w: event %d: %v", ErrCorrupt, ev.Number, err)
		}
		st = st.Apply(ev)
	}
	return st, nil
}

func (s *Sessions) tell(row Row) {
	for _, o := range s.observers {
		o.Appended(row.ID, row.Last)
	}
	for _, w := range s.watchers {
		w.Changed(row)
	}
}
