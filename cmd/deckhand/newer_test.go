package main

import (
	"strings"
	"testing"

	"deckhand/client"
	"deckhand/internal/access"
	"deckhand/internal/config"
	"deckhand/internal/datadir"
	"deckhand/internal/secret"
	"deckhand/internal/session"
)

// painted is an event of a future version.
type painted struct{}

func (painted) Kind() session.Kind { return "painted" }

// A conversation with an event of a newer version says so. Others continue, and it can be deleted.
func TestNewerEvent(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	newer, other := b.create("hello"), b.create("hello, too")
	for _, id := range []string{newer, other} {
		b.follow(id, 0, agentIs("awaiting_user_input"))
	}
	b.stop()
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
		e := session.Event{Number: row.Last + 1, At: row.UpdatedAt, Payload: painted{}}
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
	for _, request := range [][3]string{{"GET", "/events", ""}, {"POST", "/message", `{"message":"and on"}`}} {
		if status, body, _ := b.raw(request[0], "/api/conversations/"+newer+request[1], request[2]); status != 500 || !strings.Contains(body, "newer version") {
			t.Errorf("%s: %d %s", request[1], status, body)
		}
	}
	(&person{box: b}).ask(other, "and on", "awaiting_user_input")
	if err := b.client.Delete(t.Context(), newer); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	if _, err := b.client.Conversation(t.Context(), newer); !client.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}
