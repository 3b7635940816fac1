package session_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
)

// told remembers what an observer was told.
type told struct {
	mu    sync.Mutex
	lasts []int64
}

func (o *told) Appended(_ session.ID, last int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lasts = append(o.lasts, last)
}

func create(t testing.TB, s *session.Sessions, id session.ID) {
	t.Helper()
	if _, err := s.Create(t.Context(), id, created, nil); err != nil {
		t.Fatal(err)
	}
}

// mustFit audits the raw log and compares what s sees with it.
func mustFit(t testing.TB, log *faulty, s *session.Sessions, id session.ID) session.State {
	t.Helper()
	events, authors := log.history(id)
	if _, err := audit(events, authors, nil); err != nil {
		t.Fatal(err)
	}
	st, err := s.Load(t.Context(), id)
	if err != nil || !reflect.DeepEqual(st, log.refold(id)) {
		t.Fatalf("%v: sees %+v\nthe log adds up to %+v", err, st, log.refold(id))
	}
	return st
}

func TestUpdateFromManyGoroutines(t *testing.T) {
	log, observer := newFaulty(), &told{}
	s := session.New(log)
	s.Observe(observer)
	create(t, s, theID)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for j := range 4 { // no more keys than a session remembers
				key := fmt.Sprintf("%d-%d", i, j)
				if _, err := s.Update(t.Context(), theID, say(key)); err != nil {
					t.Error(err)
				}
				if _, err := s.Update(t.Context(), theID, say(key)); !errors.Is(err, session.ErrDuplicate) {
					t.Errorf("second delivery: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if st := mustFit(t, log, s, theID); st.Last != 1+64*4 {
		t.Fatalf("%d events", st.Last)
	}
	if log.appends != 1+64*4 {
		t.Errorf("%d appends for %d changes: in one process they must take turns", log.appends, 1+64*4)
	}
	for i, last := range observer.lasts { // told in order, once each
		if last != int64(i)+1 {
			t.Fatalf("told %v", observer.lasts)
		}
	}
}

// Two processes know nothing of each other but the log.
func TestUpdateFromTwoProcesses(t *testing.T) {
	log := newFaulty()
	procs := []*session.Sessions{session.New(log), session.New(log)}
	create(t, procs[0], theID)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 25 {
				if _, err := procs[i%2].Update(t.Context(), theID, say(fmt.Sprintf("%d-%d", i, j))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, p := range procs {
		if st := mustFit(t, log, p, theID); st.Last != 1+16*25 {
			t.Fatalf("%d events", st.Last)
		}
	}
}

func TestUpdateAsksAgainOnConflict(t *testing.T) {
	log := newFaulty()
	s, other := session.New(log), session.New(log)
	create(t, s, theID)
	log.fail(fault{race: func() {
		if _, err := other.Update(t.Context(), theID, say("faster")); err != nil {
			t.Error(err)
		}
	}})
	var lasts []int64
	st, err := s.Update(t.Context(), theID, func(s session.State) ([]session.Payload, error) {
		lasts = append(lasts, s.Last)
		return s.Say(said)
	})
	if err != nil || st.Last != 3 || !reflect.DeepEqual(lasts, []int64{1, 2}) {
		t.Fatalf("asked at %v, then %v: %d", lasts, err, st.Last)
	}
	mustFit(t, log, s, theID)
}

// A refusal on an old state would be a lie: what was refused may be possible by now.
func TestRefusalLooksAtTheLogFirst(t *testing.T) {
	for name, ask := range map[string]decision{
		"of the rule": func(s session.State) ([]session.Payload, error) {
			return s.Decide(session.ApprovalGiven{Approved: true})
		},
		"of the check": do(session.ApprovalGiven{ID: "a", Approved: true}),
		"that changes nothing": func(s session.State) ([]session.Payload, error) {
			if len(s.Open) == 0 {
				return nil, nil
			}
			return s.Decide(session.ApprovalGiven{Approved: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := newFaulty()
			s, other := session.New(log), session.New(log)
			create(t, s, theID) // s keeps the state after event 1
			if _, err := other.Update(t.Context(), theID, do(awaiting[1:]...)); err != nil {
				t.Fatal(err)
			}
			st, err := s.Update(t.Context(), theID, ask)
			if err != nil || !st.Open[0].Approved {
				t.Fatalf("%v: %+v", err, st.Open)
			}
			// And a refusal that stays one is given, with the newest state.
			st, err = s.Update(t.Context(), theID, do(session.ApprovalGiven{ID: "a"}))
			if !errors.Is(err, session.ErrRefused) || st.Last != 9 {
				t.Fatalf("%v at %d", err, st.Last)
			}
			mustFit(t, log, s, theID)
		})
	}
}

// When the store fails, the batch may have been stored; the next change must look.
func TestErrorAfterStoringIsNoticed(t *testing.T) {
	log := newFaulty()
	s := session.New(log)
	create(t, s, theID)
	log.fail(fault{forget: true})
	if _, err := s.Update(t.Context(), theID, say("k")); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), theID, say("k")); !errors.Is(err, session.ErrDuplicate) {
		t.Fatalf("the second delivery: %v", err)
	}
	log.fail(fault{refuse: true})
	if _, err := s.Update(t.Context(), theID, say("l")); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	if st, err := s.Update(t.Context(), theID, say("l")); err != nil || st.Last != 3 {
		t.Fatal(st.Last, err)
	}
	log.fail(fault{read: true})
	if _, err := s.Load(t.Context(), theID); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	mustFit(t, log, s, theID)
}

// A store that reports a conflict but has nothing newer would be asked without end.
func TestConflictWithoutNews(t *testing.T) {
	log := fixed(nil)
	for _, p := range fresh {
		log = append(log, session.Event{Number: int64(len(log)) + 1, Payload: p})
	}
	if _, err := session.New(log).Update(t.Context(), theID, say("")); !errors.Is(err, session.ErrCorrupt) {
		t.Fatal(err)
	}
}

func TestDamagedLogs(t *testing.T) {
	event := func(n int64, p session.Payload) session.Event { return session.Event{Number: n, Payload: p} }
	for name, log := range map[string]fixed{
		"a gap":                   {event(1, created), event(3, said)},
		"no beginning":            {event(2, said)},
		"a lone result":           {event(1, created), event(2, returned("a", 1))},
		"deleted as first":        {event(1, session.Deleted{})},
		"something after deleted": {event(5, session.Deleted{}), event(6, said)},
	} {
		if _, err := session.New(log).Load(t.Context(), theID); !errors.Is(err, session.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A tombstone whose history the store dropped is whole.
	st, err := session.New(fixed{event(9, session.Deleted{})}).Load(t.Context(), theID)
	if err != nil || !st.Deleted || st.Last != 9 || st.Status() != session.Halted {
		t.Errorf("%v: %+v", err, st)
	}
}

func TestCreate(t *testing.T) {
	log, observer := newFaulty(), &told{}
	s := session.New(log)
	s.Observe(observer)
	if _, err := s.Load(t.Context(), theID); !errors.Is(err, session.ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), "no spaces", created, nil); err == nil {
		t.Fatal("a bad id is taken")
	}
	st, err := s.Create(t.Context(), theID, created, &said)
	if err != nil || st.Last != 2 || !st.Pending() || st.Status() != session.Starting {
		t.Fatalf("%v: %+v", err, st)
	}
	for _, s := range []*session.Sessions{s, session.New(log)} { // here by the cache, there by the store
		if _, err := s.Create(t.Context(), theID, created, nil); !errors.Is(err, session.ErrConflict) {
			t.Fatal(err)
		}
	}
	log.fail(fault{forget: true})
	if _, err := s.Create(t.Context(), "other", created, nil); !errors.Is(err, errStore) {
		t.Fatal(err)
	}
	if st, err := s.Load(t.Context(), "other"); err != nil || st.Last != 1 {
		t.Fatal(st.Last, err)
	}
	if !reflect.DeepEqual(observer.lasts, []int64{2}) {
		t.Fatalf("told %v", observer.lasts)
	}
}

func TestOneOfManyCreatesWins(t *testing.T) {
	log := newFaulty()
	procs := []*session.Sessions{session.New(log), session.New(log)}
	results := make(chan error, 32)
	for i := range cap(results) {
		go func() {
			_, err := procs[i%2].Create(t.Context(), theID, created, &said)
			results <- err
		}()
	}
	won := 0
	for range cap(results) {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, session.ErrConflict):
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d won", won)
	}
}

func TestCacheIsBounded(t *testing.T) {
	log := newFaulty()
	s := session.New(log, session.WithCache(8))
	for i := range 50 {
		create(t, s, session.ID(fmt.Sprint("s", i)))
		if idle, entries := s.Cached(); idle > 8 || entries > 8 {
			t.Fatalf("%d idle of %d", idle, entries)
		}
	}
	for i := range 50 { // those that were dropped are folded anew
		if st, err := s.Update(t.Context(), session.ID(fmt.Sprint("s", i)), say("")); err != nil || st.Last != 2 {
			t.Fatal(st.Last, err)
		}
	}
	if _, err := s.Load(t.Context(), "nobody"); !errors.Is(err, session.ErrNotFound) {
		t.Fatal(err)
	}
	if idle, entries := s.Cached(); idle != 8 || entries != 8 {
		t.Fatalf("%d idle of %d", idle, entries)
	}
}

// An entry in use is kept whatever the bound: two holders of one session must
// share its lock.
func TestCacheKeepsWhatIsUsed(t *testing.T) {
	log := newFaulty()
	s := session.New(log, session.WithCache(0))
	create(t, s, theID)
	inside, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := s.Update(t.Context(), theID, func(st session.State) ([]session.Payload, error) {
			close(inside)
			<-goOn
			return st.Say(said)
		})
		done <- err
	}()
	<-inside
	create(t, s, "another")
	if idle, entries := s.Cached(); idle != 0 || entries != 1 {
		t.Errorf("%d idle of %d", idle, entries)
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := newFaulty()
		s := session.New(log)
		create(t, s, theID)
		goOn := make(chan struct{})
		go func() {
			_, err := s.Update(t.Context(), theID, func(st session.State) ([]session.Payload, error) {
				<-goOn
				return st.Say(said)
			})
			if err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		asked := false
		_, err := s.Update(ctx, theID, func(session.State) ([]session.Payload, error) { asked = true; return nil, nil })
		if !errors.Is(err, context.DeadlineExceeded) || asked {
			t.Errorf("%v, asked %v", err, asked)
		}
		if _, err := s.Create(ctx, theID, created, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		close(goOn)
		synctest.Wait()
		mustFit(t, log, s, theID)
	})
}

// A clock that is set back does not make history run backwards.
func TestClockSetBack(t *testing.T) {
	log := newFaulty()
	now := time.Date(2030, 1, 2, 3, 4, 5, 678, time.UTC)
	s := session.New(log, session.WithClock(func() time.Time { now = now.Add(-time.Hour); return now }))
	create(t, s, theID)
	st, err := s.Update(t.Context(), theID, say(""))
	if err != nil || !st.UpdatedAt.Equal(st.CreatedAt) || st.UpdatedAt.Nanosecond() != 0 {
		t.Fatal(st.CreatedAt, st.UpdatedAt, err)
	}
}
