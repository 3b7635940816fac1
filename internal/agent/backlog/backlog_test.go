package backlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/session"
)

// add queues sessions by names such as "a1": the owner and a number. An exclamation
// mark makes one urgent, a plus sign gives it a slot.
func add(q *Queue, names ...string) (fit bool) {
	fit = true
	for _, name := range names {
		if id, granted := strings.CutSuffix(name, "+"); granted {
			q.Grant(Entry{ID: session.ID(id), Owner: name[:1]})
			continue
		}
		id, urgent := strings.CutSuffix(name, "!")
		fit = q.Add(Entry{ID: session.ID(id), Owner: name[:1], Last: 2, Urgent: urgent}) && fit
	}
	return fit
}

func taken(q *Queue) string {
	var out []string
	for {
		e, ok := q.Next()
		if !ok {
			return strings.Join(out, " ")
		}
		out = append(out, string(e.ID))
	}
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: took %s, want %s", what, got, want)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, queued, want string }{
		{"one owner", "a1 a2 a3", "a1 a2 a3"},
		{"owners take turns", "a1 a2 a3 b1 c1 c2", "a1 b1 c1 a2 c2 a3"},
		{"urgent ones do not wait", "a1 a2 a3 b1!", "b1 a1 a2 a3"},
		{"others do not wait for urgent ones", "a1! a2! a3! b1 b2", "a1 b1 a2 b2 a3"},
		{"owners of urgent ones take turns", "a1! a2! b1!", "a1 b1 a2"},
		{"once each", "a1 b1 a1 b1", "a1 b1"},
		{"one becomes urgent", "a1 a2 a3 a3!", "a3 a1 a2"},
		{"one stays urgent", "a1 a2! a2", "a2 a1"},
		{"one with a slot goes first, and once", "a1 a2! a3 a3+", "a3 a2 a1"},
	} {
		q := New(100)
		add(q, strings.Fields(c.queued)...)
		same(t, c.what, taken(q), c.want)
		if q.Len() != 0 || len(q.urgent.owners)+len(q.first.owners) != 0 {
			t.Errorf("%s: something stays: %+v", c.what, q)
		}
	}
}

// One who comes while another's backlog is being taken does not wait for it.
func TestLateOwner(t *testing.T) {
	t.Parallel()
	q := New(1000)
	for i := range 500 {
		add(q, fmt.Sprintf("a%d", i))
	}
	for range 100 {
		q.Next()
	}
	add(q, "b1", "a9999!")
	var next []string
	for range 3 {
		e, _ := q.Next()
		next = append(next, string(e.ID))
	}
	if want := []string{"a9999", "a100", "b1"}; !slices.Equal(next, want) {
		t.Errorf("took %v, want %v", next, want)
	}
}

// A queued session to which something happens is one that a person is at.
func TestNewerEventsAreUrgent(t *testing.T) {
	t.Parallel()
	q := New(10)
	add(q, "a1", "a2", "a3", "a4")
	q.Add(Entry{ID: "a2", Owner: "a", Last: 2}) // the same again
	q.Add(Entry{ID: "a3", Owner: "a"})          // found in the index
	q.Add(Entry{ID: "a4", Owner: "a", Last: 3})
	if e, _ := q.Next(); e.ID != "a4" || e.Last != 3 || !e.Urgent {
		t.Errorf("took %+v", e)
	}
	if e, _ := q.Next(); e.ID != "a1" || e.Last != 2 {
		t.Errorf("took %+v", e)
	}
	same(t, "the rest", taken(q), "a2 a3")
}

// When the queue is full, one who has less than others still gets in.
func TestFull(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, queued, more, want string }{
		{"for one owner", "a1 a2 a3 a4", "a5", "a1 a2 a3 a4"},
		{"for another", "a1 a2 a3 a4", "b1", "a1 b1 a2 a3"},
		{"for another, up to as many", "a1 a2 a3 a4", "b1 b2 b3", "a1 b1 a2 b2"},
		{"of many owners", "a1 b1 c1 d1", "e1", "a1 b1 c1 d1"},
		{"for an urgent one", "a1 a2 a3 a4", "a5!", "a5 a1 a2 a3"},
		{"of urgent ones", "a1! a2! a3! a4!", "b1", "a1 a2 a3 a4"},
		{"of urgent ones, for an urgent one", "a1! a2! a3! a4!", "b1!", "a1 b1 a2 a3"},
		{"for a known one", "a1 a2 a3 a4", "a2", "a1 a2 a3 a4"},
	} {
		q := New(4)
		if !add(q, strings.Fields(c.queued)...) {
			t.Errorf("%s: full too early", c.what)
		}
		if fit := add(q, strings.Fields(c.more)...); fit != (c.what == "for a known one") {
			t.Errorf("%s: that it is full is not said", c.what)
		}
		if q.Len() != 4 {
			t.Errorf("%s: it has %d", c.what, q.Len())
		}
		same(t, c.what, taken(q), c.want)
	}
}
