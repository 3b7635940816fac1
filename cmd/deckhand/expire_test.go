package main

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/bench/history"
	"deckhand/internal/session"
)

// A conversation is deleted with its workspace some time after its last activity; others are kept.
func TestOldConversationIsDeleted(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	recent := b.create("hello")
	b.follow(recent, 0, agentIs("awaiting_user_input"))
	b.stop()

	db, err := history.Open(t.Context(), b.dir, "")
	if err != nil {
		t.Fatal(err)
	}
	old := history.Begin(db.NewID(), "admin", time.Now().Add(-2*time.Hour))
	old.Add(session.Stopped{Reason: "stopped because it was idle"})
	if err := errors.Join(old.Flush(t.Context(), db), db.Close()); err != nil {
		t.Fatal(err)
	}
	id := string(old.State.ID)
	workspace := filepath.Join(b.dir, "boxes", id)
	if err := os.MkdirAll(filepath.Join(workspace, "work"), 0o700); err != nil {
		t.Fatal(err)
	}

	b = serve(t, b.dir, "--delete-after", "1h")
	if code, text, _ := b.raw("GET", "/api/me", ""); code != http.StatusOK || !strings.Contains(text, `"delete_conversations_after":3600`) {
		t.Errorf("%d %s", code, text)
	}
	b.until("the conversation is deleted", func() bool {
		code, _, _ := b.raw("GET", "/api/conversations/"+id, "")
		return code == http.StatusNotFound
	})
	b.until("its workspace is removed", func() bool {
		_, err := os.Stat(workspace)
		return errors.Is(err, os.ErrNotExist)
	})
	if code, text, _ := b.raw("GET", "/api/conversations/"+recent, ""); code != http.StatusOK {
		t.Errorf("the recent conversation: %d %s", code, text)
	}
}
