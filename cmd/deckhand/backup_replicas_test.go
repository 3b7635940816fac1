package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/cluster/natstest"
)

// Two servers with local workspaces are restored on other machines: each has its workspaces again, and their conversations continue there.
func TestBackupOfReplicas(t *testing.T) {
	t.Parallel()
	args := withSandbox(t, "local")
	f := newFleet(t, 1, args...)
	first := f.boxes[0]
	first.demo("scripted/demo")
	ids := []string{first.create("$ echo of-the-first > kept; echo written"), ""}
	first.said(ids[0], 0, "written")
	f.kill(0) // so that the next conversation is on the other machine
	second := f.add(readable(t), args...)
	ids[1] = second.create("$ echo of-the-second > kept; echo written")
	second.said(ids[1], 0, "written")
	f.add(first.dir, args...)
	for _, id := range ids {
		second.follow(id, 0, agentIs("awaiting_user_input"))
	}

	folders := []string{filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")}
	for i, dir := range []string{first.dir, second.dir} {
		succeeds(t, "backup", folders[i], "--data-dir", dir, "--database-url", f.database)
	}
	fresh := []string{filepath.Join(readable(t), "data"), filepath.Join(readable(t), "data")}
	refused := func(what, database, want string) {
		t.Helper()
		code, _, errs := command(t, "restore", folders[1], "--workspaces-only", "--data-dir", fresh[1], "--database-url", database)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %s", what, code, errs)
		}
	}
	g := &fleet{t: t, postgres: f.postgres, database: f.postgres.Database(t), nats: natstest.Start(t, ""), master: f.master}
	refused("an empty database", g.database, "restore the database first")
	refused("a server that runs", f.database, "is running")
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(g.database), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, args := range restoring(t) {
		as := map[string]string{"first-machine": folders[0], "second-machine": folders[1], "restored": fresh[i], "database.url": file}
		for j, arg := range args {
			args[j] = cmp.Or(as[arg], arg)
		}
		succeeds(t, args...)
	}
	key, err := os.ReadFile(filepath.Join(first.dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range fresh {
		if err := os.WriteFile(filepath.Join(dir, "admin.key"), key, 0o600); err != nil {
			t.Fatal(err)
		}
		g.add(dir, args...)
	}
	for i, id := range ids {
		if err := g.boxes[0].client.Say(t.Context(), id, "$ echo again: $(cat kept)", ""); err != nil {
			t.Fatal(err)
		}
		g.boxes[1-i].said(id, 0, "again: of-the-"+[]string{"first", "second"}[i])
		if at, _ := g.home(id); at != i {
			t.Errorf("the workspace of %s is on server %d", id, at)
		}
	}
	for _, id := range ids {
		g.boxes[0].remove(id)
		second.remove(id)
	}
}

// restoring returns the commands of the manual that restore several servers, without the name of the program.
func restoring(t *testing.T) (commands [][]string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/backup.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, _ := shellBlocks(string(page))
	for _, b := range blocks {
		if !strings.Contains(b.text, "--workspaces-only") {
			continue
		}
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, "#")
			commands = append(commands, strings.Fields(command)[1:])
		}
	}
	if len(commands) != 2 {
		t.Fatalf("docs/backup.md has the commands %q", commands)
	}
	return commands
}
