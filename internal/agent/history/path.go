package history

import (
	"context"
	"iter"
	"slices"
	"sort"

	"deckhand/internal/session"
)

// Path is the part of a log that the model sees: everything except what lies behind the points to which the conversation
// was restored. It takes the same memory for each restore, however many there were before. The zero value sees everything.
type Path struct {
	now *stretch
	// past are the stretches in the order in which they began.
	past []*stretch
	// undo is where the path stood before each restore that can be undone.
	undo []place
}

// stretch is a run of events without a restore. What comes before it on the path ends at a place.
type stretch struct {
	begin  int64
	behind place
}

// place is an event of a stretch; nil is the stretch with which the log begins.
type place struct {
	in *stretch
	at int64
}

// Add takes the next event. It reports whether the path is another one now: the event follows an earlier one than the
// event before it.
func (p *Path) Add(e session.Event) bool {
	r, ok := e.Payload.(session.Restored)
	if !ok || !r.Conversation {
		return false
	}
	if r.Action == session.RestoreUndo {
		last := len(p.undo) - 1
		if last < 0 {
			return false
		}
		p.turn(e.Number, p.undo[last])
		p.undo = p.undo[:last]
		return true
	}
	p.undo = append(p.undo, place{p.now, e.Number - 1})
	p.turn(e.Number, place{p.at(r.Point), r.Point})
	return true
}

// turn lets the path go on with an event behind a place.
func (p *Path) turn(number int64, behind place) {
	p.now = &stretch{number, behind}
	p.past = append(p.past, p.now)
}

// at is the stretch to which an event belongs.
func (p *Path) at(number int64) *stretch {
	n := sort.Search(len(p.past), func(i int) bool { return p.past[i].begin > number })
	if n == 0 {
		return nil
	}
	return p.past[n-1]
}

// Span is a run of events, both ends included.
type Span struct{ From, To int64 }

// Spans lists what the model sees of the events up to last, oldest first.
func (p *Path) Spans(last int64) []Span {
	var out []Span
	for s := p.now; s != nil; s = s.behind.in {
		out = append(out, Span{s.begin, last})
		last = s.behind.at
	}
	out = append(out, Span{1, last})
	slices.Reverse(out)
	return out
}

// Read reads the events up to last that the model sees. What was withdrawn stays so, and what was recalled belongs to its
// message.
func (p *Path) Read(ctx context.Context, log session.Log, id session.ID, last int64) iter.Seq2[session.Event, error] {
	spans := p.Spans(last)
	return func(yield func(session.Event, error) bool) {
		for e, err := range session.ReadUpTo(ctx, log, id, 0, last) {
			if err == nil && e.Number > last {
				return
			}
			seen := err != nil || In(spans, e.Number)
			switch p := e.Payload.(type) {
			case session.Withdrawn:
				seen = true
			case session.Recalled:
				seen = In(spans, p.Of)
			}
			if seen && !yield(e, err) {
				return
			}
		}
	}
}

// In reports whether an event is in one of the spans, which are in order.
func In(spans []Span, number int64) bool {
	n := sort.Search(len(spans), func(i int) bool { return spans[i].From > number })
	return n > 0 && number <= spans[n-1].To
}
