package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// charges is a log that remembers what the last batch did to the ledger.
type charges struct {
	*memlog.Log
	last session.Charge
}

func (l *charges) Append(ctx context.Context, b session.Batch) error {
	l.last = b.Charge
	return l.Log.Append(ctx, b)
}

// november is a moment that is December where it is later than in London.
var november = time.Date(2026, 12, 1, 1, 0, 0, 0, time.FixedZone("", 2*60*60))

func TestCharges(t *testing.T) {
	const month, limit = session.Month("2026-11"), 1000
	zero := session.Charge{}
	asks := func(reserved session.Money) session.ModelAsked {
		return session.ModelAsked{Call: "m", Reserved: reserved, UpTo: 4}
	}
	for _, test := range []struct {
		name   string
		stage  payloads
		change decision
		want   session.Charge
	}{
		{"a message", payloads{created}, do(said), zero},
		{"asking", payloads{created, said, claimed, ready, began}, do(asks(10)), session.Charge{Month: month, Reserves: true, Reserved: 10, Limit: limit}},
		{"asking a model that is free", payloads{created, said, claimed, ready, began}, do(asks(0)), zero},
		{"an answer", payloads{created, said, claimed, ready, began, asks(10)}, do(answered), session.Charge{Month: month, Spent: 5, Reserves: true}},
		{"an answer that was free", payloads{created, said, claimed, ready, began, asks(10)}, do(session.ModelAnswered{Call: "m"}), session.Charge{Month: month, Reserves: true}},
		{"an answer of a model that is free", payloads{created, said, claimed, ready, began, asks(0)}, do(session.ModelAnswered{Call: "m"}), zero},
		{"a failure", payloads{created, said, claimed, ready, began, asks(10)}, do(session.ModelFailed{Call: "m", Cost: 3}), session.Charge{Month: month, Spent: 3, Reserves: true}},
		{"another owner", payloads{created, said, claimed, ready, began, asks(10)}, take, session.Charge{Month: month, Spent: 10, Reserves: true}},
		{"a stop", payloads{created, said, claimed, ready, began, asks(10)}, stop, session.Charge{Month: month, Spent: 10, Reserves: true}},
		{"a stop with nothing under way", payloads{created, said, claimed, ready, began}, stop, zero},
		{"the end", payloads{created, said, claimed, ready, began, asks(10)}, remove, session.Charge{Month: month, Spent: 10, Reserves: true}},
		{"the end, whatever a repair has left behind", payloads{created}, remove, session.Charge{Month: month, Reserves: true}},
		{"a grant", payloads{created, said, claimed, ready, began}, do(grant), zero},
		{"what a child spent", payloads{created, said, claimed, ready, began, grant}, do(settled), zero},
		{"failing and asking again", payloads{created, said, claimed, ready, began, asks(10)}, do(session.ModelFailed{Call: "m", Cost: 3, Retried: true}, asks(7)),
			session.Charge{Month: month, Spent: 3, Reserves: true, Reserved: 7, Limit: limit}},
	} {
		t.Run(test.name, func(t *testing.T) {
			log := &charges{Log: memlog.New()}
			s := session.New(log, session.WithUserLimit(limit), session.WithClock(func() time.Time { return november }))
			for i, p := range test.stage {
				var err error
				if i == 0 {
					_, err = s.Create(t.Context(), theID, p.(session.Created), nil)
				} else {
					_, err = s.Update(t.Context(), theID, do(p))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Update(t.Context(), theID, test.change); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, log.last); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The ledger's no changes nothing, and the session goes on where it was.
func TestOverTheUsersLimit(t *testing.T) {
	log := newFaulty()
	s := session.New(log, session.WithUserLimit(15), session.WithClock(func() time.Time { return november }))
	create(t, s, theID)
	before, err := s.Update(t.Context(), theID, do(said, claimed, ready, began))
	if err != nil {
		t.Fatal(err)
	}
	worst := session.Money(16)
	ask := func(s session.State) ([]session.Payload, error) {
		return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Reserved: worst}, nil)
	}
	st, err := s.Update(t.Context(), theID, ask)
	var over *session.BudgetError
	if !errors.As(err, &over) || st.Last != before.Last || *over != (session.BudgetError{Needed: 16, Budget: 15, Month: "2026-11"}) {
		t.Fatalf("got %+v at event %d, want to be refused at %d", over, st.Last, before.Last)
	}
	worst = 15
	if _, err := s.Update(t.Context(), theID, ask); err != nil {
		t.Fatalf("all that is left: %v", err)
	}
	mustFit(t, log, s, theID)
}

// A session that has been stopped is refused as stopped, not for lack of money.
func TestTheLedgersNoIsNotGivenOnAnOldState(t *testing.T) {
	log := newFaulty()
	s, other := session.New(log, session.WithUserLimit(5)), session.New(log)
	create(t, s, theID)
	if _, err := s.Update(t.Context(), theID, do(said, claimed, ready, began)); err != nil {
		t.Fatal(err)
	}
	stopFirst := true
	_, err := s.Update(t.Context(), theID, func(st session.State) ([]session.Payload, error) {
		payloads, err := st.AskModel(3, session.ModelAsked{Call: "m", Reserved: 10}, nil)
		if stopFirst {
			stopFirst = false
			if _, err := other.Update(t.Context(), theID, stop); err != nil {
				t.Error(err)
			}
		}
		return payloads, err
	})
	if !errors.Is(err, session.ErrNotOwner) {
		t.Errorf("got %v, want to be told that the session was stopped", err)
	}
}

func TestUsersLimitInWords(t *testing.T) {
	over := session.Charge{Month: "2026-12", Reserves: true, Reserved: 250e6, Limit: 20e9}.Over(19.8e9, 12.5e6)
	want := "the user's limit of $20.00 for December 2026 does not cover the next model call: $19.8000 is spent, $0.0125 is reserved for calls in progress, and the call may cost up to $0.2500; the limit resets on 1 January 2027 (UTC)"
	if over == nil || over.Error() != want {
		t.Errorf("got %v", over)
	}
}

func TestMonths(t *testing.T) {
	if got := session.MonthOf(november); got != "2026-11" {
		t.Errorf("got %s, want the month in UTC", got)
	}
	for months, want := range map[int]session.Month{0: "2026-11", 1: "2026-12", 2: "2027-01", -11: "2025-12"} {
		if got := session.Month("2026-11").Add(months); got != want {
			t.Errorf("%d months later it is %s, want %s", months, got, want)
		}
	}
	s := session.Spending{Months: []session.MonthSpent{{Month: "2026-10", Spent: 3}, {Month: "2026-11", Spent: 4}}}
	if s.In("2026-11") != 4 || s.In("2026-12") != 0 {
		t.Error("the wrong month")
	}
}
