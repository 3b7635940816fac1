package sqlite

import (
	"database/sql/driver"
	"errors"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/session"
	"deckhand/internal/session/logtest"
)

func TestLedger(t *testing.T) {
	logtest.RunLedger(t, func(t *testing.T) logtest.LedgerStore { return reopening{openNew(t)} })
}

// Most appends have nothing to do with money. They must not pay for it: a
// statement that was never run was never prepared.
func TestAppendWithoutMoneyRunsNoStatement(t *testing.T) {
	db := openNew(t)
	first := newSession()
	must(t, db.Append(t.Context(), first))
	must(t, db.Append(t.Context(), batch(first, 2, 1)))
	if used := moneyStatements(t, db); len(used) > 0 {
		t.Errorf("without money: %q", used)
	}
	b := batch(first, 3, 1)
	b.Charge = session.Charge{Month: "2026-11", Spent: 1, Reserves: true, Reserved: 2, Limit: 10}
	must(t, db.Append(t.Context(), b))
	if used := moneyStatements(t, db); len(used) != 3 {
		t.Errorf("with money: %q", used)
	}
}

// moneyStatements are those about money that the writer has run.
func moneyStatements(t *testing.T, db *DB) (used []string) {
	t.Helper()
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		for sql := range c.stmts {
			if strings.Contains(sql, "spending") || strings.Contains(sql, "reservations") {
				used = append(used, sql)
			}
		}
		return nil
	}))
	return used
}

// A user with a long history pays for the months that count and for nothing else.
func TestLedgerIsSearched(t *testing.T) {
	db := openNew(t)
	for sql, args := range map[string][]driver.Value{selectAfford: {"maria", "2026-11", "maria", "s"}, selectSpending: {"maria", "2026-11", "maria"}} {
		var plan []string
		must(t, db.readers.read(t.Context(), func(c *conn) error {
			return c.query("EXPLAIN QUERY PLAN "+sql, func(row []driver.Value) error {
				plan = append(plan, text(row[3]))
				return nil
			}, args...)
		}))
		if scans := func(step string) bool {
			return strings.Contains(step, "SCAN spending") || strings.Contains(step, "SCAN reservations")
		}; slices.ContainsFunc(plan, scans) {
			t.Errorf("%s\nis planned as %q", sql, plan)
		}
	}
}

// Two processes keep one limit: it is looked at where it is written.
func TestLedgerOfTwoProcesses(t *testing.T) {
	a := openNew(t)
	b := openAt(t, a.path)
	ask := func(db *DB, reserved session.Money) error {
		first := newSession()
		first.Charge = session.Charge{Month: "2026-11", Reserves: true, Reserved: reserved, Limit: 100}
		return db.Append(t.Context(), first)
	}
	must(t, ask(a, 60))
	var over *session.BudgetError
	if err := ask(b, 60); !errors.As(err, &over) || over.Reserved != 60 {
		t.Errorf("got %v, want to be told that 60 are reserved", err)
	}
	must(t, ask(b, 40))
	if err := ask(a, 1); !errors.As(err, &over) {
		t.Errorf("got %v, want a BudgetError", err)
	}
}

// Money that a log lost when it was cut does not stay reserved.
func TestRepairedSessionFreesItsReservation(t *testing.T) {
	db := openNew(t)
	first := newSession()
	must(t, db.Append(t.Context(), first))
	asked := batch(first, 2, 1)
	asked.Charge = session.Charge{Month: "2026-11", Reserves: true, Reserved: 7}
	must(t, db.Append(t.Context(), asked))
	must(t, db.Repair(t.Context(), first.ID, 2, first.Row)) // the call is lost
	sessions := session.New(db)
	if _, err := sessions.Update(t.Context(), first.ID, session.State.Delete); err != nil {
		t.Fatal(err)
	}
	if got, err := db.Spending(t.Context(), "maria", ""); err != nil || got.Reserved != 0 {
		t.Errorf("%+v is left: %v", got, err)
	}
}
