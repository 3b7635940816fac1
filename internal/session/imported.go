package session

import (
	"fmt"
	"slices"
)

// Means is what an imported event means to the model; nil if it means nothing.
func (p Imported) Means() Payload {
	switch {
	case p.Said != nil:
		return *p.Said
	case p.Answered != nil:
		return *p.Answered
	case p.Returned != nil:
		return *p.Returned
	case p.Told != nil:
		return *p.Told
	case p.Condensed != nil:
		return *p.Condensed
	}
	return nil
}

// checkImported holds what is taken over to the rules of what happens here: each
// call has one result, and nothing is said by the model before it is there.
func (s State) checkImported(p Imported) error {
	if s.Claim > 0 || s.Halt > 0 {
		return s.no(p, "what is taken over comes before all that is done here")
	}
	switch {
	case p.Answered != nil:
		if len(s.Open) > 0 {
			return s.no(p, "every tool call has its result before the model answers again")
		}
		seen := map[string]bool{}
		for _, c := range p.Answered.ToolCalls {
			if c.ID == "" || seen[c.ID] {
				return s.no(p, "the calls of an answer have ids of their own")
			}
			seen[c.ID] = true
		}
	case p.Returned != nil:
		if c, open := s.call(p.Returned.ID); !open || !c.Elsewhere {
			return s.no(p, "a tool call has exactly one result")
		}
	case p.Condensed != nil:
		return s.checkCondensed(*p.Condensed)
	}
	return nil
}

// applyImported keeps track of the calls. Nothing of it is to be done here.
func (s State) applyImported(number int64, p Imported) State {
	s.Shown = number
	switch {
	case p.Said != nil:
		s.LastSaid, s.heard = number, number
	case p.Answered != nil && len(p.Answered.ToolCalls) > 0:
		s.Open = slices.Clone(s.Open)
		for _, c := range p.Answered.ToolCalls {
			s.Open = append(s.Open, OpenCall{ID: c.ID, Name: c.Name, Number: number, Since: number, Elsewhere: true})
		}
		s.steps = &step{from: number, prev: s.steps}
	case p.Returned != nil:
		s.Open = slices.DeleteFunc(slices.Clone(s.Open), func(c OpenCall) bool { return c.ID == p.Returned.ID })
		if len(s.Open) == 0 && s.steps != nil {
			s.steps = &step{from: s.steps.from, to: number, prev: s.steps.prev}
		}
	}
	return s
}

// A batch of a log that is stored as a whole has at most so many events and about so many bytes: a store reads a batch as a whole.
const (
	importEvents = 64
	importBytes  = 256 << 10
)

// Import makes the batches that store a whole imported log: numbered and checked like every append, but each event keeps its own time, and no news is
// sent. Nothing is charged either: the cost was paid elsewhere. The log must end in a state that needs no loop.
func Import(id ID, events []Event) ([]Batch, State, error) {
	return stored(id, events, func(p Payload) int {
		if p, ok := p.(Imported); ok {
			return 2 * len(p.Event)
		}
		return 0
	})
}

// stored is Import for events that weigh so much.
func stored(id ID, events []Event, weigh func(Payload) int) ([]Batch, State, error) {
	if err := id.Check(); err != nil {
		return nil, State{}, err
	}
	st := State{ID: id}
	var out []Batch
	size := 0
	for i, e := range events {
		e.Number = int64(i) + 1
		if err := st.Check(e.Payload); err != nil {
			return nil, st, err
		}
		if n := len(out); n == 0 || size > importBytes || len(out[n-1].Events) >= importEvents {
			out, size = append(out, Batch{ID: id, After: int64(i)}), 0
		}
		st = st.Apply(e)
		b := &out[len(out)-1]
		b.Events, b.Row = append(b.Events, e), st.Row()
		size += weigh(e.Payload)
	}
	if !st.Exists() || st.Wants() {
		return nil, st, fmt.Errorf("%w: a log that is taken over ends in a stop", ErrRefused)
	}
	return out, st, nil
}
