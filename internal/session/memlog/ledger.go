package memlog

import (
	"context"
	"maps"
	"slices"

	"deckhand/internal/session"
)

// ledger is what users spent in each month, and what their sessions have reserved.
type ledger struct {
	spent    map[string]map[session.Month]session.Money
	reserved map[string]map[session.ID]session.Money
}

func newLedger() ledger {
	return ledger{spent: map[string]map[session.Month]session.Money{}, reserved: map[string]map[session.ID]session.Money{}}
}

// charge makes a batch's changes, or none and says why.
func (l ledger) charge(user string, id session.ID, c session.Charge) error {
	if c == (session.Charge{}) {
		return nil
	}
	spent, reserved := l.spent[user], l.reserved[user]
	var since, others session.Money
	for m, amount := range spent {
		if m >= c.Month {
			since += amount
		}
	}
	for other, amount := range reserved {
		if other != id {
			others += amount
		}
	}
	if err := c.Over(since, others); err != nil {
		return err
	}
	if spent == nil {
		spent, reserved = map[session.Month]session.Money{}, map[session.ID]session.Money{}
		l.spent[user], l.reserved[user] = spent, reserved
	}
	if c.Forfeits {
		c.Spent, c.Reserves, c.Reserved = c.Spent+reserved[id], true, 0
	}
	if c.Spent > 0 {
		spent[c.Month] += c.Spent
	}
	if c.Reserves {
		delete(reserved, id)
		if c.Reserved > 0 {
			reserved[id] = c.Reserved
		}
	}
	return nil
}

// Spending implements session.Ledger.
func (l *Log) Spending(ctx context.Context, user string, since session.Month) (session.Spending, error) {
	if err := ctx.Err(); err != nil {
		return session.Spending{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out session.Spending
	for _, m := range slices.Sorted(maps.Keys(l.ledger.spent[user])) {
		if m >= since {
			out.Months = append(out.Months, session.MonthSpent{Month: m, Spent: l.ledger.spent[user][m]})
		}
	}
	for _, amount := range l.ledger.reserved[user] {
		out.Reserved += amount
	}
	return out, nil
}

// Totals implements session.Ledger.
func (l *Log) Totals(ctx context.Context, m session.Month) (map[string]session.Total, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[string]session.Total{}
	for user, months := range l.ledger.spent {
		out[user] = session.Total{Spent: months[m]}
	}
	for _, row := range l.rows {
		if !row.Deleted {
			t := out[row.Owner]
			t.Sessions++
			out[row.Owner] = t
		}
	}
	return out, nil
}
