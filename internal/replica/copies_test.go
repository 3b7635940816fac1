package replica

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"deckhand/internal/cluster/natstest"
	"deckhand/internal/config"
	"deckhand/internal/secret"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
	"deckhand/internal/store/postgres/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// server opens a Replica on a database. All have the same master key.
func server(t *testing.T, master, nats string, d config.Database) *Replica {
	t.Helper()
	db, err := open.Database(t.Context(), d, store.Options{Together: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	keyring, err := secret.OpenKeyring(t.Context(), master, "", db)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), Config{Flags: Flags{NATSURL: nats, Roles: []string{"api", "worker"}}, DataDir: t.TempDir(), DB: db, Keyring: keyring, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// The servers of an installation and those of a restored copy do not receive each other's messages, although both have the same keys.
func TestCopiesOnOneNATS(t *testing.T) {
	t.Parallel()
	nats, master := natstest.Start(t, "").URL, t.TempDir()
	original, copied := config.Database{Address: pgtest.New(t)}, config.Database{Address: pgtest.New(t)}
	first := server(t, master, nats, original)
	var dump bytes.Buffer
	schema, err := open.Copied{Database: original}.Dump(t.Context(), &dump)
	if err != nil {
		t.Fatal(err)
	}
	if err := (open.Copied{Database: copied}).Load(t.Context(), schema, &dump); err != nil {
		t.Fatal(err)
	}
	second := server(t, master, nats, original)
	one, two := server(t, master, nats, copied), server(t, master, nats, copied)
	got := make(chan string, 10)
	for name, r := range map[string]*Replica{"the original": second, "the copy": two} {
		stop, err := r.receive("delta", func(content []byte) { got <- name + string(content) })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	for i, r := range []*Replica{first, one} {
		r.send("delta", i)
		if err := r.conn.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	heard := map[string]bool{}
	for range 2 {
		select {
		case text := <-got:
			heard[text] = true
		case <-time.After(time.Minute):
			t.Fatalf("only %v arrived", heard)
		}
	}
	if !heard["the original0"] || !heard["the copy1"] {
		t.Errorf("received: %v", heard)
	}
	if a, b := first.subject("wake"), one.subject("wake"); a == b {
		t.Errorf("both use the subject %s", a)
	}
}
