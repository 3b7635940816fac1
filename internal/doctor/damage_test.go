package doctor_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/doctor"
	"deckhand/internal/secret"
	"deckhand/internal/session"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
	"deckhand/internal/store/postgres"
	"deckhand/internal/store/postgres/pg"
	"deckhand/internal/store/postgres/pgtest"
	"deckhand/internal/store/sqlite"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// everything is a database as the doctor sees it.
type everything struct {
	store.Backend
	store.Audit
}

func (e everything) Owners(context.Context) ([]string, error) { return []string{"ada"}, nil }

// fixture is a data directory with a database.
type fixture struct {
	t     *testing.T
	dir   string
	where config.Database
}

func (p fixture) open(o doctor.Opening) (everything, error) {
	db, err := open.Database(context.Background(), p.where, store.Options{Exclusive: o.Exclusive, Existing: o.Existing})
	if err != nil {
		return everything{}, err
	}
	return everything{db, open.Audit(db)}, nil
}

// with opens the database and runs a function on it.
func (p fixture) with(do func(everything) error) {
	p.t.Helper()
	db, err := p.open(doctor.Opening{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer db.Close()
	keyring, err := secret.OpenKeyring(p.t.Context(), p.dir, "", db)
	if err == nil {
		err = datadir.UseChain(p.t.Context(), db, keyring)
	}
	if err == nil {
		err = do(db)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// damage runs a statement without the store. It is written for SQLite.
func (p fixture) damage(sql string) {
	p.t.Helper()
	p.with(func(db everything) error {
		if s, ok := db.Backend.(*sqlite.DB); ok {
			return s.Execute(p.t.Context(), sql)
		}
		for old, now := range map[string]string{"FROM ": "FROM deckhand.", "UPDATE ": "UPDATE deckhand.", "INTO ": "INTO deckhand.", "user": "username", "x'00'": `'\x00'`,
			"id = (SELECT (n << 32) + last ": "(n, last) = (SELECT n, last "} {
			sql = strings.ReplaceAll(sql, old, now)
		}
		return db.Backend.(*postgres.DB).Base().View(p.t.Context(), func(c *pg.Conn) error { return c.Script(sql) })
	})
}

// check runs the doctor and returns its output.
func (p fixture) check(dir string, repair bool) (string, error) {
	var out bytes.Buffer
	r := &doctor.Report{Out: &out}
	r.Stored(p.t.Context(), dir, p.where.Path, repair, func(_ context.Context, o doctor.Opening) (doctor.Everything, error) { return p.open(o) })
	err := r.Result()
	return out.String(), err
}

// converse creates a conversation with a model call that cost money.
func converse(ctx context.Context, db everything, id session.ID) error {
	s := session.New(db.Backend)
	if _, err := s.Create(ctx, id, session.Created{Owner: "ada"}, &session.UserSaid{Text: "go"}); err != nil {
		return err
	}
	for _, rule := range []func(session.State) ([]session.Payload, error){
		func(s session.State) ([]session.Payload, error) { return s.Take("loop") },
		func(s session.State) ([]session.Payload, error) { return s.Prepared(s.Claim, session.WorkspaceReady{}) },
		func(s session.State) ([]session.Payload, error) { return s.BeginTurn(s.Claim) },
		func(s session.State) ([]session.Payload, error) {
			return s.AskModel(s.Claim, session.ModelAsked{Call: "m", Reserved: 9}, nil)
		},
		func(s session.State) ([]session.Payload, error) {
			return s.Answered(s.Claim, session.ModelAnswered{Call: "m", Cost: 7e9, Final: true})
		},
		func(s session.State) ([]session.Payload, error) { return s.Stop("enough") },
	} {
		if _, err := s.Update(ctx, id, rule); err != nil {
			return err
		}
	}
	return nil
}

// futureEvent is an event of a future version.
type futureEvent struct{}

func (futureEvent) Kind() session.Kind { return "painted" }

// All kinds of damage are found in one run, and repaired if possible.
func TestDamages(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]func(*testing.T, string) config.Database{
		"SQLite": func(_ *testing.T, dir string) config.Database {
			return config.Database{Dir: dir, Path: filepath.Join(dir, "deckhand.db")}
		},
		"PostgreSQL": func(t *testing.T, dir string) config.Database {
			return config.Database{Dir: dir, Address: pgtest.New(t)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := fixture{t, dir, where(t, dir)}
			p.with(func(db everything) error {
				_, err := access.NewGate(db.Backend, access.Options{}).CreateUser(t.Context(), "ada", false)
				for _, id := range []session.ID{"ended", "row", "gone", "fine", "newer"} {
					if err == nil {
						err = converse(t.Context(), db, id)
					}
				}
				return err
			})
			has := func(out string, wants ...string) {
				t.Helper()
				for _, want := range wants {
					if !strings.Contains(out, want) {
						t.Errorf("%q is missing in\n%s", want, out)
					}
				}
			}
			out, err := p.check(dir, false)
			if has(out, "5 with", "agrees with the conversations"); err != nil {
				t.Fatalf("before: %v\n%s", err, out)
			}

			p.damage("DELETE FROM events WHERE id = (SELECT (n << 32) + last FROM sessions WHERE id = 'ended')")
			p.damage("UPDATE sessions SET row = x'00' WHERE id = 'row'")
			p.damage("DELETE FROM sessions WHERE id = 'gone'")
			p.damage("INSERT INTO reservations (user, session, amount) VALUES ('ada', 'nobody', 5000000000)")
			if out, err = p.check(dir, false); err == nil {
				t.Error("nothing was found")
			}
			has(out, "ended is valid up to event", "row is valid up to event", "is missing, but its events still exist", "$5.0000 is reserved for conversation nobody")

			if out, err = p.check(dir, true); err != nil {
				t.Errorf("the repair: %v\n%s", err, out)
			}
			has(out, "ended was repaired", "row was repaired", "its events were moved to", "the reservation was corrected")
			if out, err = p.check(dir, false); err != nil || strings.Contains(out, "warn") {
				t.Errorf("after the repair: %v\n%s", err, out)
			}
			if cut, _ := filepath.Glob(filepath.Join(dir, "cut-off-number-*.jsonl")); len(cut) != 1 {
				t.Errorf("the removed log is in %v", cut)
			}

			p.damage("UPDATE spending SET amount = 1")
			if out, err = p.check(dir, false); err == nil {
				t.Error("the wrong ledger was not found")
			}
			has(out, "the ledger has $0.0000 for user ada, whose conversations spent $")
			p.damage(fmt.Sprintf("UPDATE spending SET amount = %d", int64(1e15)))
			p.newer()
		})
	}
}

// newer checks that events of a newer version do not count as damage and are kept.
func (p fixture) newer() {
	t, ctx := p.t, p.t.Context()
	stored := func() (text string) {
		p.with(func(db everything) error {
			b, err := db.Dump(ctx, "newer", 0)
			text = string(b)
			return err
		})
		return text
	}
	p.with(func(db everything) error {
		row, err := db.Row(ctx, "newer")
		if err != nil {
			return err
		}
		b := session.Batch{ID: row.ID, After: row.Last, Events: []session.Event{{Number: row.Last + 1, At: row.UpdatedAt, Payload: futureEvent{}}}, Row: row}
		b.Row.Last++
		return db.Append(ctx, b)
	})
	before := stored()
	for _, repair := range []bool{false, true} {
		out, err := p.check(p.dir, repair)
		if err == nil || !strings.Contains(out, "newer is valid up to event") || !strings.Contains(out, "newer version of deckhand") || strings.Contains(out, "fix: restore") {
			t.Errorf("repair %v: %v\n%s", repair, err, out)
		}
	}
	if after := stored(); after != before || !strings.Contains(after, "painted") {
		t.Errorf("the log was changed:\n%s\nbefore:\n%s", after, before)
	}
}

// A PostgreSQL database is verified on a machine without a data directory, too, and nothing is created there.
func TestWithoutDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := fixture{t, dir, config.Database{Dir: dir, Address: pgtest.New(t)}}
	away := filepath.Join(t.TempDir(), "away")
	out, err := p.check(away, false)
	if err != nil || !strings.Contains(out, "created by the server") {
		t.Errorf("an empty database: %v\n%s", err, out)
	}
	p.with(func(db everything) error { return converse(t.Context(), db, "one") })
	if out, err = p.check(away, false); err != nil || !strings.Contains(out, "1 with") || !strings.Contains(out, "hash chains      not checked") {
		t.Errorf("%v\n%s", err, out)
	}
	p.damage("DELETE FROM events WHERE id = (SELECT (n << 32) + last FROM sessions WHERE id = 'one')")
	if out, err = p.check(away, true); err == nil || !strings.Contains(out, "one is valid up to event") || !strings.Contains(out, "there is no data directory at") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(away); err == nil {
		t.Error("a data directory was created")
	}
}
