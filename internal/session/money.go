package session

import (
	"fmt"
	"strings"
)

// The rules about money. They are pure questions to a State, like those of decide.go.

// Budget is what the session may spend in all: the person's limit or the grant it lives on, whichever is less; false if there is neither.
func (s State) Budget(person *Money) (Money, bool) {
	switch {
	case person == nil:
		return s.Limit, s.Limited
	case s.Limited:
		return min(*person, s.Limit), true
	}
	return *person, true
}

// Committed is what the session has spent, and what is reserved or set aside and may therefore still be spent whatever happens.
func (s State) Committed() Money {
	sum := s.Totals.Cost + s.Reserved
	for _, g := range s.Grants {
		sum += g.Amount
	}
	return sum
}

// GrantTo sets money aside for a session that the agent asked for: all that is left, or as much as is asked for.
func (s State) GrantTo(claim int64, child ID, most Money, budget *Money) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if _, open := s.Granted(child); open {
		return nil, nil // it was set aside before a restart
	}
	if s.Counted(child) {
		return nil, fmt.Errorf("%w: what it spent is settled", ErrRefused)
	}
	limit, ok := s.Budget(budget)
	if !ok {
		return nil, nil
	}
	left := limit - s.Committed()
	if left <= 0 {
		return nil, &BudgetError{Spent: s.Totals.Cost, Budget: limit}
	}
	if most > 0 {
		left = min(left, most)
	}
	return []Payload{Granted{Child: child, Amount: left}}, nil
}

// Granted is what was set aside for a child, false if nothing is.
func (s State) Granted(child ID) (Money, bool) {
	for _, g := range s.Grants {
		if g.Child == child {
			return g.Amount, true
		}
	}
	return 0, false
}

// Settle ends a grant with what was spent of it. A child without one is only
// counted, once. It needs no owner: the money was spent, whichever loop holds the session.
func (s State) Settle(child ID, cost Money) ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if _, open := s.Granted(child); !open && s.Counted(child) {
		return nil, nil
	}
	return []Payload{Settled{Child: child, Cost: cost, Totals: s.Totals.plus(Usage{}, cost)}}, nil
}

// Cap makes what is committed now all that the session may ever spend. It never raises a limit.
func (s State) Cap() ([]Payload, error) {
	if err := s.alive(); err != nil {
		return nil, err
	}
	if s.Limited && s.Limit <= s.Committed() {
		return nil, nil
	}
	return []Payload{Capped{Limit: s.Committed()}}, nil
}

// BudgetError says a call was not made because it might have exceeded the limit: the conversation's, or the user's for a month.
type BudgetError struct {
	Spent, Needed, Budget Money
	// Month is that of a user's limit, and Reserved what other calls of the user's may still cost; Month is "" for a conversation's limit.
	Month    Month
	Reserved Money
}

func (e *BudgetError) Error() string {
	if e.Month != "" {
		return e.inWords()
	}
	return fmt.Sprintf("The budget of %s does not cover the next model call: %s is spent, and the call may cost up to %s",
		inDollars(e.Budget), inDollars(e.Spent), inDollars(e.Needed))
}

// inDollars has as many digits as it takes to tell an amount from nothing.
func inDollars(m Money) string {
	if m > 0 && m < 1e5 {
		return "less than $0.0001"
	}
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("$%.4f", m.Dollars()), "0"), ".")
}
