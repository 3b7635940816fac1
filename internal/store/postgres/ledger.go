package postgres

import (
	"context"

	"deckhand/internal/session"
	"deckhand/internal/store/postgres/pg"
)

const (
	// selectSpending is one statement: between two of them a call could be settled, and its cost
	// be seen by neither.
	selectSpending = `SELECT month, amount FROM deckhand.spending WHERE username = $1 AND month >= $2
		UNION ALL SELECT '', coalesce(sum(amount), 0)::bigint FROM deckhand.reservations WHERE username = $1 ORDER BY month`

	selectTotals = `SELECT owner, count(*), 0::bigint FROM deckhand.sessions WHERE NOT deleted GROUP BY owner
		UNION ALL SELECT username, 0::bigint, amount FROM deckhand.spending WHERE month = $1`
)

// Spending implements session.Ledger.
func (db *DB) Spending(ctx context.Context, user string, since session.Month) (session.Spending, error) {
	var out session.Spending
	err := db.base.View(ctx, func(c *pg.Conn) error {
		return c.Query(selectSpending, func(row []any) error {
			month, amount := session.Month(pg.Text(row[0])), session.Money(pg.Number(row[1]))
			if month == "" {
				out.Reserved = amount
			} else {
				out.Months = append(out.Months, session.MonthSpent{Month: month, Spent: amount})
			}
			return nil
		}, user, string(since))
	})
	return out, err
}

// Totals implements session.Ledger. The sessions are counted in the index of their owners.
func (db *DB) Totals(ctx context.Context, m session.Month) (map[string]session.Total, error) {
	out := map[string]session.Total{}
	err := db.base.View(ctx, func(c *pg.Conn) error {
		return c.Query(selectTotals, func(row []any) error {
			t := out[pg.Text(row[0])]
			t.Sessions += pg.Number(row[1])
			t.Spent += session.Money(pg.Number(row[2]))
			out[pg.Text(row[0])] = t
			return nil
		}, string(m))
	})
	return out, err
}

var _ session.Ledger = (*DB)(nil)
