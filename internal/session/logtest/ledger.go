package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"deckhand/internal/session"
)

// LedgerStore is a Store that keeps the ledger as well.
type LedgerStore interface {
	Store
	session.Ledger
}

// RunLedger runs the tests of session.Ledger. open is that of Run; a store that
// is a Reopener must reopen as a LedgerStore.
func RunLedger(t *testing.T, open func(t *testing.T) LedgerStore) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, LedgerStore)
	}{
		{"Months", ledgerMonths},
		{"Reserved", ledgerReserved},
		{"Conflict", ledgerConflict},
		{"Limit", ledgerLimit},
		{"Deleted", ledgerDeleted},
		{"Totals", ledgerTotals},
		{"Cancelled", ledgerCancelled},
		{"Takeover", ledgerTakeover},
		{"Random", ledgerRandom},
		{"Concurrent", ledgerConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// charged stores one more event of a session, with what it does to the ledger.
func charged(t *testing.T, s LedgerStore, st session.State, c session.Charge) (session.State, error) {
	t.Helper()
	var b session.Batch
	b, st = grow(st, note(0))
	b.Charge = c
	return st, s.Append(t.Context(), b)
}

// spends checks a user's whole ledger.
func spends(t *testing.T, s LedgerStore, user string, reserved session.Money, months ...session.MonthSpent) {
	t.Helper()
	got, err := s.Spending(t.Context(), user, "")
	must(t, err)
	same(t, "spending of "+user, got, session.Spending{Months: months, Reserved: reserved})
}

func ledgerMonths(t *testing.T, s LedgerStore) {
	a, _ := begin(t, s, "a", 0)
	other, _ := grow(session.State{ID: "b"}, session.Created{Owner: "pete"})
	other.Charge = session.Charge{Month: "2026-11", Spent: 1 << 62}
	must(t, s.Append(t.Context(), other)) // a new session may be charged at once
	var err error
	for _, c := range []session.Charge{{Month: "2026-11", Spent: 5}, {Month: "2026-09", Spent: 7}, {}, {Month: "2027-01", Spent: 1}, {Month: "2026-11", Spent: 2}} {
		a, err = charged(t, s, a, c)
		must(t, err)
	}
	sep, nov, jan := session.MonthSpent{Month: "2026-09", Spent: 7}, session.MonthSpent{Month: "2026-11", Spent: 7}, session.MonthSpent{Month: "2027-01", Spent: 1}
	spends(t, s, "maria", 0, sep, nov, jan)
	spends(t, s, "pete", 0, session.MonthSpent{Month: "2026-11", Spent: 1 << 62})
	spends(t, s, "Maria", 0)
	for since, want := range map[session.Month][]session.MonthSpent{"2026-09": {sep, nov, jan}, "2026-10": {nov, jan}, "2026-12": {jan}, "2027-02": nil} {
		got, err := s.Spending(t.Context(), "maria", since)
		must(t, err)
		same(t, "since "+string(since), got.Months, want)
	}
}

// A deleted session does not count any more; what it spent does.
func ledgerTotals(t *testing.T, s LedgerStore) {
	first, _ := begin(t, s, "a", 0)
	first, err := charged(t, s, first, session.Charge{Month: "2026-11", Spent: 5})
	must(t, err)
	_, err = charged(t, s, first, session.Charge{Month: "2026-10", Spent: 3})
	must(t, err)
	second, _ := begin(t, s, "b", 0)
	second, err = charged(t, s, second, session.Charge{Month: "2026-11", Spent: 2})
	must(t, err)
	begin(t, s, "c", 0)
	other, _ := grow(session.State{ID: "d"}, session.Created{Owner: "pete"})
	must(t, s.Append(t.Context(), other))
	gone, _ := grow(second, session.Deleted{})
	must(t, s.Append(t.Context(), gone))
	for month, spent := range map[session.Month]session.Money{"2026-11": 7, "2026-10": 3, "2026-12": 0} {
		got, err := s.Totals(t.Context(), month)
		must(t, err)
		same(t, "in "+string(month), got, map[string]session.Total{"maria": {Sessions: 2, Spent: spent}, "pete": {Sessions: 1}})
	}
}

func ledgerReserved(t *testing.T, s LedgerStore) {
	a, _ := begin(t, s, "a", 0)
	b, _ := begin(t, s, "b", 0)
	var err error
	for _, step := range []struct {
		of   *session.State
		c    session.Charge
		want session.Money
	}{
		{&a, session.Charge{Reserves: true, Reserved: 5}, 5},
		{&b, session.Charge{Reserves: true, Reserved: 7}, 12},
		{&a, session.Charge{}, 12},
		{&a, session.Charge{Reserves: true, Reserved: 2}, 9}, // in place of what it was
		{&b, session.Charge{Reserves: true}, 2},
		{&b, session.Charge{Reserves: true}, 2},
		{&a, session.Charge{Reserves: true}, 0},
	} {
		if step.c.Reserves {
			step.c.Month = "2026-11"
		}
		*step.of, err = charged(t, s, *step.of, step.c)
		must(t, err)
		spends(t, s, "maria", step.want)
	}
}

// ledgerConflict: a batch that is refused costs nothing.
func ledgerConflict(t *testing.T, s LedgerStore) {
	old, _ := begin(t, s, "a", 0)
	st, err := charged(t, s, old, session.Charge{Month: "2026-11", Spent: 3, Reserves: true, Reserved: 4})
	must(t, err)
	if _, err := charged(t, s, old, session.Charge{Month: "2026-11", Spent: 10, Reserves: true}); !errors.Is(err, session.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	spends(t, s, "maria", 4, session.MonthSpent{Month: "2026-11", Spent: 3})
	agree(t, s, st.ID)
}

func ledgerLimit(t *testing.T, s LedgerStore) {
	a, _ := begin(t, s, "a", 0)
	b, _ := begin(t, s, "b", 0)
	_, err := charged(t, s, a, session.Charge{Month: "2026-12", Spent: 20, Reserves: true, Reserved: 30})
	must(t, err)
	for _, test := range []struct {
		name string
		c    session.Charge
		over bool
	}{
		{"too much", session.Charge{Month: "2026-12", Reserves: true, Reserved: 51, Limit: 100}, true},
		{"a later month counts as well", session.Charge{Month: "2026-11", Reserves: true, Reserved: 51, Limit: 100}, true},
		{"what is spent with it", session.Charge{Month: "2026-12", Spent: 1, Reserves: true, Reserved: 50, Limit: 100}, true},
		{"all that is left", session.Charge{Month: "2026-12", Reserves: true, Reserved: 50, Limit: 100}, false},
		{"its own is replaced, and not counted twice", session.Charge{Month: "2026-12", Reserves: true, Reserved: 49, Limit: 100}, false},
		{"a new month has only what is reserved", session.Charge{Month: "2027-01", Reserves: true, Reserved: 70, Limit: 100}, false},
		{"no limit", session.Charge{Month: "2026-12", Reserves: true, Reserved: 999}, false},
		{"without money there is nothing to refuse", session.Charge{}, false},
		{"settling", session.Charge{Month: "2026-12", Spent: 500, Reserves: true}, false},
		{"far over it", session.Charge{Month: "2026-12", Reserves: true, Reserved: 1, Limit: 100}, true},
	} {
		before, err := s.Spending(t.Context(), "maria", "")
		must(t, err)
		next, err := charged(t, s, b, test.c)
		var over *session.BudgetError
		switch {
		case test.over && !errors.As(err, &over):
			t.Errorf("%s: got %v, want a BudgetError", test.name, err)
		case !test.over && err != nil:
			t.Errorf("%s: %v", test.name, err)
		case test.over:
			now, err := s.Spending(t.Context(), "maria", "")
			must(t, err)
			same(t, test.name, now, before)
			if over.Month != test.c.Month || over.Budget != 100 || over.Needed != test.c.Reserved || over.Reserved != 30 {
				t.Errorf("%s: it says %+v", test.name, over)
			}
		default:
			b = next
		}
		if got := agree(t, s, "b"); got.Last != b.Last {
			t.Fatalf("%s: the log ends at event %d, want %d", test.name, got.Last, b.Last)
		}
	}
}

// ledgerDeleted: what was spent stays spent, and nothing stays reserved.
func ledgerDeleted(t *testing.T, s LedgerStore) {
	sessions := session.New(s, session.WithClock(func() time.Time { return noon }))
	spent := session.MonthSpent{Month: session.MonthOf(noon)}
	for i, end := range []func(*spender) error{
		func(sp *spender) error { return sp.update(session.State.Delete) },
		func(sp *spender) error { // its log is damaged, so its state cannot be known
			row, err := s.Row(t.Context(), sp.id)
			if err != nil {
				return err
			}
			return sessions.Bury(t.Context(), row)
		},
	} {
		sp, err := spend(sessions, session.ID(fmt.Sprint("s", i)), "maria")
		must(t, err)
		must(t, sp.ask(4))
		must(t, sp.answer(3))
		must(t, sp.ask(10))
		spent.Spent += 3
		spends(t, s, "maria", 10, spent)
		spent.Spent += 10 // for the call that is not answered
		must(t, end(sp))
		spends(t, s, "maria", 0, spent)
	}
}

// ledgerCancelled: what becomes of the batch is open, but log and ledger agree.
func ledgerCancelled(t *testing.T, s LedgerStore) {
	begin(t, s, "a", 0)
	pay := func(ctx context.Context) (session.State, error) {
		b, st := grow(agree(t, s, "a"), note(0))
		b.Charge = session.Charge{Month: "2026-11", Spent: 1}
		return st, s.Append(ctx, b)
	}
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		_, _ = pay(ctx)
		cancel()
	}
	st, err := pay(t.Context())
	for errors.Is(err, session.ErrConflict) { // one that was given up was stored just now
		st, err = pay(t.Context())
	}
	must(t, err) // and none can come after this
	spends(t, s, "maria", 0, session.MonthSpent{Month: "2026-11", Spent: session.Money(st.Last - 1)})
}
