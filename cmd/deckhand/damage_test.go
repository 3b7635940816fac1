package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to spoil a file behind the store's back

	"deckhand/api"
	"deckhand/client"
)

// A row that was overwritten on the disk costs what it held and nothing more:
// the conversation can be repaired up to it, or deleted.
func TestOverwrittenRow(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	mend, drop := b.create("mend me"), b.create("drop me")
	for _, id := range []string{mend, drop} {
		b.follow(id, 0, agentIs("awaiting_user_input"))
	}
	b.stop()
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "deckhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	// The second row of each session: its claim and the beginning of its turn.
	res, err := db.Exec(`UPDATE events SET body = x'00112233' WHERE id IN
		(SELECT (SELECT e.id FROM events e WHERE e.id >> 32 = s.n ORDER BY e.id LIMIT 1 OFFSET 1) FROM sessions s)`)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := res.RowsAffected(); n != 2 {
		t.Fatalf("%d rows spoiled", n)
	}
	db.Close()

	code, out, errs := command(t, "doctor", "--data-dir", b.dir, mend)
	if code == 0 || !strings.Contains(errs, "valid up to event 3") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if code, out, errs = command(t, "doctor", "--data-dir", b.dir, "--repair", mend); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	b = serve(t, b.dir)
	b.follow(mend, 0, agentIs("awaiting_user_input")) // the message is answered again
	if status, body, _ := b.raw("GET", "/api/conversations/"+drop+"/events", ""); status != 500 || !strings.Contains(body, "deckhand doctor") {
		t.Errorf("%d %s", status, body)
	}
	if err := b.client.Delete(t.Context(), drop); err != nil {
		t.Errorf("what is damaged cannot be deleted: %v", err)
	}
	if _, err := b.client.Conversation(t.Context(), drop); !client.IsNotFound(err) {
		t.Errorf("%v", err)
	}
}

// null and absent are the same request; the log names the conversation that was made.
func TestSameRequestSpelledDifferently(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	for _, body := range []string{`{"conversation_id":"twin","initial_user_msg":"hi"}`, `{"initial_user_msg":"hi","repository":null,"conversation_id":"twin"}`} {
		if status, answer, _ := b.raw("POST", "/api/conversations", body); status != 200 {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
	if status, answer, _ := b.raw("POST", "/api/conversations", `{"conversation_id":"twin","initial_user_msg":"ho"}`); status != 409 {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer, _ := b.raw("POST", "/api/conversations", `{"conversation_id":"once"}`, "Idempotency-Key", "k"); status != 200 {
		t.Errorf("%d %s", status, answer)
	}
	b.stop()
	for _, id := range []string{"twin", "once"} {
		named := false
		for line := range strings.Lines(b.logs.String()) {
			named = named || strings.Contains(line, `"path":"/api/conversations"`) && strings.Contains(line, `"session":"`+id+`"`)
		}
		if !named {
			t.Errorf("no request in the log names the conversation %s: %s", id, b.logs)
		}
	}
}

// Whoever asks the WebSocket's path without an upgrade is told so in JSON.
func TestSocketWithoutUpgrade(t *testing.T) {
	t.Parallel()
	b := serve(t, "")
	b.demo("scripted/demo")
	status, body, header := b.raw("GET", "/api/conversations/"+b.create("")+"/events/ws", "")
	if status != 426 || !strings.Contains(body, `"msg_id":"`+api.CodeBadRequest) || header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", status, body)
	}
}

func TestKeyThatNeverWasGood(t *testing.T) {
	t.Parallel()
	code, out, errs := command(t, "key", "create", "--user", "gus", "--expires", "0s", "--data-dir", t.TempDir())
	if code == 0 || out != "" || !strings.Contains(errs, "positive duration") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
