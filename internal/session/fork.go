package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"
)

// WholeLog is a Log that can store a new session of many batches at once.
type WholeLog interface {
	Log
	// AppendAll stores all of them in one transaction: after a crash all are there or none. ErrConflict if the session exists.
	AppendAll(ctx context.Context, batches []Batch) error
}

// Fork describes a copy of a session.
type Fork struct {
	// Number is the last event to be copied; 0 is all of them.
	Number int64
	// Title is the copy's; "" is that of the session, marked as a copy.
	Title string
	// Trigger, Fingerprint and MCP take the place of the session's own.
	Trigger     string
	Fingerprint string
	MCP         []byte
	// Workspace is the session whose workspace is copied: this one, or the one above that delegated it.
	Workspace State
}

// Fork makes to a copy of a session: the same events under the same numbers, up to the one that is asked for. If a call is open there, the copy ends
// before the call: its result belongs to the original. The copy is stopped and waits for a message.
//
// What the copied part cost was paid for by the original, so it counts neither
// against the limit of the copy nor in the ledger. ErrConflict if to exists.
func (s *Sessions) Fork(ctx context.Context, id, to ID, f Fork) (State, error) {
	log, ok := s.log.(WholeLog)
	if !ok {
		return State{}, errors.New("this store cannot copy conversations")
	}
	now, err := s.Load(ctx, id)
	if err != nil {
		return State{}, err
	}
	if now.Deleted {
		return State{}, ErrDeleted
	}
	events, err := s.history(ctx, now, f.Number)
	if err != nil {
		return State{}, err
	}
	events, err = copyOf(events, now, to, f, s.now().UTC().Truncate(time.Microsecond))
	if err != nil {
		return State{}, err
	}
	batches, st, err := stored(to, events, weigh)
	if err != nil {
		return State{}, err
	}
	// To others it is new, whenever its events happened.
	last := &batches[len(batches)-1]
	last.News = []News{{Kind: NewsCreated, Number: st.Last, At: st.UpdatedAt, Status: st.Status(), Agent: st.Agent}}
	if err := log.AppendAll(ctx, batches); err != nil {
		return State{}, err
	}
	s.tell(last.Row)
	return st, nil
}

// history is what is copied: the events up to the newest one, not above most, at which nothing is under way.
func (s *Sessions) history(ctx context.Context, of State, most int64) ([]Event, error) {
	if most == 0 || most > of.Last {
		most = of.Last
	}
	st := State{ID: of.ID}
	var events []Event
	whole := 0
	for e, err := range s.log.Read(ctx, of.ID, 0) {
		if err != nil {
			return nil, err
		}
		if _, gone := e.Payload.(Deleted); gone {
			return nil, ErrDeleted
		}
		if e.Number > most {
			break
		}
		st = st.Apply(e)
		events = append(events, e)
		if st.Ask == nil && len(st.Open) == 0 && len(st.Announced) == 0 && len(st.Typed) == 0 {
			whole = len(events)
		}
	}
	if whole == 0 {
		return nil, fmt.Errorf("%w: there is nothing to copy", ErrRefused)
	}
	return events[:whole], nil
}

// copyOf makes the events of the copy. What a person chose for the session, and what is true of the workspace, is as it is now.
func copyOf(events []Event, now State, to ID, f Fork, at time.Time) ([]Event, error) {
	created, ok := events[0].Payload.(Created)
	if !ok {
		return nil, fmt.Errorf("%w: the log does not begin with its creation", ErrCorrupt)
	}
	last := events[len(events)-1]
	if at.Before(last.At) {
		at = last.At
	}
	created.Forked = &Forked{From: now.ID, Number: last.Number, At: at}
	created.Trigger, created.Fingerprint, created.MCP, created.Then = f.Trigger, f.Fingerprint, f.MCP, nil
	// The copy has no parent: it has its own workspace and its own budget.
	created.Parent, created.Depth, created.Grant, created.Granted, created.Before = "", 0, 0, false, Totals{}
	out := append([]Event{{Number: 1, At: events[0].At, Payload: created}}, events[1:]...)
	st := State{ID: to}
	for i, e := range out {
		if _, ok := e.Payload.(WorkspaceReady); ok { // that handle leads to the original's
			out[i].Payload = WorkspaceReady{}
		}
		st = st.Apply(out[i])
	}
	for _, p := range st.settleAsCopy(now, f) {
		out = append(out, Event{Number: int64(len(out)) + 1, At: at, Payload: p})
	}
	return out, nil
}

// settleAsCopy is what follows the copied part.
func (s State) settleAsCopy(now State, f Fork) []Payload {
	var out []Payload
	if !s.Stopped && !s.Failed {
		out = append(out, Stopped{Reason: fmt.Sprintf("copy of conversation %s up to event %d; send a message to continue", now.ID, s.Last)})
	}
	c, u := f.Workspace.Checkout, f.Workspace.SetUp
	if c != nil && s.Created.Repository != "" && !(reflect.DeepEqual(c, s.Checkout) && reflect.DeepEqual(u, s.SetUp)) {
		out = append(out, *c)
		if u != nil {
			out = append(out, *u)
		}
		if h := f.Workspace.Hook; h != nil {
			out = append(out, *h)
		}
	}
	if e := f.Workspace.Egress; e.Mode != "" && !reflect.DeepEqual(e, s.Egress) {
		out = append(out, e)
	}
	if now.Overrides != s.Overrides {
		out = append(out, now.Overrides)
	}
	return append(out, Titled{Title: cmp.Or(f.Title, now.Title+" (copy)"), ByUser: f.Title != "" || now.Named})
}

// asCopy is what the events of the original mean to the copy of it: what was spent,
// granted and proposed there is the original's, and a replay ends with the copy.
func (s State) asCopy(ends bool) State {
	s.Totals, s.Limit, s.Limited = Totals{Model: s.Totals.Model}, 0, false
	s.Grants, s.paid, s.Requests = nil, nil, nil
	if ends {
		s.ReplayDone, s.Spoke = true, 0
	}
	return s
}

// weigh is about how many bytes an event takes up in a store.
func weigh(p Payload) int {
	b, err := Encode(p)
	if err != nil {
		return 0 // the store says what is wrong with it
	}
	return len(b)
}
