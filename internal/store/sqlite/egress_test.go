package sqlite

import (
	"database/sql/driver"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/egress/ledgertest"
	"deckhand/internal/session/logtest"
)

func TestEgress(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) egress.Ledger { return openNew(t).Egress() })
}

// Entries outlive the program, and their numbers go on where they were.
func TestEgressReopened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	db := openAt(t, path)
	must(t, db.Egress().Record(t.Context(), "box", []egress.Entry{{At: noon, Host: "one.example"}}))
	must(t, db.Close())
	db = openAt(t, path)
	must(t, db.Egress().Record(t.Context(), "box", []egress.Entry{{At: noon, Host: "two.example"}}))
	got, err := db.Egress().Entries(t.Context(), "box", 0, 10)
	must(t, err)
	if len(got) != 2 || got[0].Host != "two.example" || got[0].ID != 2 || got[1].ID != 1 {
		t.Errorf("got %+v", got)
	}
}

// A page is read in the order of the key, without sorting and without reading other rows.
func TestEgressIsReadInOrder(t *testing.T) {
	db := openNew(t)
	must(t, db.readers.read(t.Context(), func(c *conn) error {
		return c.query("EXPLAIN QUERY PLAN SELECT id, host FROM egress WHERE sandbox = ? AND id < ? ORDER BY id DESC", func(v []driver.Value) error {
			if plan := text(v[3]); !strings.HasPrefix(plan, "SEARCH egress USING PRIMARY KEY") {
				t.Errorf("the plan is %q", plan)
			}
			return nil
		}, "box", int64(10))
	}))
}

// A file of the first version gets what was added since, and loses nothing.
func TestTablesAreAddedLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deckhand.db")
	db := openAt(t, path)
	_, err := db.SetMetaOnce(t.Context(), "name", []byte("value"))
	must(t, err)
	old := newSession()
	old.Row.Wants = true
	must(t, db.Append(t.Context(), old))
	must(t, db.write(t.Context(), 0, func(c *conn) error {
		if _, err := c.exec("DROP INDEX sessions_by_owner"); err != nil {
			return err
		}
		if _, err := c.exec("CREATE INDEX sessions_by_owner ON sessions (owner, deleted, created_at, id)"); err != nil {
			return err
		}
		for _, table := range []string{"egress", "spending", "reservations", "queue_items", "queue_lanes", "queue_owners", "webhooks", "threads", "integrations", "feedback", "links", "words", "unfiled"} {
			if _, err := c.exec("DROP TABLE " + table); err != nil {
				return err
			}
		}
		for _, column := range []string{"keys DROP COLUMN sign_on", "sessions DROP COLUMN holder", "sessions DROP COLUMN compressed", "sessions DROP COLUMN filed"} {
			if _, err := c.exec("ALTER TABLE " + column); err != nil {
				return err
			}
		}
		if _, err := c.exec("DELETE FROM counters WHERE name IN ('words', 'filed')"); err != nil {
			return err
		}
		_, err := c.exec("DELETE FROM goose_db_version WHERE version_id > 1")
		return err
	}))
	must(t, db.Close())
	db = openAt(t, path)
	must(t, db.Egress().Record(t.Context(), "box", []egress.Entry{{At: noon}}))
	if got, err := db.Spending(t.Context(), "maria", ""); err != nil || got.Months != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := db.Meta(t.Context(), "name"); err != nil || string(got) != "value" {
		t.Errorf("got %q, %v", got, err)
	}
	// A session of before has no holder, so it is anybody's to take.
	if got := logtest.Wanting(t, db, []string{"loop-1"}, 10); len(got) != 1 || got[0] != old.ID {
		t.Errorf("wanting: %v", got)
	}
	if got, err := db.Row(t.Context(), old.ID); err != nil || got.Holder != "" || !got.Wants {
		t.Errorf("got %+v, %v", got, err)
	}
}
