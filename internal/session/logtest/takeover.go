package logtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"deckhand/internal/session"
)

// ledgerTakeover: of members that take a session over from a dead one, one gets
// it, and the model call that the dead one left open is booked once.
func ledgerTakeover(t *testing.T, s LedgerStore) {
	const members, reserved = 4, 40
	clock := session.WithClock(func() time.Time { return noon })
	first, err := spend(session.New(s, clock), "a", "maria") // by "loop"
	must(t, err)
	must(t, first.ask(reserved))
	old, err := first.sessions.Load(t.Context(), "a")
	must(t, err)

	names := []string{"b", "c", "d", "e"}
	take := func(by string, live ...string) func(session.State) ([]session.Payload, error) {
		return func(st session.State) ([]session.Payload, error) { return st.Take(by, live...) }
	}
	// As long as its holder is alive, the session is not taken.
	other := session.New(s, clock)
	if _, err := other.Update(t.Context(), "a", take("b", "loop")); !errors.Is(err, session.ErrHeld) {
		t.Fatalf("got %v, want ErrHeld", err)
	}
	spends(t, s, "maria", reserved)

	// It dies, and the others all try.
	got := make(chan string, members)
	all(t, members, func(i int) error {
		_, err := session.New(s, clock).Update(context.Background(), "a", take(names[i], names...))
		if err == nil {
			got <- names[i]
		} else if errors.Is(err, session.ErrHeld) {
			err = nil
		}
		return err
	})
	close(got)
	var winners []string
	for name := range got {
		winners = append(winners, name)
	}
	if len(winners) != 1 {
		t.Fatalf("taken over by %v, want one of them", winners)
	}
	spent := session.MonthSpent{Month: session.MonthOf(noon), Spent: reserved}
	spends(t, s, "maria", 0, spent)

	// The member that was taken for dead has its answer after all: too late.
	_, err = first.sessions.Update(t.Context(), "a", func(st session.State) ([]session.Payload, error) {
		return st.Answered(old.Claim, session.ModelAnswered{Call: old.Ask.Call, Cost: 7})
	})
	if !errors.Is(err, session.ErrNotOwner) {
		t.Errorf("got %v, want ErrNotOwner", err)
	}
	// The next owner dies as well, without a call: there is nothing to book.
	if _, err := other.Update(t.Context(), "a", take("f")); err != nil {
		t.Fatal(err)
	}
	spends(t, s, "maria", 0, spent)
	var settled int
	for _, e := range read(t, s, "a", 0) {
		if f, ok := e.Payload.(session.ModelFailed); ok && f.Class == "owner_lost" {
			settled++
		}
	}
	if settled != 1 {
		t.Errorf("the call was settled %d times", settled)
	}
}
