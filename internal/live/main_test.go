package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// TestMain looks for goroutines that are left. Those that are about to end get
// the time for it: on a crowded machine one look, which takes a second, is not enough.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		err := goleak.Find()
		for n := 0; err != nil && n < 20; n++ {
			err = goleak.Find()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			code = 1
		}
	}
	os.Exit(code)
}

const theID = session.ID("a-session")

var errStore = errors.New("the store broke")

// counting is a log that counts reads and can be made to fail.
type counting struct {
	*memlog.Log
	reads  atomic.Int64
	broken atomic.Bool
	// after is done once, when a read has come to its end and before its reader knows.
	after atomic.Pointer[func()]
}

func (l *counting) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	l.reads.Add(1)
	if l.broken.Load() {
		return func(yield func(session.Event, error) bool) { yield(session.Event{}, errStore) }
	}
	return func(yield func(session.Event, error) bool) {
		l.Log.Read(ctx, id, after)(yield)
		if then := l.after.Swap(nil); then != nil {
			(*then)()
		}
	}
}

// world is a hub on a session that tests append to.
type world struct {
	t    testing.TB
	log  *counting
	hub  *Hub
	s    *session.Sessions
	deaf *session.Sessions // changes the log without telling the hub
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, log: &counting{Log: memlog.New()}}
	w.hub = New(w.log, encode)
	w.s, w.deaf = session.New(w.log), session.New(w.log)
	w.s.Observe(w.hub)
	if _, err := w.s.Create(context.Background(), theID, session.Created{Owner: "maria"}, nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// shown says which events the test's encoder has a word for.
func shown(n int64) bool { return n%7 != 0 }

// encode writes the number, and what the note says.
func encode(_ session.ID, e session.Event) (Frame, bool, error) {
	note, _ := e.Payload.(session.Noted)
	switch {
	case note.ID == "poison":
		return Frame{}, false, errors.New("cannot be said")
	case note.ID == "lines":
		return Frame{Data: []byte("{\n \"n\":\r\n 1}")}, true, nil
	case note.ID == "big":
		return Frame{Data: fmt.Appendf(nil, `{"n":%d,"m":%q}`, e.Number, strings.Repeat("x", len(note.Message)))}, true, nil
	case e.Payload.Kind() == session.KindTitled:
		return Frame{Event: EventStatus, Data: []byte(`{"title":true}`)}, true, nil
	case e.Payload.Kind() == session.KindModelFailed, e.Payload.Kind() == session.KindDeleted, !shown(e.Number):
		return Frame{}, false, nil
	}
	return Frame{Data: fmt.Appendf(nil, `{"n":%d}`, e.Number)}, true, nil
}

// add appends and returns the number of the last event.
func (w *world) add(p ...session.Payload) int64 { return w.addBy(w.s, p...) }

func (w *world) addBy(s *session.Sessions, p ...session.Payload) int64 {
	w.t.Helper()
	st, err := s.Update(context.Background(), theID, func(session.State) ([]session.Payload, error) { return p, nil })
	if err != nil {
		w.t.Error(err)
	}
	return st.Last
}

// note appends n events, one at a time, and returns the number of the last.
func (w *world) note(n int) (last int64) {
	w.t.Helper()
	for range n {
		last = w.add(session.Noted{ID: "note"})
	}
	return last
}

// big appends an event whose frame is about so large.
func (w *world) big(size int) int64 {
	return w.add(session.Noted{ID: "big", Message: strings.Repeat("x", size)})
}

// ask opens a model call.
func (w *world) ask(call string) {
	w.t.Helper()
	st, err := w.s.Load(context.Background(), theID)
	if err != nil {
		w.t.Fatal(err)
	}
	if !st.InTurn {
		w.add(session.UserSaid{Text: "hello"}, session.Claimed{By: "loop"}, session.TurnBegan{})
		st.Last += 3
	}
	w.add(session.ModelAsked{Call: call, UpTo: st.Last})
}

// expect checks that numbers are exactly the shown ones after after, up to last.
func expect(t testing.TB, who string, after, last int64, numbers []int64) {
	t.Helper()
	i := 0
	for n := after + 1; n <= last; n++ {
		if !shown(n) {
			continue
		}
		if i >= len(numbers) || numbers[i] != n {
			t.Errorf("%s: event %d is missing or out of order at place %d of %v", who, n, i, numbers)
			return
		}
		i++
	}
	if i != len(numbers) {
		t.Errorf("%s: got more than there is: %v", who, numbers[i:])
	}
}

// feeds is how many sessions the hub knows.
func (w *world) feeds() int {
	w.hub.mu.RLock()
	defer w.hub.mu.RUnlock()
	return len(w.hub.feeds)
}
