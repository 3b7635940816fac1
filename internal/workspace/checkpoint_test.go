package workspace_test

import (
	"context"
	"errors"
	"fmt"
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
		return append([]session.Payload{session.UserSaid{Text: name}}, session.TurnBegan{}), nil
	})
	r.run(name, text)
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

// restore restores a checkpoint and returns the one with the state before.
func (r *rig) restore(number int) int {
	r.t.Helper()
	before := 0
	err := r.keeper.Restore(r.t.Context(), restoring(number, func(e session.Restored) error {
		before = e.Before
		return nil
	}))
	if err != nil {
		r.t.Fatal(err)
	}
	return before
}

// restoring is a restore that nothing forbids.
func restoring(number int, record func(session.Restored) error) workspace.Restore {
	return workspace.Restore{ID: id, Event: session.Restored{Action: session.RestorePoint, Point: 1, Files: true, Checkpoint: number},
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
	undo := r.restore(all[0].Checkpoint)
	if got := r.run("l3", listing); got != first || !strings.Contains(first, "./a:one") {
		t.Errorf("restored: %q, want %q", got, first)
	}
	if got := r.run("owner", "touch mine && stat -c %u:%g mine a d d/b d/link | sort -u | wc -l; rm mine"); got != "1" {
		t.Errorf("restored files have another owner: %s", got)
	}
	r.update(func(s session.State) ([]session.Payload, error) { return s.Stop("enough") })
	r.until("the sandbox ends", func() bool { return !r.running() })
	r.restart()
	redo := r.restore(undo)
	if r.running() {
		t.Error("the restore started the sandbox")
	}
	changes, err := r.keeper.Compare(t.Context(), workspace.Files{ID: id}, workspace.Files{ID: id, Checkpoint: redo})
	if got := fmt.Sprint(changes); err != nil || !strings.Contains(got, "{a modified 4 4}") || !strings.Contains(got, "{c deleted 4 0}") || !strings.Contains(got, "{d/b added 0 2}") {
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
	if err := r.keeper.Restore(t.Context(), restoring(99, nil)); !errors.Is(err, sandbox.ErrNoCheckpoint) {
		t.Errorf("a checkpoint that does not exist: %v", err)
	}
	numbers, err := r.keeper.Checkpoints(t.Context(), id)
	if err != nil || len(numbers) < 3 || numbers[0] != 1 {
		t.Fatalf("%v, %v", numbers, err)
	}
	r.restore(1) // before the first turn there was nothing
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
	first := r.checkpoints()[0].Checkpoint
	refused := errors.New("refused")
	if err := r.keeper.Restore(t.Context(), restoring(first, func(session.Restored) error { return refused })); !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if got := r.run("l1", "cat a"); got != "two" {
		t.Errorf("after a restore that was not recorded: %q", got)
	}
	not := restoring(first, nil)
	not.May = func(context.Context) error { return refused }
	if err := r.keeper.Restore(t.Context(), not); !errors.Is(err, refused) {
		t.Fatal(err)
	}

	// As if the process died before the event: nothing comes after the panic.
	func() {
		defer func() { _ = recover() }()
		_ = r.keeper.Restore(t.Context(), restoring(first, func(session.Restored) error { panic("dead") }))
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
	if len(got) != 1 || got[0].Checkpoint != first || got[0].Before == 0 || got[0].Changed != 1 {
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
