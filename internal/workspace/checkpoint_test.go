package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
	"deckhand/internal/workspace"
)

// turn runs a command as a turn of the agent, and waits for the checkpoint after it if there is one.
func (r *rig) turn(name, text string, changes bool) {
	r.t.Helper()
	before := len(r.checkpoints())
	r.update(func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.UserSaid{Text: name}}, nil
	})
	r.update(func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.TurnBegan{}, session.ModelAsked{Call: "ask " + name, UpTo: s.Last},
			session.ModelAnswered{Call: "ask " + name, ToolCalls: []session.ToolCall{{ID: name, Name: "run"}}}, session.ToolCalled{ToolCall: session.ToolCall{ID: name, Name: "run"}}}, nil
	})
	r.run(name, text)
	r.update(func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.ToolReturned{ID: name, Cause: s.Open[0].Number}}, nil
	})
	if n := len(r.checkpoints()); n > before+1 { // one of the beginning is possible
		r.t.Errorf("%d checkpoints before the end of the turn", n-before)
	}
	before = len(r.checkpoints())
	r.update(func(s session.State) ([]session.Payload, error) {
		return s.EndTurn(s.Claim, session.TurnEnded{UpTo: max(s.Shown, s.Seen), State: session.AgentAwaitingUser})
	})
	if changes {
		r.until("the checkpoint of "+name, func() bool { return len(r.checkpoints()) > before })
	}
}

func (r *rig) checkpoints() (out []session.Checkpointed) {
	r.t.Helper()
	for e, err := range r.log.Read(r.t.Context(), id, 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		if c, ok := e.Payload.(session.Checkpointed); ok {
			out = append(out, c)
		}
	}
	return out
}

// restore undoes a span and returns the one that undoes the restore.
func (r *rig) restore(from, to int) workspace.Span {
	r.t.Helper()
	var back workspace.Span
	err := r.keeper.Restore(r.t.Context(), restoring(from, to, func(e session.Restored) error {
		back = workspace.Span{From: e.Before, To: e.Checkpoint}
		r.update(func(s session.State) ([]session.Payload, error) { return []session.Payload{e}, nil })
		return nil
	}))
	if err != nil {
		r.t.Fatal(err)
	}
	return back
}

// restoring is a restore that nothing forbids.
func restoring(from, to int, record func(session.Restored) error) workspace.Restore {
	return workspace.Restore{ID: id, Event: session.Restored{Action: session.RestorePoint, Point: 1, Files: true},
		Spans:  func(context.Context) ([]workspace.Span, error) { return []workspace.Span{{From: from, To: to}}, nil },
		May:    func(context.Context) error { return nil },
		Record: func(_ context.Context, e session.Restored, _ []string) error { return record(e) }}
}

const listing = "cd /workspace; grep -r . . | sort"

// After each turn that changed files there is a checkpoint, which can be restored while the sandbox runs, while it is
// stopped, and by another server.
func TestCheckpoints(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a; mkdir d; echo x > d/b; ln -s /etc/passwd d/link", true)
	first := r.run("l1", listing)
	r.turn("2", "echo two > a; rm -r d; echo new > c", true)
	second := r.run("l2", listing)
	r.turn("3", "cat a", false)
	all := r.checkpoints()
	if len(all) != 2 || all[1].Changed != 5 || all[1].UpTo == 0 {
		t.Fatalf("%+v", all)
	}
	undo := r.restore(all[0].Checkpoint, all[1].Checkpoint)
	if got := r.run("l3", listing); got != first || !strings.Contains(first, "./a:one") {
		t.Errorf("restored: %q, want %q", got, first)
	}
	if got := r.run("owner", "touch mine && stat -c %u:%g mine a d d/b d/link | sort -u | wc -l; rm mine"); got != "1" {
		t.Errorf("restored files have another owner: %s", got)
	}
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the sandbox ends", func() bool { return !r.running() })
	r.restart()
	redo := r.restore(undo.From, undo.To).From
	if r.running() {
		t.Error("the restore started the sandbox")
	}
	changes, err := r.keeper.Compare(t.Context(), workspace.Files{ID: id}, workspace.Files{ID: id, Checkpoint: redo})
	if got := fmt.Sprint(changes); err != nil || !strings.Contains(got, "{a  modified 4 4 1 1 ") || !strings.Contains(got, "{c  deleted 4 0 0 1 ") || !strings.Contains(got, "{d/b  added 0 2 1 0 ") {
		t.Errorf("%s, %v", got, err)
	}
	text, found, err := r.keeper.FileAt(t.Context(), workspace.Files{ID: id, Checkpoint: redo}, "a", 100)
	if err != nil || !found || string(text) != "one\n" {
		t.Errorf("%q, %v, %v", text, found, err)
	}
	r.update(session.State.Start)
	r.claim()
	if got := r.run("l4", listing); got != second {
		t.Errorf("undone: %q, want %q", got, second)
	}
	if err := r.keeper.Restore(t.Context(), restoring(99, 100, nil)); !errors.Is(err, sandbox.ErrNoCheckpoint) {
		t.Errorf("a checkpoint that does not exist: %v", err)
	}
	numbers, err := r.keeper.Checkpoints(t.Context(), id)
	if err != nil || len(numbers) < 3 || numbers[0] != 1 {
		t.Fatalf("%v, %v", numbers, err)
	}
	r.restore(1, r.checkpoints()[1].Checkpoint) // before the first turn there was nothing
	if got := r.run("l5", "ls -A /workspace"); got != "" {
		t.Errorf("at the beginning: %q", got)
	}
}

// A fork can begin with the files of an earlier point, and has the checkpoints of its origin.
func TestCopyAt(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a", true)
	r.turn("2", "echo two > a; echo b > b", true)
	at := r.checkpoints()[0].Checkpoint
	if err := r.keeper.CopyAt(t.Context(), id, fork, at, r.store); err != nil {
		t.Fatal(err)
	}
	if got := r.read("a"); got != "one\n" {
		t.Errorf("%q", got)
	}
	changes, err := r.keeper.Compare(t.Context(), workspace.Files{ID: id}, workspace.Files{ID: fork})
	if err != nil || len(changes) != 2 {
		t.Errorf("%v, %v", changes, err)
	}
	if got := r.run("l", "cat a"); got != "two" {
		t.Errorf("the original: %q", got)
	}
	if numbers, err := r.keeper.Checkpoints(t.Context(), fork); err != nil || len(numbers) < 3 {
		t.Errorf("%v, %v", numbers, err)
	}
}

// A restore that cannot be recorded is undone. If the server died after a restore, the next server records it once.
func TestRestoreIsRecorded(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a", true)
	r.turn("2", "echo two > a", true)
	first, second := r.checkpoints()[0].Checkpoint, r.checkpoints()[1].Checkpoint
	refused := errors.New("refused")
	if err := r.keeper.Restore(t.Context(), restoring(first, second, func(session.Restored) error { return refused })); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if got := r.run("l1", "cat a"); got != "two" {
		t.Errorf("after a restore that was not recorded: %q", got)
	}
	not := restoring(first, second, nil)
	not.May = func(context.Context) error { return refused }
	if err := r.keeper.Restore(t.Context(), not); !errors.Is(err, refused) {
		t.Fatal(err)
	}

	// As if the process died before the event: nothing comes after the panic.
	func() {
		defer func() { _ = recover() }()
		_ = r.keeper.Restore(t.Context(), restoring(first, second, func(session.Restored) error { panic("dead") }))
	}()
	restored := func() (out []session.Restored) {
		for e, err := range r.log.Read(t.Context(), id, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if x, ok := e.Payload.(session.Restored); ok {
				out = append(out, x)
			}
		}
		return out
	}
	if got := restored(); len(got) != 0 {
		t.Fatalf("%+v", got)
	}
	r.restart()
	for range 2 {
		r.keeper.Sweep(t.Context())
	}
	got := restored()
	if len(got) != 1 || got[0].Checkpoint <= got[0].Before || got[0].Before < second || got[0].Changed != 1 {
		t.Fatalf("%+v", got)
	}
	r.claim()
	if text := r.run("l2", "cat a"); text != "one" {
		t.Errorf("restored: %q", text)
	}
	// A server that died after the event and before the note was removed records nothing twice.
	r.update(func(s session.State) ([]session.Payload, error) { return s.Restore(got[0]) })
	if got := restored(); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// What people change between turns is in a checkpoint of its own, which belongs to no turn, wherever the change was made.
func TestChangesBetweenTurns(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a; echo 1 > own", true)
	turns := func() (out string) {
		for _, c := range r.checkpoints() {
			out += map[bool]string{true: "u", false: "a"}[c.BetweenTurns]
		}
		return out
	}
	if got := turns(); got != "a" {
		t.Fatalf("after a turn: %s", got)
	}
	r.run("terminal", "echo 2 > own") // as the terminal of the page does
	r.turn("2", "echo two > a", true)
	if got := turns(); got != "aua" {
		t.Fatalf("a change before the turn: %s", got)
	}
	all := r.checkpoints()
	if said := events[session.UserSaid](r); all[1].UpTo >= all[2].UpTo || len(said) != 2 {
		t.Errorf("%+v", all)
	}
	r.turn("3", "cat a", false)
	r.turn("4", "cat a", false)
	if got := turns(); got != "aua" {
		t.Fatalf("without changes: %s", got)
	}
	// A restarted server knows whose changes those are that it finds.
	r.run("idle", "echo 3 > own")
	r.restart()
	r.claim()
	r.turn("5", "echo five > a", true)
	if got := turns(); got != "auaua" {
		t.Fatalf("changes before a restart: %s", got)
	}
	// A turn that the server died in: what was changed is the agent's.
	r.update(func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.UserSaid{Text: "six"}, session.TurnBegan{}, session.ModelAsked{Call: "six", UpTo: s.Last},
			session.ModelAnswered{Call: "six", ToolCalls: []session.ToolCall{{ID: "six", Name: "run"}}}, session.ToolCalled{ToolCall: session.ToolCall{ID: "six", Name: "run"}}}, nil
	})
	r.run("six", "echo six > a")
	r.restart()
	r.claim()
	r.run("again", "true")
	r.until("the checkpoint", func() bool { return turns() == "auauaa" })

	// A restore is refused if people changed the same file, and what they changed is theirs afterwards.
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the sandbox ends", func() bool { return !r.running() })
	if err := os.WriteFile(filepath.Join(r.dir, string(id), "ws", "a"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	all = r.checkpoints()
	spans := restoring(all[3].Checkpoint, all[5].Checkpoint, func(session.Restored) error { return nil })
	var own *workspace.OwnError
	if err := r.keeper.Restore(t.Context(), spans); !errors.As(err, &own) || fmt.Sprint(own.Files) != "[a]" || own.Count != 1 {
		t.Fatalf("%v", err)
	}
	if got := turns(); got != "auauaau" {
		t.Errorf("after a refused restore: %s", got)
	}
	spans.Own = sandbox.OverwriteOwn
	if err := r.keeper.Restore(t.Context(), spans); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(r.dir, string(id), "ws", "a")); err != nil || string(got) != "two\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// The agent is stopped while a checkpoint is being made: that of the stop comes next, and before the sandbox ends.
func TestStoppedDuringACheckpoint(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a", true)
	r.update(func(s session.State) ([]session.Payload, error) {
		return []session.Payload{session.UserSaid{Text: "two"}, session.TurnBegan{}, session.ModelAsked{Call: "two", UpTo: s.Last},
			session.ModelAnswered{Call: "two", ToolCalls: []session.ToolCall{{ID: "two", Name: "run"}}}, session.ToolCalled{ToolCall: session.ToolCall{ID: "two", Name: "run"}}}, nil
	})
	r.run("two", "echo two > a")
	leave, err := r.keeper.HoldGate(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	leave()
	r.until("the sandbox ends", func() bool { return !r.running() })
	if got := r.checkpoints(); len(got) != 2 || got[1].BetweenTurns {
		t.Errorf("%+v", got)
	}
}

// A terminal that stays open changes files without a new use of the sandbox, and a comparison records nothing.
func TestChangesThroughOpenTerminal(t *testing.T) {
	r := newRig(t)
	r.claim()
	box, release, err := r.keeper.Use(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	typed := func(name, text string) {
		if _, err := box.Exec(t.Context(), sandbox.Command{ID: name, Text: text}, nil); err != nil {
			t.Fatal(err)
		}
	}
	r.turn("1", "echo one > a; echo 1 > own", true)
	typed("t1", "echo 2 > own")
	before := len(r.checkpoints())
	if _, err := r.keeper.Compare(t.Context(), workspace.Files{ID: id}, workspace.Files{ID: id, Checkpoint: 1}); err != nil {
		t.Fatal(err)
	}
	if n := len(r.checkpoints()); n != before {
		t.Errorf("a comparison recorded %d checkpoints", n-before)
	}
	typed("t2", "echo 3 > own")
	r.turn("2", "echo two > a", true)
	all := r.checkpoints()
	if n := len(all); n < 3 || !all[n-2].BetweenTurns || all[n-1].BetweenTurns || all[n-1].Mixed {
		t.Errorf("%+v", all)
	}
}

// The last turn may have no checkpoint yet when it is undone, so the spans are those after the current state was recorded.
func TestRestoreOfATurnWithoutACheckpoint(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a", true)
	r.run("2", "echo two > a") // no checkpoint follows
	before := r.checkpoints()
	restore := restoring(0, 0, func(session.Restored) error { return nil })
	restore.Spans = func(context.Context) ([]workspace.Span, error) {
		all := r.checkpoints()
		if len(all) != len(before)+1 {
			t.Fatalf("%d checkpoints when the spans are asked for, %d before", len(all), len(before))
		}
		return []workspace.Span{{From: all[len(all)-2].Checkpoint, To: all[len(all)-1].Checkpoint}}, nil
	}
	if err := r.keeper.Restore(t.Context(), restore); err != nil {
		t.Fatal(err)
	}
	if got := r.run("l", "cat a"); got != "one" {
		t.Errorf("restored: %q", got)
	}
}

// In the middle of a turn, what people change while the agent is paused or waits for an approval is theirs, and what the agent
// changed before is the agent's.
func TestChangesInATurn(t *testing.T) {
	r := newRig(t)
	r.claim()
	r.turn("1", "echo one > a", true)
	add := func(payloads ...session.Payload) {
		t.Helper()
		r.update(func(session.State) ([]session.Payload, error) { return payloads, nil })
	}
	call := func(name string) []session.Payload {
		c := session.ToolCall{ID: name, Name: "run"}
		return []session.Payload{session.ModelAsked{Call: "ask " + name, UpTo: r.state().Last}, session.ModelAnswered{Call: "ask " + name, ToolCalls: []session.ToolCall{c}}, session.ToolCalled{ToolCall: c}}
	}
	returns := func(name string) {
		t.Helper()
		r.update(func(s session.State) ([]session.Payload, error) {
			return []session.Payload{session.ToolReturned{ID: name, Cause: s.Open[0].Number}}, nil
		})
	}
	has := func(what, want string) session.Checkpointed {
		t.Helper()
		var all []session.Checkpointed
		got := ""
		r.until(what, func() bool {
			got, all = "", r.checkpoints()
			for _, c := range all {
				got += map[bool]string{true: "u", false: "a"}[c.BetweenTurns]
			}
			return len(got) >= len(want)
		})
		if got != want {
			t.Fatalf("%s: %s, want %s", what, got, want)
		}
		return all[len(all)-1]
	}
	add(session.UserSaid{Text: "two"})
	said := r.state().Last
	add(append([]session.Payload{session.TurnBegan{}}, call("2")...)...)
	r.run("2", "echo two > a")
	returns("2")
	add(session.Paused{AfterStep: true})
	agents := has("the pause", "aa")
	r.run("terminal", "echo mine > own")
	add(session.Resumed{})
	if own := has("the resumption", "aau"); own.UpTo < agents.UpTo || own.UpTo <= said {
		t.Errorf("own changes are those up to %d, the agent's up to %d, the turn began at %d", own.UpTo, agents.UpTo, said)
	}
	add(call("3")...)
	r.run("3", "echo three > a")
	returns("3")
	add(append(call("4"), session.ApprovalAsked{ID: "4"})...)
	has("the wait for an approval", "aaua")
	r.run("terminal 2", "echo mine again > own")
	add(session.ApprovalGiven{ID: "4", Approved: true})
	add(session.Claimed{By: "m"})
	has("the approval", "aauau")
	r.run("4", "echo four > a")
	returns("4")
	r.update(func(s session.State) ([]session.Payload, error) {
		return s.EndTurn(s.Claim, session.TurnEnded{UpTo: s.Last, State: session.AgentAwaitingUser})
	})
	has("the end of the turn", "aauaua")
}
