package main

import (
	"bufio"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/internal/config"
	"deckhand/internal/session"
	"deckhand/internal/soak"
	"deckhand/internal/store"
	"deckhand/internal/store/open"
	"deckhand/internal/store/postgres/pgtest"
)

// An installation moves to PostgreSQL and back. It cannot be moved while a server uses it, a move that was killed goes on where
// it stopped, no server uses an unfinished target, and the next server continues every conversation. No password is shown.
func TestMigrate(t *testing.T) {
	t.Parallel()
	soak.NotShort(t, "starts servers as processes")
	pgtest.Available(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	m := &migration{t: t, dir: t.TempDir(), address: server.Database(t) + "&" + url.Values{"password": {"hunter2"}}.Encode(), file: filepath.Join(t.TempDir(), "url")}
	if err := os.WriteFile(m.file, []byte(m.address+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(m.dir, "deckhand.db")
	b := serve(t, m.dir)
	b.demo("scripted/demo")
	if err := b.client.CreateSecret(t.Context(), api.CreateSecret{Name: "TOKEN", Value: "a secret value"}); err != nil {
		t.Fatal(err)
	}
	hook := b.hook("http://127.0.0.1:9/hook")
	id := b.create("Say hello")
	m.seen = describe(b.follow(id, 0, agentIs("awaiting_user_input")))
	m.refused("another deckhand process is using", "--from", "sqlite:"+first, "--to-file", m.file)
	b.stop()
	m.fill(first)

	m.killed("--from", "sqlite:"+first, "--to-file", m.file)
	if code, out, errs := command(t, "serve", "--data-dir", m.dir, "--addr", "127.0.0.1:0", "--database-url-file", m.file); code != 1 || !strings.Contains(errs, "run the same deckhand migrate command again") {
		t.Fatalf("a server uses an unfinished target: %d %s%s", code, out, errs)
	}
	m.migrated("--from", "sqlite:"+first, "--to-file", m.file, "--conversations")
	b = serve(t, m.dir, "--database-url-file", m.file)
	m.goesOn(b, id, hook.ID)
	m.refused("another server uses this database", "--from-file", m.file, "--to", "sqlite:"+filepath.Join(t.TempDir(), "other.db"))
	b.stop()

	last := filepath.Join(m.dir, "again", "deckhand.db")
	if err := os.Mkdir(filepath.Dir(last), 0o700); err != nil {
		t.Fatal(err)
	}
	m.killed("--from", m.address, "--to", "sqlite:"+last)
	m.migrated("--from", m.address, "--to", "sqlite:"+last)
	b = serve(t, m.dir, "--database-url", "sqlite:"+last)
	m.goesOn(b, id, hook.ID)
	b.stop()
	m.refused("another installation", "--from", "sqlite:"+first, "--to", "sqlite:"+m.foreign())
	if m.shown.Len() == 0 || strings.Contains(m.shown.String(), "hunter2") {
		t.Errorf("the password is shown:\n%s", &m.shown)
	}
}

// Errors of both databases name the flag to correct.
func TestMigrateErrors(t *testing.T) {
	t.Parallel()
	pgtest.Available(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	dir := t.TempDir()
	must(t, "user", "create", "ada", "--init", "--data-dir", dir)
	file, junk, target := "sqlite:"+filepath.Join(dir, "deckhand.db"), filepath.Join(t.TempDir(), "junk"), "sqlite:"+filepath.Join(t.TempDir(), "new.db")
	const gone = "postgres://u@127.0.0.1:1/d"
	if err := os.WriteFile(junk, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--from", file, "--to", gone}, "the host and port in --to are correct"},
		{[]string{"--from", file, "--to-file", write(t, gone)}, "the host and port in --to-file are correct"},
		{[]string{"--from", gone, "--to", target}, "the host and port in --from are correct"},
		{[]string{"--from", file, "--to", server.Address("none")}, "correct the name in --to"},
		{[]string{"--from", file, "--to", "postgres://u@127.0.0.1:99999/d"}, "--to: the database URL is not valid"},
		{[]string{"--from", "postgres://u@127.0.0.1:1/d?pool_max_conns=0", "--to", target}, "--from: pool_max_conns must be a number"},
		{[]string{"--from", file, "--to", "sqlite:" + junk}, junk + ": it is not a database of Deckhand: file is not a database"},
		{[]string{"--from", "sqlite:" + junk, "--to", target}, junk + ": it is not a database of Deckhand: "},
		{[]string{"--from", file, "--to", server.Database(t) + "&options=-c%20default_transaction_read_only%3Don"}, "the database is empty and cannot be used: the database is read-only"},
	} {
		code, _, errs := command(t, append([]string{"migrate"}, c.args...)...)
		if code != 1 || !strings.Contains(errs, c.want) || strings.Contains(errs, "database-url") || strings.Contains(errs, "out of date") {
			t.Errorf("%v: %d %s, want %q", c.args, code, errs, c.want)
		}
	}
}

type migration struct {
	t                  *testing.T
	dir, address, file string
	seen               string // the conversation
	shown              strings.Builder
}

// fill adds conversations, so that a move takes a while.
func (m *migration) fill(path string) {
	db, err := open.Database(m.t.Context(), config.Database{Path: path}, store.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	text := strings.Repeat("many words ", 100)
	for range 400 {
		events := []session.Event{{At: time.Now(), Payload: session.Created{Owner: "admin"}}}
		for range 60 {
			events = append(events, session.Event{At: time.Now(), Payload: session.Imported{Said: &session.UserSaid{Text: text}}})
		}
		batches, _, err := session.Import(db.NewID(), append(events, session.Event{At: time.Now(), Payload: session.Stopped{}}))
		if err == nil {
			err = db.AppendAll(m.t.Context(), batches)
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		m.t.Fatal(err)
	}
}

// refused runs the command and expects an error.
func (m *migration) refused(want string, args ...string) {
	m.t.Helper()
	code, out, errs := command(m.t, append([]string{"migrate"}, args...)...)
	fmt.Fprint(&m.shown, out, errs)
	if code != 1 || !strings.Contains(errs, want) {
		m.t.Errorf("%d %s%s, want %q", code, out, errs, want)
	}
}

// killed runs the command as a process and kills it while it copies events.
func (m *migration) killed(args ...string) {
	m.t.Helper()
	p := process(append([]string{"migrate"}, args...)...)
	pipe, err := p.StderrPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	copying := false
	for !copying && lines.Scan() {
		fmt.Fprintln(&m.shown, lines.Text())
		copying = strings.HasPrefix(lines.Text(), "copying events")
	}
	if !copying {
		m.t.Fatalf("it copies no events:\n%s", &m.shown)
	}
	_ = p.Process.Kill()
	if err := p.Wait(); err == nil {
		m.t.Fatalf("it ended before it was killed:\n%s", &m.shown)
	}
}

// migrated runs the command, which continues a move.
func (m *migration) migrated(args ...string) {
	m.t.Helper()
	code, out, errs := command(m.t, append([]string{"migrate"}, args...)...)
	fmt.Fprint(&m.shown, out, errs)
	if code != 0 {
		m.t.Fatalf("%d %s%s", code, out, errs)
	}
	holds(m.t, errs, "Continuing the interrupted migration.", "verifying conversations")
	holds(m.t, out, "events", "Migrated 401 conversations", "Both databases are equal", "deckhand serve --data")
}

// goesOn checks that everything is there and that the conversation continues.
func (m *migration) goesOn(b *box, id, hook string) {
	m.t.Helper()
	ctx := m.t.Context()
	before := b.follow(id, 0, agentIs("awaiting_user_input"))
	if text := describe(before); !strings.HasPrefix(text, m.seen) {
		m.t.Errorf("it was\n%s\nand is\n%s", m.seen, text)
	}
	if err := b.client.Say(ctx, id, "And again", ""); err != nil {
		m.t.Fatal(err)
	}
	all := b.follow(id, before[len(before)-1].ID, agentIs("awaiting_user_input"))
	if text := describe(all); !strings.Contains(text, `You said: \"And again\"`) {
		m.t.Errorf("no answer:\n%s", text)
	}
	secrets, err := b.client.Secrets(ctx)
	if err != nil || len(secrets) != 1 || secrets[0].Name != "TOKEN" {
		m.t.Errorf("the secrets: %+v %v", secrets, err)
	}
	if got, err := b.client.Webhook(ctx, hook); err != nil || got.ID != hook {
		m.t.Errorf("the webhook: %+v %v", got, err)
	}
}

// foreign is the database of another installation.
func (m *migration) foreign() string {
	path := filepath.Join(m.t.TempDir(), "deckhand.db")
	if code, out, errs := command(m.t, "user", "create", "ada", "--init", "--data-dir", filepath.Dir(path)); code != 0 {
		m.t.Fatalf("%d %s%s", code, out, errs)
	}
	return path
}
