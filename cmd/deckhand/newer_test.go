package main

import (
	"strings"
	"testing"

	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// futureEvent is an event of a future version.
type futureEvent struct{}

func (futureEvent) Kind() session.Kind { return "painted" }

// A conversation with an event of a newer version says so. Others continue, and it can be deleted.
func TestNewerEvent(t *testing.T) {
	t.Parallel()
	b, newer, other := stoppedWith(t, "hello", "hello, too")
	d, err := openExisting(t.Context(), config.DataFlags{DataDir: b.dir}, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.OpenKeyring(t.Context(), b.dir, "", d.db)
	if err == nil {
		err = datadir.UseChain(t.Context(), d.db, keyring)
	}
	var row session.Row
	if err == nil {
		row, err = d.db.Row(t.Context(), session.ID(newer))
	}
	if err == nil {
		e := session.Event{Number: row.Last + 1, At: row.UpdatedAt, Payload: futureEvent{}}
		row.Last++
		err = d.db.Append(t.Context(), session.Batch{ID: row.ID, After: row.Last - 1, Events: []session.Event{e}, Row: row})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := d.db.Close(); err != nil {
		t.Fatal(err)
	}

	for _, args := range [][]string{{newer}, {"--repair", newer}} {
		code, out, errs := command(t, append([]string{"doctor", "--data-dir", b.dir}, args...)...)
		if code == 0 || !strings.Contains(errs, "newer version of deckhand") || strings.Contains(out+errs, "truncate") {
			t.Errorf("doctor %q: %d %s%s", args, code, out, errs)
		}
	}
	b = serve(t, b.dir)
	t.Cleanup((&person{box: b}).dropAll)
	(&person{box: b}).ask(other, "and on", "awaiting_user_input")
	b.onlyDeletes(newer, "newer version")
}
