package main

import (
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/control"
)

// A server that was just started: new says that a model is missing, and open opens the home page.
func TestCommandsOnANewServer(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	until(t, "the control socket", func() bool { _, err := control.Ask(b.dir, control.Address); return err == nil })
	if code, _, errs := b.beside("new", "hello"); code != cli.ExitError || !strings.Contains(errs, "no model is chosen on this server yet") || !strings.Contains(errs, "deckhand open") {
		t.Errorf("%d %s", code, errs)
	}
	code, out, errs := b.beside("open", "--print")
	if code != 0 || !strings.HasPrefix(out, b.base+"/#") || errs != "" {
		t.Errorf("%d %s%s", code, out, errs)
	}
	if code, _, errs := b.beside("attach"); code != cli.ExitError || !strings.Contains(errs, "no conversations yet") {
		t.Errorf("%d %s", code, errs)
	}
}

// A unique prefix of an ID is enough, however short.
func TestShortPrefix(t *testing.T) {
	t.Parallel()
	b := tended(t)
	for _, id := range []string{"sail-of-the-ship", "salt-of-the-sea"} {
		if _, err := b.client.Create(t.Context(), api.CreateConversation{ConversationID: api.Some(id)}); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := b.beside("logs", "sai"); code != 0 || out == "" {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := b.beside("logs", "sa"); code != cli.ExitUsage || !strings.Contains(errs, "use a longer prefix") {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := b.beside("logs", "zzz"); code != cli.ExitError || !strings.Contains(errs, "zzz not found") {
		t.Errorf("%d %s", code, errs)
	}
}
