package doctor

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"deckhand/internal/advice"
	"deckhand/internal/session"
	"deckhand/internal/store"
)

// money has the costs in the logs, for comparison with the ledger.
type money struct {
	// spent is what the conversations of each user spent, and reserved what their calls in progress reserve.
	spent    map[string]session.Money
	reserved map[session.ID]store.Reservation
	// unknown is true if a log could not be read.
	unknown bool

	// cost is that of the conversation being read, and copied the number of its last copied event.
	cost   session.Money
	copied int64
}

// watched is a log whose costs are counted while it is read.
type watched struct {
	Store
	money *money
}

func (m *money) watch(s Store) Store { return watched{s, m} }

// Read implements session.Log.
func (w watched) Read(ctx context.Context, id session.ID, after int64) iter.Seq2[session.Event, error] {
	return func(yield func(session.Event, error) bool) {
		if after == 0 {
			w.money.cost, w.money.copied = 0, 0
		}
		for e, err := range w.Store.Read(ctx, id, after) {
			if err == nil {
				w.money.count(e)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// count adds the cost of an event, unless it was copied from another conversation, which paid for it.
func (m *money) count(e session.Event) {
	if c, ok := e.Payload.(session.Created); ok && c.Forked != nil {
		m.copied = c.Forked.Number
	}
	if e.Number <= m.copied {
		return
	}
	switch p := e.Payload.(type) {
	case session.ModelAnswered:
		m.cost += p.Cost
	case session.ModelFailed:
		m.cost += p.Cost
	}
}

// add adds the costs of a valid log.
func (m *money) add(st session.State) {
	if m.spent == nil {
		m.spent, m.reserved = map[string]session.Money{}, map[session.ID]store.Reservation{}
	}
	m.spent[st.Owner] += m.cost
	if st.Reserved != 0 {
		m.reserved[st.ID] = store.Reservation{User: st.Owner, Session: st.ID, Amount: st.Reserved}
	}
}

// ledger compares the ledger with the logs. The ledger may have more: it includes the costs of conversations that were
// deleted or truncated.
func (s *stored) ledger(ctx context.Context) {
	wrong := 0
	if !s.money.unknown {
		for user, spent := range s.money.spent {
			has, err := s.db.Spending(ctx, user, "")
			if err != nil {
				s.Check("ledger", "", advice.With(err, "check the database"))
				return
			}
			sum := session.Money(0)
			for _, m := range has.Months {
				sum += m.Spent
			}
			if sum < spent {
				wrong++
				s.Check("ledger", "", advice.With(fmt.Errorf("the ledger has $%.4f for user %s, whose conversations spent $%.4f", sum.Dollars(), user, spent.Dollars()), "restore a backup; until then, the user can spend more than the monthly limit"))
			}
		}
	}
	more, err := s.reservations(ctx)
	switch {
	case err != nil:
		s.Check("ledger", "", advice.With(err, "check the database"))
	case wrong+more == 0:
		s.Check("ledger", "agrees with the conversations", nil)
	}
}

// reservations finds reservations that no model call needs, and calls without one. A server may be changing both, so it
// checks differences again.
func (s *stored) reservations(ctx context.Context) (wrong int, err error) {
	all, err := s.db.Reservations(ctx)
	if err != nil {
		return 0, err
	}
	differ := map[session.ID]bool{}
	for _, r := range all {
		if s.money.reserved[r.Session] != r {
			differ[r.Session] = true
		}
		delete(s.money.reserved, r.Session)
	}
	for id := range s.money.reserved {
		differ[id] = true
	}
	for id := range differ {
		has, wants, err := s.reservation(ctx, id)
		if err != nil {
			return wrong, err
		}
		if has == wants {
			continue
		}
		text := fmt.Sprintf("$%.4f is reserved for conversation %s, whose model call needs $%.4f", has.Amount.Dollars(), id, wants.Amount.Dollars())
		if !s.repair {
			wrong++
			s.Warn("ledger", text, "stop the server and run: "+s.command("--repair"))
			continue
		}
		v := Verification{DataDir: s.dir}
		if err := v.locked(func() error { return s.db.SetReservation(ctx, wants) }); err != nil {
			return wrong, err
		}
		s.Warn("ledger", text+"; the reservation was corrected", "")
	}
	return wrong, nil
}

// reservation reads what is reserved for a conversation and what its log needs, until nothing changes in between.
func (s *stored) reservation(ctx context.Context, id session.ID) (has, wants store.Reservation, err error) {
	for range 5 {
		st, err := session.Fold(ctx, s.db, session.State{ID: id})
		if errors.Is(err, session.ErrCorrupt) || errors.Is(err, session.ErrNewer) {
			return has, has, nil // it was reported, and what it reserves is unknown
		}
		if err != nil {
			return has, wants, err
		}
		all, err := s.db.Reservations(ctx)
		if err != nil {
			return has, wants, err
		}
		has = store.Reservation{User: st.Owner, Session: id}
		for _, r := range all {
			if r.Session == id {
				has = r
			}
		}
		wants = has
		if wants.Amount = st.Reserved; has == wants {
			break
		}
	}
	return has, wants, nil
}
