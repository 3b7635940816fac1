package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/postgres/pgtest"
)

// pasted runs a command of the output in a shell, as a reader does.
func pasted(t *testing.T, line string) (string, error) {
	t.Helper()
	program := process()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `deckhand() { "$PROGRAM" "$@"; }`+"\n"+line)
	cmd.Env = append(program.Env, "PROGRAM="+program.Path)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Without the master key, changed events cannot be noticed: the commands say so, and the commands that they print find the change
// when the key is in place.
func TestForgedEventWithoutMasterKey(t *testing.T) {
	t.Parallel()
	b, forged, _ := stoppedWith(t, "transfer 10 coins", "hello")
	if n := b.overwrite(`UPDATE events SET body = CAST(replace(CAST(body AS TEXT), '10 coins', '90 coins') AS BLOB) WHERE instr(body, CAST('10 coins' AS BLOB)) > 0`); n == 0 {
		t.Fatal("nothing was changed")
	}
	folder, restored := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "restored here")
	succeeds(t, "backup", folder, "--data-dir", b.dir)

	unchecked := func(what string, code, want int, out string) (command string) {
		t.Helper()
		holds(t, out, "all can be read", "not checked, so a changed event would not be noticed", "the master key")
		if code != want || strings.Contains(out, "all valid") || strings.Contains(out, "All checks passed") {
			t.Errorf("%s: %d\n%s", what, code, out)
		}
		found := regexp.MustCompile(`run: (deckhand doctor .*)`).FindStringSubmatch(out)
		if found == nil {
			t.Fatalf("%s: no command in\n%s", what, out)
		}
		return found[1]
	}
	code, out, _ := command(t, "restore", folder, "--data-dir", restored)
	commands := []string{unchecked("restore", code, 0, out)}
	holds(t, out, filepath.Join(restored, "master.key"))
	code, out, _ = command(t, "doctor", forged, "--data-dir", restored)
	commands = append(commands, unchecked("doctor ID", code, 0, out))
	all := append([]string{"doctor", "--data-dir", restored, "--addr", "127.0.0.1:0"}, plainSandbox(t, nil)...)
	code, out, _ = command(t, all...)
	commands = append(commands, unchecked("doctor", code, 1, out))

	key, err := os.ReadFile(filepath.Join(b.dir, "master.key"))
	if err == nil {
		err = os.WriteFile(filepath.Join(restored, "master.key"), key, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands {
		if out, err := pasted(t, c); err == nil || !strings.Contains(out, "the hash chain does not match") {
			t.Errorf("%s: %v\n%s", c, err, out)
		}
	}
	code, _, errs := command(t, "doctor", forged, "--data-dir", restored)
	fix := regexp.MustCompile(`with: (deckhand doctor --repair .*)`).FindStringSubmatch(errs)
	if code != 1 || fix == nil {
		t.Fatalf("%d %s", code, errs)
	}
	if out, err := pasted(t, fix[1]); err != nil || !strings.Contains(out, "accepted the events as they are") {
		t.Errorf("%s: %v\n%s", fix[1], err, out)
	}
}

// A restore lists all damaged conversations, each with a command that works when it is pasted.
func TestRestoreListsAllDamage(t *testing.T) {
	t.Parallel()
	pgtest.Available(t)
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	from, to := server.Database(t), server.Database(t)
	b := serve(t, "", "--database-url", from)
	b.demo("scripted/demo")
	var ids []string
	for range 7 {
		id := b.create("transfer 10 coins")
		b.follow(id, 0, agentIs("awaiting_user_input"))
		ids = append(ids, id)
	}
	b.stop()
	c, err := pgconn.Connect(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	for i, sql := range []string{
		`UPDATE deckhand.events SET body = overlay(body PLACING '9'::bytea FROM position('10 coins'::bytea IN body) FOR 1) WHERE n = N AND position('10 coins'::bytea IN body) > 0`,
		`DELETE FROM deckhand.events WHERE n = N AND last = (SELECT last FROM deckhand.events WHERE n = N ORDER BY last OFFSET 1 LIMIT 1)`,
		`DELETE FROM deckhand.events WHERE n = N AND last = (SELECT max(last) FROM deckhand.events WHERE n = N)`,
		`UPDATE deckhand.events SET at = at + 1 WHERE n = N AND last = (SELECT min(last) FROM deckhand.events WHERE n = N)`,
		`UPDATE deckhand.events e SET body = o.body FROM deckhand.events o WHERE e.n = N AND o.n = N AND o.last = (SELECT min(last) FROM deckhand.events WHERE n = N)
			AND e.last = (SELECT max(last) FROM deckhand.events WHERE n = N)`,
		`DELETE FROM deckhand.sessions WHERE n = N`,
	} {
		sql = strings.ReplaceAll(sql, "n = N", "n = (SELECT DISTINCT n FROM numbers WHERE id = '"+ids[i]+"')")
		if i == 0 {
			sql = "CREATE TEMPORARY TABLE numbers AS SELECT n, id FROM deckhand.sessions; " + sql
		}
		done, err := c.Exec(t.Context(), sql).ReadAll()
		if err != nil || done[len(done)-1].CommandTag.RowsAffected() == 0 {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	_ = c.Close(t.Context())

	folder, restored := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "restored")
	succeeds(t, "backup", folder, "--with-key", "--data-dir", b.dir, "--database-url", from)
	code, out, errs := command(t, "restore", folder, "--data-dir", restored, "--database-url", to)
	if code != 1 || !strings.Contains(errs, "contains damaged conversations") || strings.Contains(out, ids[6]) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	holds(t, out, "is missing, but its events still exist")
	fixes := regexp.MustCompile(`run: (deckhand doctor .*)`).FindAllStringSubmatch(out, -1)
	if len(fixes) < 6 {
		t.Errorf("only %d fixes in\n%s", len(fixes), out)
	}
	for _, id := range ids[:5] {
		holds(t, out, id+" is valid up to event")
		for _, fix := range fixes {
			if strings.Contains(fix[1], id) {
				if out, err := pasted(t, fix[1]); err != nil {
					t.Errorf("%s: %v\n%s", fix[1], err, out)
				}
			}
		}
	}
	for _, fix := range fixes {
		holds(t, fix[1], "--data-dir "+restored, "--database-url '"+to+"'")
	}
}
