package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/llm/llmtest"
)

// messages returns the events of the user's messages.
func (p *person) messages(id string) (out []int64) {
	p.t.Helper()
	for _, e := range p.logged(id) {
		if e.Kind == "user_said" {
			out = append(out, e.ID)
		}
	}
	return out
}

// conflict returns the files that both changed, as a refused restore lists them.
func conflict(t *testing.T, err error) string {
	t.Helper()
	refused, ok := err.(*client.Error)
	if !ok || refused.Status != 409 || refused.Code != api.CodeRestoreConflict || refused.Conflict == nil || refused.Conflict.Message == "" {
		t.Fatalf("%v", err)
	}
	return fmt.Sprint(refused.Conflict.Files, refused.Conflict.Repositories, refused.Conflict.Count)
}

// What people change themselves between turns, with the page, in a folder or with git, stays as it is when turns are undone.
func TestRestoreKeepsOwnChanges(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys)
	read := func(id string, names ...string) (out string) {
		t.Helper()
		for _, name := range names {
			text, err := p.client.ReadFile(t.Context(), id, name)
			if statusOf(err) == 404 || statusOf(err) == 500 {
				text = "-"
			} else if err != nil {
				t.Fatal(err)
			}
			out += strings.TrimSpace(text) + " "
		}
		return strings.TrimSpace(out)
	}
	save := func(id, name, text string) {
		t.Helper()
		etag := ""
		if old, err := p.client.OpenFile(t.Context(), id, name); err == nil {
			etag = old.ETag
		}
		if _, err := p.client.SaveFile(t.Context(), id, name, text, etag); err != nil {
			t.Fatal(err)
		}
	}
	id := p.begin("$ git init -q -b main . && git config user.email a@b && git config user.name a && echo 0 > agents && echo 0 > mine && echo 0 > both && git add . && git commit -qm first; echo ready")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	p.box.checkpointed(p.client, id, 1)
	save(id, "mine", "1")
	p.ask(id, "$ echo 1 > agents; echo 1 > both; git status --short; echo turn", "awaiting_user_input")
	p.box.checkpointed(p.client, id, 3)
	save(id, "mine", "2")
	committed, err := p.client.Commit(t.Context(), id, api.GitCommit{Message: "my own"})
	if err != nil {
		t.Fatal(err)
	}
	p.ask(id, "$ echo 2 > agents; echo 2 > second; echo turn", "awaiting_user_input")
	points := p.box.checkpointed(p.client, id, 5)
	save(id, "mine", "3")
	said := p.messages(id)
	last := func(own string) api.RestoreConversation {
		return api.RestoreConversation{EventID: said[2] - 1, OwnChanges: own}
	}

	// The last turn: its files, and nothing else.
	r, err := p.client.Restore(t.Context(), id, last(""))
	if err != nil || r.Changed != 2 || r.Git {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := read(id, "agents", "second", "mine", "both"); got != "1 - 3 1" {
		t.Errorf("the last turn is undone: %s", got)
	}
	r, err = p.client.UndoRestore(t.Context(), id, api.UndoRestore{})
	if err != nil || read(id, "agents", "second", "mine", "both") != "2 2 3 1" {
		t.Fatalf("undo: %+v, %v, %s", r, err, read(id, "agents", "second", "mine", "both"))
	}
	if r, err = p.client.RedoRestore(t.Context(), id, api.UndoRestore{}); err != nil || read(id, "agents", "second", "mine") != "1 - 3" {
		t.Fatalf("redo: %+v, %v", r, err)
	}
	// All turns after the first, with own changes between them. The user's commit stays.
	if r, err = p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: said[1] - 1}); err != nil || r.Git {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := read(id, "agents", "second", "mine", "both"); got != "0 - 3 0" {
		t.Errorf("two turns are undone: %s", got)
	}
	if out := observed(t, p.ask(id, "$ git log --format=%s%n%H; git fsck", "awaiting_user_input"), "run"); !strings.Contains(out, "my own") || !strings.Contains(out, committed.Commit) {
		t.Errorf("the user's commit: %s", out)
	}
	// Points of the past are as they were.
	one, err := p.client.CompareFile(t.Context(), client.Side{ID: id, Event: said[1] - 1}, client.Side{ID: id, Event: said[2] - 1}, "mine")
	if err != nil || one.Original == nil || *one.Original != "1" || one.Modified == nil || *one.Modified != "2" {
		t.Errorf("compared: %+v, %v", one, err)
	}
	fork := p.fork(id, api.ForkConversation{EventID: api.Some(points[4]), Files: api.Some("event")})
	if got := read(fork, "agents", "second", "mine", "both"); got != "2 2 2 1" {
		t.Errorf("the fork: %s", got)
	}

	// A file that both changed.
	p.ask(id, "$ echo agent > both; echo agent > agents; echo turn", "awaiting_user_input")
	p.box.until("a checkpoint", func() bool { return p.saved(id) })
	save(id, "both", "user")
	said = p.messages(id)
	undo := api.RestoreConversation{EventID: said[len(said)-1] - 1}
	_, err = p.client.Restore(t.Context(), id, undo)
	if got := conflict(t, err); got != "[both] [] 1" || read(id, "both", "agents") != "user agent" {
		t.Errorf("refused: %s, %s", got, read(id, "both", "agents"))
	}
	undo.OwnChanges = api.OwnKeep
	if r, err = p.client.Restore(t.Context(), id, undo); err != nil || read(id, "both", "agents") != "user 0" || r.Changed != 1 {
		t.Errorf("kept: %+v, %v, %s", r, err, read(id, "both", "agents"))
	}
	save(id, "agents", "user")
	_, err = p.client.UndoRestore(t.Context(), id, api.UndoRestore{})
	if got := conflict(t, err); got != "[agents] [] 1" {
		t.Errorf("undo is refused: %s", got)
	}
	if _, err = p.client.UndoRestore(t.Context(), id, api.UndoRestore{OwnChanges: api.OwnOverwrite}); err != nil || read(id, "both", "agents") != "user agent" {
		t.Errorf("undo: %v, %s", err, read(id, "both", "agents"))
	}
	undo.OwnChanges = api.OwnOverwrite
	if _, err = p.client.Restore(t.Context(), id, undo); err != nil || read(id, "both", "agents") != "0 0" {
		t.Errorf("overwritten: %v, %s", err, read(id, "both", "agents"))
	}
	undo.OwnChanges = "nonsense"
	if _, err = p.client.Restore(t.Context(), id, undo); statusOf(err) != 422 || !strings.Contains(err.Error(), "own_changes") {
		t.Errorf("a choice that does not exist: %v", err)
	}
	if _, err := l.person(t, "spender", obeys).client.RedoRestore(t.Context(), id, api.UndoRestore{OwnChanges: api.OwnKeep}); statusOf(err) != 404 {
		t.Errorf("by another user: %v", err)
	}

	// A git history that both changed.
	p.ask(id, "$ git add . && git commit -qm agents; echo turn", "awaiting_user_input")
	p.box.until("a checkpoint", func() bool { return p.saved(id) })
	save(id, "mine", "4")
	if _, err := p.client.Commit(t.Context(), id, api.GitCommit{Message: "another"}); err != nil {
		t.Fatal(err)
	}
	said = p.messages(id)
	undo = api.RestoreConversation{EventID: said[len(said)-1] - 1}
	_, err = p.client.Restore(t.Context(), id, undo)
	if got := conflict(t, err); got != "[] [.] 1" || !strings.Contains(err.Error(), "the git history of the workspace") {
		t.Errorf("refused: %s, %v", got, err)
	}
	undo.OwnChanges = api.OwnOverwrite
	if r, err = p.client.Restore(t.Context(), id, undo); err != nil || !r.Git || r.Changed != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if out := observed(t, p.ask(id, "$ git log --format=%s; git fsck", "awaiting_user_input"), "run"); strings.Contains(out, "another") || !strings.Contains(out, "my own") {
		t.Errorf("the history: %s", out)
	}
}

// saved reports whether the last turn has a checkpoint.
func (p *person) saved(id string) bool {
	p.t.Helper()
	all := p.logged(id)
	for i := len(all) - 1; i >= 0; i-- {
		switch all[i].Kind {
		case "checkpointed":
			return true
		case "turn_ended":
			return false
		}
	}
	return false
}

// In a folder, /undo keeps what the user changed with other programs, asks about files that both changed, and waits for other
// sessions in the folder.
func TestUndoInAFolder(t *testing.T) {
	t.Parallel()
	needLocal(t)
	d := newDesk(t, func(a llmtest.Asked) llmtest.Reply { return obeys(a) })
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	has := func(what string, want map[string]string) {
		t.Helper()
		for name, text := range want {
			if b, _ := os.ReadFile(filepath.Join(d.dir, name)); string(b) != text {
				t.Errorf("%s: %s is %q, want %q", what, name, b, text)
			}
		}
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b"}, args...)...)
		cmd.Dir = d.dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main", ".")
	write("mine", "0")
	write("both", "0")
	git("add", ".")
	git("commit", "-qm", "first")
	s := d.session(100, 30, "--sandbox", "local", "--yes")
	s.shows("Describe a task")
	s.enter("$ echo 1 > agents; echo all' 'made")
	s.expect("all made")
	s.shows("> Describe a task")
	write("mine", "user") // no request tells the server of it
	git("commit", "-qam", "my own")
	s.enter("$ echo 2 > agents; echo 2 > both; echo all' 'changed")
	s.expect("all changed")
	s.shows("> Describe a task")
	s.enter("/undo")
	s.shows("restored 2 files", "> $ echo 2")
	has("undone", map[string]string{"agents": "1\n", "both": "0", "mine": "user"})
	if log := git("log", "--format=%s"); log != "my own\nfirst" {
		t.Errorf("the user's commit: %s", log)
	}
	s.press(ctrlC)
	s.enter("/redo")
	s.shows("undid the restore of 2 files")
	has("redone", map[string]string{"agents": "2\n", "both": "2\n", "mine": "user"})
	other := d.session(100, 30, "--sandbox", "local", "--yes")
	other.shows("Describe a task")
	other.enter("$ echo bus' 'y; while [ ! -e go ]; do sleep 0.1; done; rm go; echo fre' 'e")
	other.expect("bus y")
	s.enter("/undo")
	s.shows("is working in")
	write("go", "")
	other.expect("fre e")
	other.shows("> Describe a task")
	other.press(ctrlD)
	other.ends(cli.ExitDone)
	write("both", "user")
	s.enter("/undo")
	s.shows("you changed these files too: both", "❯ Keep my versions", "Restore these files too")
	s.press("\x1b") // Esc cancels
	s.shows("> Describe a task")
	has("cancelled", map[string]string{"agents": "2\n", "both": "user"})
	s.enter("/undo")
	s.shows("❯ Keep my versions")
	s.press("\r")
	s.shows("restored 1 file and the conversation", "> $ echo 2")
	has("kept", map[string]string{"agents": "1\n", "both": "user", "mine": "user"})
	s.press(ctrlC)
	s.press(ctrlD)
	s.ends(cli.ExitDone)

	// In a terminal that cannot be drawn on, the choice is an argument.
	d.env = append(d.env, "TERM=dumb")
	plain := onScreen(t, d.command(d.args("session", "-c", "--sandbox", "local", "--yes")...))
	plain.expect("> ")
	plain.enter("$ echo 3 > agents; echo all' 'again")
	plain.expect("all again")
	plain.expect("> ")
	write("agents", "user")
	plain.enter("/undo")
	plain.expect("/undo overwrite")
	plain.enter("/undo nonsense")
	plain.expect("use keep or overwrite")
	plain.enter("/undo overwrite")
	plain.expect("the message was:")
	has("overwritten", map[string]string{"agents": "1\n", "both": "user", "mine": "user"})
	plain.press(ctrlD)
	plain.ends(cli.ExitDone)
}

// Files of an attempt are not restored while its tests run: the result would be that of a mix.
func TestRestoreWhileTestsRun(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys, `"max_budget_per_task":5`)
	t.Cleanup(p.dropAll)
	id := p.create(attemptsRepository)
	p.follow(id, 0, agentIs("awaiting_user_input"))
	in := api.StartAttempts{Task: "$ echo new > more", Attempts: []api.AttemptSpec{{}, {}}, TestCommand: api.Some("while [ ! -e go ]; do sleep 0.1; done")}
	if _, err := p.client.StartAttempts(t.Context(), id, "", in); err != nil {
		t.Fatal(err)
	}
	list := p.attempted(p.client, id, "running tests", func(list []api.Attempt) bool {
		return len(list) == 2 && list[0].Test != nil && list[0].Test.State == "running"
	})
	back := func(attempt int) (api.Restored, error) {
		id := list[attempt].ConversationID
		said := p.messages(id)
		return p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: said[len(said)-1] - 1})
	}
	p.box.until("the restore is refused", func() bool { // before the tests begin, it is not
		_, err := back(1)
		return statusOf(err) == 409 && strings.Contains(err.Error(), "tests of this attempt are running")
	})
	for _, a := range list {
		if _, err := p.client.SaveFile(t.Context(), a.ConversationID, "go", "on", ""); err != nil {
			t.Fatal(err)
		}
	}
	p.attempted(p.client, id, "test results", tested(2))
	if r, err := back(0); err != nil || r.Changed != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
