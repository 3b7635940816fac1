package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/llm/llmtest"
	"deckhand/internal/sandbox/docker/dockertest"
)

// checkpointed waits until there are so many checkpoints, and returns their events.
func (b *box) checkpointed(c *client.Client, id string, n int) (events []int64) {
	b.t.Helper()
	b.until(fmt.Sprint(n, " checkpoints"), func() bool {
		got, err := c.Checkpoints(b.t.Context(), id)
		if err != nil {
			b.t.Fatal(err)
		}
		events = nil
		for _, p := range got.Checkpoints {
			events = append(events, p.EventID)
		}
		return len(events) >= n
	})
	return events
}

// Files and the conversation are restored to the end of a turn, undone, redone, forked and compared.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", obeys)
	id := p.begin("$ echo ONE > kept; mkdir d; echo x > d/f")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	p.box.checkpointed(p.client, id, 1)
	p.ask(id, "$ echo TWO > kept; rm -r d; echo new > more", "awaiting_user_input")
	points := p.box.checkpointed(p.client, id, 2)
	files := func(id string) string {
		t.Helper()
		out := observed(t, p.ask(id, "$ cat kept; ls; echo", "awaiting_user_input"), "run")
		for _, name := range []string{"ONE", "TWO", "THREE"} {
			if strings.Contains(out, name) {
				return name + fmt.Sprint(strings.Contains(out, "more"))
			}
		}
		return out
	}
	check := func(what string, got api.Restored, err error, undo, redo bool) {
		t.Helper()
		if err != nil || !got.Files || got.Changed == 0 || got.CanUndo != undo || got.CanRedo != redo {
			t.Fatalf("%s: %+v, %v", what, got, err)
		}
	}
	r, err := p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[0]})
	check("restore", r, err, true, false)
	if got := files(id); got != "ONEfalse" {
		t.Errorf("restored: %s", got)
	}
	if s := p.shown(); !strings.Contains(s, "restored the files of the workspace") || !strings.Contains(s, "echo TWO") {
		t.Errorf("the model is shown %s", s)
	}
	r, err = p.client.UndoRestore(t.Context(), id, api.UndoRestore{})
	check("undo", r, err, false, true)
	if got := files(id); got != "TWOtrue" {
		t.Errorf("undone: %s", got)
	}
	r, err = p.client.RedoRestore(t.Context(), id, api.UndoRestore{})
	check("redo", r, err, true, false)
	if got := files(id); got != "ONEfalse" {
		t.Errorf("redone: %s", got)
	}
	if _, err := p.client.RedoRestore(t.Context(), id, api.UndoRestore{}); statusOf(err) != 409 {
		t.Errorf("nothing to redo: %v", err)
	}
	if _, err := p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: 100_000}); statusOf(err) != 422 {
		t.Errorf("no such event: %v", err)
	}

	// The last message of a turn has the files of its end, and a call before it those of the turn before.
	one, err := p.client.CompareFile(t.Context(), client.Side{ID: id, Event: points[0] - 1}, client.Side{ID: id, Event: points[1] - 1}, "kept")
	if err != nil || one.Original == nil || *one.Original != "ONE\n" || one.Modified == nil || *one.Modified != "TWO\n" {
		t.Errorf("within turns: %+v, %v", one, err)
	}

	// With the conversation, the model does not see what came after.
	r, err = p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[1], Conversation: api.Some(true)})
	check("conversation", r, err, true, false)
	if got := files(id); got != "TWOtrue" {
		t.Errorf("restored: %s", got)
	}
	if s := p.shown(); !strings.Contains(s, "echo TWO") || strings.Contains(s, "cat kept; ls; echo") && strings.Count(s, "cat kept; ls; echo") > 2 {
		t.Errorf("the model is shown %s", s)
	}

	// A fork begins with the files of its point, and is compared with the original.
	other := p.fork(id, api.ForkConversation{EventID: api.Some(points[0]), Files: api.Some("event")})
	if got := files(other); got != "ONEfalse" {
		t.Errorf("the fork: %s", got)
	}
	diff, err := p.client.Compare(t.Context(), client.Side{ID: id}, client.Side{ID: other})
	if got := comparedNames(diff); err != nil || got != "d/f added 0 2 +1-0, kept modified 4 4 +1-1, more deleted 4 0 +0-1" {
		t.Errorf("compared: %s, %v", got, err)
	}
	one, err = p.client.CompareFile(t.Context(), client.Side{ID: id, Event: points[0]}, client.Side{ID: id, Event: points[1]}, "kept")
	if err != nil || one.Original == nil || *one.Original != "ONE\n" || one.Modified == nil || *one.Modified != "TWO\n" {
		t.Errorf("one file: %+v, %v", one, err)
	}
	one, err = p.client.CompareFile(t.Context(), client.Side{ID: id, Event: points[0]}, client.Side{ID: id, Event: points[1]}, "../../meta.json")
	if err != nil || one.Original != nil || one.Modified != nil {
		t.Errorf("a file outside: %+v, %v", one, err)
	}

	// Another user sees nothing of it.
	stranger := l.person(t, "spender", obeys)
	for what, err := range map[string]error{
		"list":    second(stranger.client.Checkpoints(t.Context(), id)),
		"restore": second(stranger.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[0]})),
		"undo":    second(stranger.client.UndoRestore(t.Context(), id, api.UndoRestore{})),
		"compare": second(stranger.client.Compare(t.Context(), client.Side{ID: id}, client.Side{ID: id})),
		"file":    second(stranger.client.CompareFile(t.Context(), client.Side{ID: id}, client.Side{ID: id}, "kept")),
	} {
		if statusOf(err) != 404 {
			t.Errorf("%s by another user: %v", what, err)
		}
	}
}

// A server that is killed while it restores leaves one of the two states.
func TestKilledWhileRestoring(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	args := withSandbox(t, "local")
	b, process, id := killable(t, args, "$ mkdir many; for i in $(seq 600); do echo old > many/$i; done; echo all' 'made")
	dir := b.dir
	points := b.checkpointed(b.client, id, 1)
	if err := b.client.Say(t.Context(), id, "$ for i in $(seq 600); do echo new > many/$i; done; mkdir extra; echo new > extra/f; echo all' 'changed", ""); err != nil {
		t.Fatal(err)
	}
	b.said(id, points[0], "all changed")
	points = b.checkpointed(b.client, id, 2)
	box := filepath.Join(dir, "boxes", id)
	journal := filepath.Join(box, "checkpoints", "restoring")
	seen := map[string]int{}
	now := "new"
	for round := range 8 {
		asked := make(chan error, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		go func() {
			_, err := b.client.Restore(ctx, id, api.RestoreConversation{EventID: points[round%2]})
			asked <- err
		}()
		for looks, over := 0, false; !over; { // rounds are killed at different moments
			if _, err := os.Lstat(journal); err == nil {
				looks++
			}
			over = looks > round*40
			select {
			case err := <-asked:
				over = true
				asked <- err
			default:
			}
		}
		kill(process)
		<-asked
		cancel()
		unfinished := 0
		if _, err := os.Lstat(journal); err == nil {
			unfinished = 1
		}
		b, process = spawn(t, dir, args...)
		text := map[string]int{}
		for i := range 600 {
			body, err := os.ReadFile(filepath.Join(box, "ws", "many", fmt.Sprint(i+1)))
			if err != nil {
				t.Fatal(err)
			}
			text[strings.TrimSpace(string(body))]++
		}
		if _, err := os.Stat(filepath.Join(box, "ws", "extra", "f")); len(text) != 1 || (err == nil) != (text["new"] > 0) {
			t.Errorf("round %d: %v, extra: %v", round, text, err)
		}
		// Each completed restore is recorded, even if the server died before recording it.
		if text[now] == 0 {
			now = map[string]string{"old": "new", "new": "old"}[now]
			seen["restored"]++
		}
		b.until("the restores are recorded", func() bool { return b.restores(id) == seen["restored"] })
		t.Logf("round %d: unfinished %d, then %v", round, unfinished, text)
		seen["unfinished"] += unfinished
	}
	if seen["unfinished"] == 0 {
		t.Error("no restore was interrupted")
	}
	if err := b.client.Say(t.Context(), id, "$ cat many/* | sort | uniq -c | wc -l; echo still' 'works", ""); err != nil {
		t.Fatal(err)
	}
	b.said(id, points[1], "still works")
	b.remove(id)
}

// restores counts the recorded restores.
func (b *box) restores(id string) (n int) {
	b.t.Helper()
	page, err := b.client.Events(b.t.Context(), id, url.Values{"reverse": {"true"}, "limit": {"100"}})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range page.Events {
		if e.Kind == "restored" {
			n++
		}
	}
	return n
}

// The other drivers keep checkpoints too, and a restarted server can undo a restore of a killed one.
func TestCheckpointsByDriver(t *testing.T) {
	t.Parallel()
	for _, driver := range []string{"docker", "host"} {
		t.Run(driver, func(t *testing.T) {
			t.Parallel()
			args := withSandbox(t, driver)
			if driver == "docker" {
				args = append(args, "--docker-host", dockertest.Engine(t), "--sandbox-image", dockertest.BusyboxImage(t))
			}
			b, process, id := killable(t, args, "$ echo ONE > kept; mkdir d; echo x > d/f; echo all' 'made")
			points := b.checkpointed(b.client, id, 1)
			// The files of the first turn are the agent's, also if checkpoint 1 was created after them.
			if r, err := b.client.Restore(t.Context(), id, api.RestoreConversation{EventID: 1}); err != nil || r.Changed != 3 {
				t.Errorf("to the beginning: %+v, %v", r, err)
			}
			if r, err := b.client.UndoRestore(t.Context(), id, api.UndoRestore{}); err != nil || r.Changed != 3 {
				t.Errorf("and back: %+v, %v", r, err)
			}
			if err := b.client.Say(t.Context(), id, "$ echo TWO > kept; rm -r d; echo new > more; echo all' 'changed", ""); err != nil {
				t.Fatal(err)
			}
			b.said(id, points[0], "all changed")
			points = b.checkpointed(b.client, id, 2)
			differs := func(event int64) string {
				t.Helper()
				got, err := b.client.Compare(t.Context(), client.Side{ID: id, Event: event}, client.Side{ID: id})
				if err != nil {
					t.Fatal(err)
				}
				return comparedNames(got)
			}
			const all = "d/f deleted 2 0 +0-1, kept modified 4 4 +1-1, more added 0 4 +1-0"
			if got := differs(points[0]); got != all {
				t.Errorf("the second turn: %s", got)
			}
			if r, err := b.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[0]}); err != nil || !r.CanUndo || r.Changed != 4 {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := differs(points[0]); got != "" {
				t.Errorf("restored: %s", got)
			}
			kill(process)
			b, _ = spawn(t, b.dir, args...)
			if r, err := b.client.UndoRestore(t.Context(), id, api.UndoRestore{}); err != nil || !r.CanRedo {
				t.Fatalf("%+v, %v", r, err)
			}
			if got := differs(points[0]); got != all {
				t.Errorf("undone: %s", got)
			}
			fork, err := b.client.Fork(t.Context(), id, "", api.ForkConversation{EventID: api.Some(points[0]), Files: api.Some("event")})
			if driver == "host" {
				if statusOf(err) != 409 {
					t.Errorf("a fork without a sandbox: %+v, %v", fork, err)
				}
			} else if err != nil {
				t.Errorf("a fork: %v", err)
			} else {
				got, err := b.client.Compare(t.Context(), client.Side{ID: fork.ConversationID}, client.Side{ID: id})
				if err != nil || comparedNames(got) != all {
					t.Errorf("the fork: %+v, %v", got, err)
				}
				b.remove(fork.ConversationID)
			}
			if err := b.client.Say(t.Context(), id, "$ cat kept more; echo still' 'works", ""); err != nil {
				t.Fatal(err)
			}
			if got := b.said(id, points[1], "still works"); !strings.Contains(got, "TWO") {
				t.Errorf("%s", got)
			}
			b.remove(id)
			if driver == "docker" {
				b.until("the containers and volumes go", func() bool { return !dockertest.Sandboxes(t)[id] })
			}
		})
	}
}

// Files are not restored while a delegated conversation, which shares them, is working.
func TestRestoreWhileADelegateWorks(t *testing.T) {
	t.Parallel()
	needsCopies(t)
	l := newLab(t, forkConfig)
	p := l.person(t, "forker", func(a llmtest.Asked) llmtest.Reply {
		if last := a.Messages[len(a.Messages)-1]; last.Text == "delegate" {
			return calls(a, use("delegate", map[string]any{"agent": "CodeActAgent", "inputs": map[string]any{"task": "$ echo child > kept"}}))
		}
		return obeys(a)
	})
	id := p.begin("$ echo ONE > kept")
	p.follow(id, 0, agentIs("awaiting_user_input"))
	points := p.box.checkpointed(p.client, id, 1)
	p.ask(id, "delegate", "awaiting_user_input")
	child := ""
	page, err := p.client.Conversations(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range page.Results {
		if c.ConversationID != id {
			child = c.ConversationID
		}
	}
	at := p.last(child)
	if err := p.client.Say(t.Context(), child, "$ echo begun; while [ ! -e go ]; do sleep 0.1; done", ""); err != nil {
		t.Fatal(err)
	}
	p.follow(child, at, agentIs("running"))
	if r, err := p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[0]}); statusOf(err) != 409 || !strings.Contains(err.Error(), child) {
		t.Errorf("while the child works: %+v, %v", r, err)
	}
	if _, err := p.client.Stop(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	p.box.until("the child stops", func() bool {
		_, err = p.client.Restore(t.Context(), id, api.RestoreConversation{EventID: points[0]})
		return err == nil
	})
}
