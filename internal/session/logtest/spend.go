package logtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/session"
)

// spender is a session that asks the model.
type spender struct {
	sessions *session.Sessions
	id       session.ID
	owner    string
}

// spend makes a session that is in a turn.
func spend(s *session.Sessions, id session.ID, owner string) (*spender, error) {
	sp := &spender{sessions: s, id: id, owner: owner}
	if _, err := s.Create(context.Background(), id, session.Created{Owner: owner}, &session.UserSaid{Text: "go"}); err != nil {
		return nil, err
	}
	return sp, sp.update(session.Chain(
		func(s session.State) ([]session.Payload, error) { return s.Take("loop") },
		func(s session.State) ([]session.Payload, error) {
			return s.Prepared(s.Claim, session.WorkspaceReady{})
		},
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(s.Claim) }))
}

func (sp *spender) update(rule func(session.State) ([]session.Payload, error)) error {
	_, err := sp.sessions.Update(context.Background(), sp.id, rule)
	return err
}

func (sp *spender) ask(worst session.Money) error {
	return sp.update(func(s session.State) ([]session.Payload, error) {
		return s.AskModel(s.Claim, session.ModelAsked{Call: fmt.Sprint("m", s.Last), Reserved: worst}, nil)
	})
}

func (sp *spender) answer(cost session.Money) error {
	return sp.update(func(s session.State) ([]session.Payload, error) {
		return s.Answered(s.Claim, session.ModelAnswered{Call: s.Ask.Call, Cost: cost})
	})
}

func (sp *spender) fail(cost session.Money) error {
	return sp.update(func(s session.State) ([]session.Payload, error) {
		return s.AskFailed(s.Claim, s.Ask.Call, "network", "", cost, true)
	})
}

// lose is a call that was lost with the loop that made it.
func (sp *spender) lose() error {
	return sp.update(func(s session.State) ([]session.Payload, error) { return s.Take("another loop") })
}

func (sp *spender) stop() error {
	return sp.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
}

func (sp *spender) delete() error { return sp.update(session.State.Delete) }

// account is a simple one of what a few sessions do.
type account struct {
	store    LedgerStore
	sessions *session.Sessions
	random   *rand.Rand
	now      time.Time
	live     []*spender
	open     map[*spender]session.Money
	spent    map[string]map[session.Month]session.Money
	made     int
	refused  int
}

// accountLimit is each user's for a month.
const accountLimit = 500

// ledgerRandom does at random what sessions of two users do, in months that
// pass, and restarts now and then. After each step the ledger says what a simple
// account of the same steps says.
func ledgerRandom(t *testing.T, s LedgerStore) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	a := &account{store: s, random: rand.New(rand.NewPCG(seed, 0)), now: noon, open: map[*spender]session.Money{},
		spent: map[string]map[session.Month]session.Money{"maria": {}, "pete": {}}}
	a.restart()
	for range 200 {
		a.now = a.now.Add(time.Duration(a.random.IntN(12)) * time.Hour)
		if a.random.IntN(40) == 0 {
			if r, ok := a.store.(Reopener); ok {
				a.store = r.Reopen(t).(LedgerStore)
			}
			a.restart()
		}
		a.step(t)
		a.compare(t)
	}
	if a.refused == 0 {
		t.Error("the limit was never reached")
	}
}

func (a *account) restart() {
	a.sessions = session.New(a.store, session.WithUserLimit(accountLimit), session.WithClock(func() time.Time { return a.now }))
	for _, sp := range a.live {
		sp.sessions = a.sessions
	}
}

func (a *account) step(t *testing.T) {
	if len(a.live) < 6 {
		owner := []string{"maria", "pete"}[a.random.IntN(2)]
		a.made++
		sp, err := spend(a.sessions, session.ID(fmt.Sprint("s", a.made)), owner)
		must(t, err)
		a.live = append(a.live, sp)
	}
	at := a.random.IntN(len(a.live))
	sp := a.live[at]
	worst, asked := a.open[sp]
	cost := worst
	if !asked {
		a.ask(t, sp)
		return
	}
	switch pick := a.random.IntN(20); pick {
	case 0, 1:
		a.live = slices.Delete(a.live, at, at+1)
		must(t, []func() error{sp.stop, sp.delete}[pick]())
	case 2, 3, 4:
		must(t, sp.lose())
	case 5, 6, 7:
		cost = session.Money(a.random.Int64N(int64(worst) + 1))
		must(t, sp.fail(cost))
	default:
		cost = session.Money(a.random.Int64N(int64(worst) + 1))
		must(t, sp.answer(cost))
	}
	delete(a.open, sp)
	if cost > 0 {
		a.spent[sp.owner][session.MonthOf(a.now)] += cost
	}
}

func (a *account) ask(t *testing.T, sp *spender) {
	worst := session.Money(a.random.IntN(120))
	sum := a.spent[sp.owner][session.MonthOf(a.now)] + a.reserved(sp.owner) + worst
	err := sp.ask(worst)
	var over *session.BudgetError
	switch fits := worst == 0 || sum <= accountLimit; {
	case fits == errors.As(err, &over):
		t.Fatalf("asked for %d, which makes %d of %d: %v", worst, sum, accountLimit, err)
	case fits:
		must(t, err)
		a.open[sp] = worst
	default:
		a.refused++
	}
}

func (a *account) reserved(user string) (sum session.Money) {
	for sp, worst := range a.open {
		if sp.owner == user {
			sum += worst
		}
	}
	return sum
}

func (a *account) compare(t *testing.T) {
	t.Helper()
	for user, spent := range a.spent {
		got, err := a.store.Spending(t.Context(), user, "")
		must(t, err)
		months := map[session.Month]session.Money{}
		for _, m := range got.Months {
			months[m.Month] = m.Spent
		}
		same(t, "spent by "+user, months, spent)
		same(t, "reserved by "+user, got.Reserved, a.reserved(user))
	}
}

// ledgerConcurrent: many sessions of a user ask at once, in two processes, and
// at no moment is more spent and reserved than the limit.
func ledgerConcurrent(t *testing.T, s LedgerStore) {
	const limit, callers, each = 1000, 16, 25
	month := session.MonthOf(noon)
	clock := session.WithClock(func() time.Time { return noon })
	procs := []*session.Sessions{session.New(s, clock, session.WithUserLimit(limit)), session.New(s, clock, session.WithUserLimit(limit))}
	ended, watched := make(chan struct{}), make(chan error, 1)
	go func() { watched <- watch(s, "maria", month, limit, ended) }()
	var spent, refused atomic.Int64
	all(t, callers, func(i int) error {
		sp, err := spend(procs[i%2], session.ID(fmt.Sprint("s", i)), "maria")
		random := rand.New(rand.NewPCG(uint64(i), 0))
		for k := 0; k < each && err == nil; k++ {
			worst := 1 + random.Int64N(100)
			var over *session.BudgetError
			if err = sp.ask(session.Money(worst)); errors.As(err, &over) {
				refused.Add(1)
				err = nil
			} else if err == nil {
				cost := random.Int64N(worst/2 + 1)
				spent.Add(cost)
				err = sp.answer(session.Money(cost))
			}
		}
		return err
	})
	close(ended)
	must(t, <-watched)
	spends(t, s, "maria", 0, session.MonthSpent{Month: month, Spent: session.Money(spent.Load())})
	if refused.Load() == 0 || spent.Load() < limit/2 {
		t.Errorf("%d asks were refused and %d of %d spent: the limit was not tried", refused.Load(), spent.Load(), limit)
	}
}

// watch looks at a ledger again and again, and for a last time at the end.
func watch(s LedgerStore, user string, month session.Month, limit session.Money, ended <-chan struct{}) error {
	for last := false; ; {
		select {
		case <-ended:
			last = true
		default:
		}
		now, err := s.Spending(context.Background(), user, month)
		switch spent := now.In(month); {
		case err != nil:
			return err
		case spent+now.Reserved > limit:
			return fmt.Errorf("%d are spent and %d reserved, of %d", spent, now.Reserved, limit)
		case last:
			return nil
		}
	}
}
