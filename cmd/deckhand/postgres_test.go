package main

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/soak"
	"deckhand/internal/store/postgres/pgtest"
)

// A server keeps everything in PostgreSQL: a conversation goes on after the server was killed and
// after a proper end, a second server is kept away, and no password is shown.
func TestOnPostgreSQL(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts servers as processes")
	pgtest.Available(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	address := server.Database(t) + "&" + url.Values{"password": {"hunter2"}}.Encode() // which nobody asks for
	dir := t.TempDir()
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, process := spawn(t, dir, "--database-url-file", file)
	b.demo("scripted/demo")
	id := b.create("Say hello")
	seen := b.follow(id, 0, agentIs("awaiting_user_input"))
	if text := describe(seen); !inOrder(seen) || !strings.Contains(text, `You said: \"Say hello\"`) {
		t.Fatalf("no answer:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "deckhand.db")); err == nil {
		t.Error("there is a file of the other database")
	}

	_ = process.Process.Kill()
	_ = process.Wait()
	b, _ = spawn(t, dir, "--database-url", address)
	again := b.follow(id, 0, agentIs("awaiting_user_input"))
	if describe(again[:len(seen)]) != describe(seen) {
		t.Errorf("after a kill:\n%s\nbefore:\n%s", describe(again), describe(seen))
	}
	if err := b.client.Say(t.Context(), id, "And again", "key-1"); err != nil {
		t.Fatal(err)
	}
	more := b.follow(id, again[len(again)-1].ID, agentIs("awaiting_user_input"))
	if text := describe(more); !strings.Contains(text, `You said: \"And again\"`) {
		t.Fatalf("no answer:\n%s", text)
	}

	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"serve", "--data-dir", t.TempDir(), "--addr", "127.0.0.1:0", "--database-url", address}, &out, &errs); code == 0 || !strings.Contains(errs.String(), "another server uses this database") {
		t.Errorf("a second server: %d %s", code, &errs)
	}
	out.Reset()
	if code := run(t.Context(), []string{"key", "list", "--data-dir", dir, "--database-url", address}, &out, &errs); code != 0 {
		t.Errorf("a command beside the server: %d %s", code, &errs)
	}
	if code := run(t.Context(), []string{"config", "show", "--data-dir", dir, "--database-url", address}, &out, &errs); code != 0 || !strings.Contains(out.String(), "xxxxx") {
		t.Errorf("the config: %d %s %s", code, &out, &errs)
	}
	if code := run(t.Context(), []string{"doctor", "--data-dir", dir, "--database-url", address, id}, &out, &errs); code != 0 {
		t.Errorf("the doctor: %d %s %s", code, &out, &errs)
	}
	for _, text := range []string{out.String(), errs.String(), b.logs.String()} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the password is shown:\n%s", text)
		}
	}
}
