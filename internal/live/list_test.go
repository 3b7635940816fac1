package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// watched is an index that can be made to fail, and to be interrupted.
type watched struct {
	*memlog.Log
	reads  atomic.Int64
	broken bool
	// before and during are called before a snapshot is read, and after that, before it is delivered.
	before, during func()
}

func (l *watched) Rows(ctx context.Context, q session.Query) ([]session.Row, error) {
	l.reads.Add(1)
	if l.broken {
		return nil, errStore
	}
	if l.before != nil {
		l.before()
	}
	rows, err := l.Log.Rows(ctx, q)
	if l.during != nil {
		l.during()
	}
	return rows, err
}

// shelf is lists on sessions that tests change.
type shelf struct {
	t       testing.TB
	log     *watched
	lists   *Lists
	s       *session.Sessions
	encoded atomic.Int64
}

func newShelf(t testing.TB) *shelf {
	s := &shelf{t: t, log: &watched{Log: memlog.New()}}
	s.lists = NewLists(s.log, func(r session.Row) ([]byte, error) {
		s.encoded.Add(1)
		if r.Title == "poison" {
			return nil, errors.New("cannot be said")
		}
		return json.Marshal(map[string]any{"id": r.ID, "last": r.Last})
	})
	s.s = session.New(s.log.Log)
	s.s.Watch(s.lists)
	return s
}

func (s *shelf) create(owner string, ids ...session.ID) {
	s.t.Helper()
	for _, id := range ids {
		if _, err := s.s.Create(context.Background(), id, session.Created{Owner: owner}, nil); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *shelf) change(id session.ID, p ...session.Payload) {
	s.t.Helper()
	if len(p) == 0 {
		p = []session.Payload{session.Noted{ID: "n"}}
	}
	if _, err := s.s.Update(context.Background(), id, func(session.State) ([]session.Payload, error) { return p, nil }); err != nil {
		s.t.Error(err)
	}
}

// join follows maria's list, until the test ends.
func (s *shelf) join() *lister {
	r := s.lists.join("maria")
	s.t.Cleanup(func() {
		if s.lists.leave(r); r.list.followers == 0 && (len(s.lists.owners) != 0 || r.list.timer != nil) {
			s.t.Error("something stays without followers")
		}
	})
	return r
}

// told is what a reader gets now, each as "event id@last", or "snapshot id@last …".
func (s *shelf) told(r *lister) []string {
	s.t.Helper()
	frames, err := r.next(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, f := range frames {
		out = append(out, said(s.t, f.Event, f.Data))
	}
	return out
}

func said(t testing.TB, event string, data []byte) string {
	t.Helper()
	type row struct {
		ID      string `json:"id"`
		Last    int64  `json:"last"`
		Deleted string `json:"conversation_id"`
		Results []row  `json:"results"`
	}
	var r row
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	switch {
	case event == EventSnapshot:
		for _, r := range r.Results {
			event += fmt.Sprintf(" %s@%d", r.ID, r.Last)
		}
		return event
	case r.Deleted != "":
		return event + " " + r.Deleted
	}
	return fmt.Sprintf("%s %s@%d", event, r.ID, r.Last)
}

func (s *shelf) expect(r *lister, want ...string) {
	s.t.Helper()
	if got := s.told(r); !slices.Equal(got, want) {
		s.t.Fatalf("told %q, want %q", got, want)
	}
}

func TestListTellsWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "a")
		time.Sleep(time.Second)
		s.create("maria", "b")
		s.create("otto", "o")
		r := s.join()
		s.expect(r, "snapshot b@1 a@1")
		s.expect(r)
		s.change("a")
		s.change("o") // another user's
		s.create("maria", "c")
		s.change("b", session.Deleted{})
		s.expect(r, "conversation a@2", "conversation c@1", "deleted b")
		s.expect(r)
		late := s.join()
		if got := s.told(late); len(got) != 1 || !strings.HasPrefix(got[0], "snapshot c@1 a@2") {
			t.Errorf("who comes later is told %q", got)
		}
		if n := s.log.reads.Load(); n != 2 {
			t.Errorf("%d reads: a change needs none", n)
		}
	})
}

// However often a row changes, it is told four times a second, and in the end as it is.
func TestListHoldsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "a", "b")
		r := s.join()
		s.told(r)
		got := map[time.Duration]string{}
		begin, done := time.Now(), make(chan struct{})
		go func() {
			defer close(done)
			for len(got) < 6 {
				<-r.changed
				got[time.Since(begin)] = strings.Join(s.told(r), ", ")
			}
		}()
		for i := range 84 { // for a second, and never in the instant in which a row is told
			s.change("a")
			if i == 30 {
				s.change("b") // does not wait for the other
			}
			time.Sleep(12 * time.Millisecond)
		}
		<-done
		want := map[time.Duration]string{0: "conversation a@2", 250: "conversation a@22", 360: "conversation b@2",
			500: "conversation a@43", 750: "conversation a@64", 1000: "conversation a@85"}
		for at, tell := range want {
			if got[at*time.Millisecond] != tell {
				t.Errorf("after %d ms: %q, want %q", at, got[at*time.Millisecond], tell)
			}
		}
		if len(got) != len(want) {
			t.Errorf("told at %v", got)
		}
		if r.list.timer != nil {
			t.Error("a timer runs though nothing is held back")
		}
	})
}

// A reader that was away gets the newest state of each, in the order of the changes.
func TestListSkipsWhatIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "a", "b", "c")
		r := s.join()
		s.told(r)
		for range 50 {
			for _, id := range []session.ID{"b", "a", "c"} {
				s.change(id)
			}
			time.Sleep(tellEvery)
		}
		s.expect(r, "conversation b@51", "conversation a@51", "conversation c@51")
	})
}

// Many readers cost one encoding.
func TestListEncodesOnce(t *testing.T) {
	s := newShelf(t)
	s.create("maria", "a")
	readers := make([]*lister, 50)
	for i := range readers {
		readers[i] = s.join()
		s.told(readers[i])
	}
	before := s.encoded.Load()
	s.change("a")
	var all sync.WaitGroup
	for _, r := range readers {
		all.Go(func() { s.expect(r, "conversation a@2") })
	}
	all.Wait()
	if n := s.encoded.Load() - before; n != 1 {
		t.Errorf("encoded %d times", n)
	}
}

// What changes while a snapshot is read is told after it, once, and never an older state.
func TestListSnapshotRaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "a")
		r := s.join()
		s.log.before = func() { s.change("a") } // told, but in the snapshot too
		s.log.during = func() {
			s.change("a") // after it was read; held back
			s.create("maria", "b")
		}
		s.expect(r, "snapshot a@2")
		s.log.before, s.log.during = nil, nil
		s.expect(r, "conversation b@1")
		time.Sleep(tellEvery)
		synctest.Wait()
		s.expect(r, "conversation a@3")
	})
}

// A list does not grow without bounds: rows that all followers know are dropped, and who
// does not know it begins anew.
func TestListIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		slow, fast := s.join(), s.join()
		s.told(slow)
		s.told(fast)
		size := 0
		for i := range 3 * maxListed {
			s.create("maria", session.ID(fmt.Sprint("s", i)))
			time.Sleep(2 * time.Millisecond)
			if got := s.told(fast); len(got) != 1 || got[0] != fmt.Sprintf("conversation s%d@1", i) {
				t.Fatalf("who keeps up is told %q", got)
			}
			size = max(size, len(slow.list.rows))
		}
		if size > maxListed {
			t.Errorf("a list of %d", size)
		}
		if got := s.told(slow); len(got) != 1 || !strings.HasPrefix(got[0], "snapshot s767@1 s766@1 ") {
			t.Errorf("who does not is told %q", got)
		}
		s.expect(slow)
		// All at once: no follower can keep up, and nothing can be forgotten.
		for i := range maxListed + 1 {
			s.change(session.ID(fmt.Sprint("s", i)))
			s.change(session.ID(fmt.Sprint("s", i)))
		}
		for _, r := range []*lister{slow, fast} {
			if got := s.told(r); len(got) != 1 || !strings.HasPrefix(got[0], "snapshot ") {
				t.Errorf("told %q", got)
			}
		}
	})
}

func TestListForgetsItsUsers(t *testing.T) {
	s := newShelf(t)
	s.create("maria", "a")
	one, two := s.lists.join("maria"), s.lists.join("maria")
	s.change("a")
	s.change("a") // is held back, by a timer
	s.lists.leave(one)
	if len(s.lists.owners) != 1 {
		t.Error("the list went with one of two")
	}
	s.lists.leave(two)
	if len(s.lists.owners) != 0 || two.list.timer != nil {
		t.Error("something stays")
	}
	two.list.release() // a timer that could not be stopped any more
	s.change("a")
	if n := len(two.list.rows); n != 1 || two.list.timer != nil {
		t.Error("a follower is still told")
	}
}

// A row that comes late does not undo a newer one.
func TestListIgnoresOldRows(t *testing.T) {
	s := newShelf(t)
	s.create("maria", "a")
	r := s.join()
	s.told(r)
	s.lists.Changed(session.Row{ID: "a", Owner: "maria", Last: 7})
	s.lists.Changed(session.Row{ID: "a", Owner: "maria", Last: 6})
	s.expect(r, "conversation a@7")
	if r.list.timer != nil {
		t.Error("an old row waits")
	}
}

// BenchmarkListChanged is what a change costs its caller.
func BenchmarkListChanged(b *testing.B) {
	for _, followed := range []bool{false, true} {
		b.Run(fmt.Sprint("followed=", followed), func(b *testing.B) {
			s := newShelf(b)
			if followed {
				s.join()
			}
			row := session.Row{ID: "a", Owner: "maria"}
			b.ReportAllocs()
			for b.Loop() {
				row.Last++
				s.lists.Changed(row)
			}
		})
	}
}

// What another server changes, creates or deletes is told although nothing woke the list.
func TestListLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "a", "b")
		r := s.join()
		if got := s.told(r); len(got) != 1 {
			t.Fatal(got)
		}
		other := &shelf{t: t, s: session.New(s.log.Log)}
		time.Sleep(time.Second)
		other.change("a")
		other.change("b", session.Deleted{})
		time.Sleep(time.Second)
		other.create("maria", "c")
		s.expect(r)
		r.recheck(t.Context())
		s.expect(r, "conversation c@1", "conversation a@2", "deleted b")
		other.change("a")
		r.recheck(t.Context())
		s.expect(r) // it is too early to look again
		time.Sleep(recheckEvery)
		r.recheck(t.Context())
		s.expect(r, "conversation a@3")
		time.Sleep(recheckEvery)
		r.recheck(t.Context())
		s.expect(r)
	})
}

// What one reader got in its snapshot is looked after by whichever of them looks again.
func TestListLooksAgainForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		s.create("maria", "old")
		first := s.join()
		s.told(first)
		other := &shelf{t: t, s: session.New(s.log.Log)}
		for i := range snapshotRows {
			time.Sleep(time.Second)
			other.create("maria", session.ID(fmt.Sprint("new", i)))
		}
		second := s.join()
		if got := s.told(second); len(got) != 1 || strings.Contains(got[0], "old") {
			t.Fatal(got)
		}
		other.change("old", session.Deleted{})
		second.recheck(t.Context())
		if got := s.told(first); !slices.Contains(got, "deleted old") {
			t.Errorf("got %v", got)
		}
	})
}

// A list that was shown in part after part does not grow without bound.
func TestShownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t)
		r := s.join()
		s.told(r)
		for i := range maxListed + 1 {
			r.list.show([]session.Row{{ID: session.ID(fmt.Sprint(i))}})
		}
		if got := s.told(r); len(got) != 1 || !strings.HasPrefix(got[0], "snapshot") {
			t.Errorf("got %v", got)
		}
		if n := len(r.list.shown); n > maxListed {
			t.Errorf("%d are kept", n)
		}
	})
}
