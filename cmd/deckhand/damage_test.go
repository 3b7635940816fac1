package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // to spoil a file behind the store's back

	"deckhand/api"
	"deckhand/client"
)

// stoppedWith returns a stopped server and its two conversations, which begin with these messages.
func stoppedWith(t *testing.T, first, second string) (b *box, one, two string) {
	t.Helper()
	b = serve(t, "")
	b.demo("scripted/demo")
	one, two = b.create(first), b.create(second)
	for _, id := range []string{one, two} {
		b.follow(id, 0, agentIs("awaiting_user_input"))
	}
	b.stop()
	return b, one, two
}

// overwrite runs a statement on the database of a stopped server, and returns how many rows it changed.
func (b *box) overwrite(statement string) int64 {
	b.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "deckhand.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(statement)
	if err != nil {
		b.t.Fatal(err)
	}
	n, _ := res.RowsAffected()
	return n
}

// onlyDeletes checks that a conversation that cannot be read says why, and can be deleted.
func (b *box) onlyDeletes(id, why string) {
	b.t.Helper()
	for _, request := range [][3]string{{"GET", "/events", ""}, {"POST", "/message", `{"message":"and on"}`}} {
		if status, body, _ := b.raw(request[0], "/api/conversations/"+id+request[1], request[2]); status != 500 || !strings.Contains(body, why) {
			b.t.Errorf("%s: %d %s", request[1], status, body)
		}
	}
	if err := b.client.Delete(b.t.Context(), id); err != nil {
		b.t.Errorf("the conversation cannot be deleted: %v", err)
	}
	if _, err := b.client.Conversation(b.t.Context(), id); !client.IsNotFound(err) {
		b.t.Errorf("%v", err)
	}
}

// A row that was overwritten on the disk costs what it held and nothing more:
// the conversation can be repaired up to it, or deleted.
func TestOverwrittenRow(t *testing.T) {
	t.Parallel()
	b, mend, drop := stoppedWith(t, "mend me", "drop me")
	// The second row of each session: its claim and the beginning of its turn.
	if n := b.overwrite(`UPDATE events SET body = x'00112233' WHERE id IN
		(SELECT (SELECT e.id FROM events e WHERE e.id >> 32 = s.n ORDER BY e.id LIMIT 1 OFFSET 1) FROM sessions s)`); n != 2 {
		t.Fatalf("%d rows changed", n)
	}

	code, out, errs := command(t, "doctor", "--data-dir", b.dir, mend)
	if code == 0 || !strings.Contains(errs, "valid up to event 3") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if code, out, errs = command(t, "doctor", "--data-dir", b.dir, "--repair", mend); code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	b = serve(t, b.dir)
	b.follow(mend, 0, agentIs("awaiting_user_input")) // the message is answered again
	b.onlyDeletes(drop, "deckhand doctor")
}

// Events that were changed in the database are noticed by the server, by the doctor and after a restore, although they make
// sense. The doctor says what to do, and can accept them.
func TestForgedEvent(t *testing.T) {
	t.Parallel()
	b, forged, good := stoppedWith(t, "transfer 10 coins", "hello")
	doctor := []string{"doctor", "--data-dir", b.dir, "--addr", "127.0.0.1:0"}
	doctor = append(doctor, plainSandbox(t, nil)...)
	if err := os.Chmod(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := command(t, doctor...); code != 0 || !strings.Contains(out, "conversations    2 with") {
		t.Fatalf("before: %s", out)
	}
	if n := b.overwrite(`UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '10 coins', '90 coins') AS BLOB) WHERE instr(body, CAST('10 coins' AS BLOB)) > 0`); n == 0 {
		t.Fatal("nothing was changed")
	}

	folder, restored := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "restored")
	succeeds(t, "backup", folder, "--with-key", "--data-dir", b.dir)
	code, out, errs := command(t, "restore", folder, "--data-dir", restored)
	if code == 0 || !strings.Contains(out, "hash chain") || !strings.Contains(errs, "contains damaged conversations") {
		t.Errorf("the restore: %d %s%s", code, out, errs)
	}
	code, out, _ = command(t, append(doctor, "--backups", folder)...)
	holds(t, out, "FAIL  conversation", forged, "hash chain", "fix: restore a backup", "deckhand doctor --repair", "ok    backups          1, all valid")
	if code == 0 || strings.Contains(out, good) {
		t.Errorf("%d %s", code, out)
	}
	b = serve(t, b.dir)
	if status, body, _ := b.raw("GET", "/api/conversations/"+forged+"/events", ""); status != 500 || !strings.Contains(body, "deckhand doctor") {
		t.Errorf("%d %s", status, body)
	}
	if code, _, errs = command(t, "doctor", "--data-dir", b.dir, "--repair", forged); code == 0 || !strings.Contains(errs, "another deckhand process") {
		t.Errorf("a repair beside a server: %d %s", code, errs)
	}
	b.stop()
	orphan := filepath.Join(b.dir, "boxes", "orphan", "ws")
	if err := os.MkdirAll(orphan, 0o700); err != nil {
		t.Fatal(err)
	}
	code, out, errs = command(t, append(doctor, "--repair")...)
	holds(t, out, "accepted the events as they are", "orphan belongs to no conversation and was moved to", "All checks passed")
	if code != 0 {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	b = serve(t, b.dir)
	t.Cleanup((&person{box: b}).dropAll)
	(&person{box: b}).ask(forged, "and on", "awaiting_user_input")
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
	code, out, errs := command(t, "key", "create", "--init", "--user", "gus", "--expires", "0s", "--data-dir", t.TempDir())
	if code == 0 || out != "" || !strings.Contains(errs, "positive duration") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
