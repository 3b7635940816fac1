package sqlite

import (
	"context"
	"database/sql/driver"

	"deckhand/internal/session"
)

const (
	// selectAfford is one statement, as selectSpending is: between two of them a
	// call could be settled, and its cost be seen by neither.
	selectAfford = `SELECT (SELECT sum(amount) FROM spending WHERE user = ? AND month >= ?),
		(SELECT sum(amount) FROM reservations WHERE user = ? AND session <> ?)`

	selectSpending = `SELECT month, amount FROM spending WHERE user = ? AND month >= ?
		UNION ALL SELECT '', sum(amount) FROM reservations WHERE user = ? ORDER BY month`

	selectTotals = `SELECT owner, count(*), 0 FROM sessions WHERE filed = 1 AND deleted = 0 GROUP BY owner
		UNION ALL SELECT owner, count(*), 0 FROM sessions WHERE ` + notFiled + ` AND deleted = 0 GROUP BY owner
		UNION ALL SELECT user, 0, amount FROM spending WHERE month = ?`

	addSpending = `INSERT INTO spending (user, month, amount) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`

	addForfeited = `INSERT INTO spending (user, month, amount) SELECT user, ?, amount FROM reservations WHERE user = ? AND session = ?
		ON CONFLICT DO UPDATE SET amount = amount + excluded.amount`

	setReservation = `INSERT INTO reservations (user, session, amount) VALUES (?, ?, ?)
		ON CONFLICT DO UPDATE SET amount = excluded.amount`

	endReservation = "DELETE FROM reservations WHERE user = ? AND session = ?"
)

// afford refuses a batch that is over its owner's limit. It looks before
// anything is written.
func (a *appending) afford(c *conn) error {
	owner, charge := a.batch.Row.Owner, a.batch.Charge
	if charge.Limit == 0 {
		return nil
	}
	var over error
	_, err := c.one(selectAfford, func(row []driver.Value) {
		over = charge.Over(session.Money(number(row[0])), session.Money(number(row[1])))
	}, owner, string(charge.Month), owner, string(a.batch.ID))
	if err == nil && over != nil {
		err = refuse(over)
	}
	return err
}

// charge brings the ledger up to date. Most batches have nothing to do with
// money, and run no statement.
func (a *appending) charge(c *conn) error {
	owner, id, charge := a.batch.Row.Owner, string(a.batch.ID), a.batch.Charge
	if charge.Spent > 0 {
		if _, err := c.exec(addSpending, owner, string(charge.Month), int64(charge.Spent)); err != nil {
			return err
		}
	}
	if charge.Forfeits {
		if _, err := c.exec(addForfeited, string(charge.Month), owner, id); err != nil {
			return err
		}
	}
	var err error
	switch {
	case charge.Reserves && charge.Reserved > 0:
		_, err = c.exec(setReservation, owner, id, int64(charge.Reserved))
	case charge.Reserves || charge.Forfeits:
		_, err = c.exec(endReservation, owner, id)
	}
	return err
}

// Spending implements session.Ledger.
func (db *DB) Spending(ctx context.Context, user string, since session.Month) (session.Spending, error) {
	var out session.Spending
	err := db.readers.read(ctx, func(c *conn) error {
		return c.query(selectSpending, func(row []driver.Value) error {
			month, amount := session.Month(text(row[0])), session.Money(number(row[1]))
			if month == "" {
				out.Reserved = amount
			} else {
				out.Months = append(out.Months, session.MonthSpent{Month: month, Spent: amount})
			}
			return nil
		}, user, string(since), user)
	})
	return out, err
}

// Totals implements session.Ledger. Both halves are read from indexes that begin with the user.
func (db *DB) Totals(ctx context.Context, m session.Month) (map[string]session.Total, error) {
	out := map[string]session.Total{}
	err := db.readers.read(ctx, func(c *conn) error {
		return c.query(selectTotals, func(row []driver.Value) error {
			t := out[text(row[0])]
			t.Sessions += number(row[1])
			t.Spent += session.Money(number(row[2]))
			out[text(row[0])] = t
			return nil
		}, string(m))
	})
	return out, err
}

var _ session.Ledger = (*DB)(nil)
