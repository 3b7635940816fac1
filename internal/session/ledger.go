package session

import (
	"context"
	"fmt"
	"time"
)

// Ledger knows what users spend, over all of their sessions and also those that were deleted since. It is stored with
// the log, in the same transactions, so that the two always agree. Implementations pass logtest.RunLedger.
type Ledger interface {
	// Spending is a user's, of one moment, from a month on.
	Spending(ctx context.Context, user string, since Month) (Spending, error)
	// Totals is what each user has, and has spent in one month, by name. Who has nothing may be missing.
	Totals(ctx context.Context, m Month) (map[string]Total, error)
}

// Total is what a user has: sessions that were not deleted, and what all of them spent in a month.
type Total struct {
	Sessions int64
	Spent    Money
}

// Spending is what a user spent and may still spend.
type Spending struct {
	// Months are those in which something was spent, the oldest first.
	Months []MonthSpent
	// Reserved is for calls that are under way, of all months.
	Reserved Money
}

// MonthSpent is what was spent in a month.
type MonthSpent struct {
	Month Month
	Spent Money
}

// In is what was spent in one month.
func (s Spending) In(m Month) Money {
	for _, one := range s.Months {
		if one.Month == m {
			return one.Spent
		}
	}
	return 0
}

// Month is a calendar month in UTC, such as 2026-11. Months sort as texts do.
type Month string

const monthLayout = "2006-01"

// MonthOf is the month of a moment.
func MonthOf(t time.Time) Month { return Month(t.UTC().Format(monthLayout)) }

// Add is the month so many months later, or earlier.
func (m Month) Add(months int) Month { return MonthOf(m.begin().AddDate(0, months, 0)) }

// begin is the month's first moment; the zero time if it is no month.
func (m Month) begin() time.Time {
	t, _ := time.Parse(monthLayout, string(m))
	return t
}

// Charge is what a batch does to the ledger of its row's owner. The zero value does nothing, and must cost nothing.
type Charge struct {
	// Month is that of the batch.
	Month Month
	// Spent was spent, in Month. What a child spent is in the child's batches and not again in those of its parent.
	Spent Money
	// Reserves says that Reserved takes the place of what the session had reserved. Grants to children are not reserved: what they ask for is.
	Reserves bool
	Reserved Money
	// Forfeits counts what the session had reserved as spent, for a session whose log cannot say what became of it.
	Forfeits bool
	// Limit, if it is not 0, is what the owner may have spent in Month and reserved, after this batch. If it would be
	// more, nothing of the batch is stored and the error is that of Over.
	Limit Money
}

// Over is a *BudgetError if the limit does not hold when the owner has spent so much since the beginning of Month, and has so much reserved in other
// sessions. Later months count as well: a clock that was set back must not give a second month.
func (c Charge) Over(spent, reserved Money) error {
	if c.Limit == 0 || c.Spent+c.Reserved <= c.Limit-spent-reserved {
		return nil
	}
	return &BudgetError{Spent: spent + c.Spent, Reserved: reserved, Needed: c.Reserved, Budget: c.Limit, Month: c.Month}
}

// charge is what the events between two states do to the ledger. limit is the owner's, and is looked at only when money
// is asked for: what is spent is spent, and settling a call is never refused.
func charge(before, after State, events []Event, limit Money) Charge {
	var c Charge
	for _, e := range events {
		switch p := e.Payload.(type) {
		case ModelAsked:
			if p.Reserved > 0 { // a call that costs nothing needs no money
				c.Limit = limit
			}
		case ModelAnswered:
			c.Spent += p.Cost
		case ModelFailed:
			c.Spent += p.Cost
		case Deleted: // permanent, so what a repaired log left behind goes too
			c.Reserves = true
		}
	}
	if before.Reserved != after.Reserved {
		c.Reserves = true
	}
	if c.Reserves {
		c.Reserved = after.Reserved
	}
	if c != (Charge{}) {
		c.Month = MonthOf(after.UpdatedAt)
	}
	return c
}

// inWords says whose limit it is when it is a user's for a month.
func (e *BudgetError) inWords() string {
	return fmt.Sprintf("the user's limit of $%.2f for %s does not cover the next model call: $%.4f is spent, $%.4f is reserved for calls in progress, and the call may cost up to $%.4f; the limit resets on %s (UTC)",
		e.Budget.Dollars(), e.Month.begin().Format("January 2006"), e.Spent.Dollars(), e.Reserved.Dollars(), e.Needed.Dollars(),
		e.Month.Add(1).begin().Format("2 January 2006"))
}
