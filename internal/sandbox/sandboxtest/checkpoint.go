package sandboxtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

// checkpointTests are about earlier states of workspaces.
var checkpointTests = []test[Options]{
	{name: "Checkpoints", run: checkpoints},
	{name: "CheckpointsSinceTheBeginning", run: beginningCheckpoints},
	{name: "CheckpointsOfAHostileWorkspace", run: hostileCheckpoints},
	{name: "CheckpointsOfACopy", run: copiedCheckpoints},
	{name: "RestoreIsKnownUntilRecorded", run: unrecorded},
	{name: "RestoreKeepsOwnChanges", run: ownChanges},
}

// keeping starts a sandbox of a driver that keeps checkpoints; false if it does not.
func keeping(t *testing.T, o Options) (*box, sandbox.Checkpointer, bool) {
	t.Helper()
	d := driver(t, o, nil)
	c, ok := d.(sandbox.Checkpointer)
	if !ok {
		return nil, nil, false
	}
	return enter(t, o, d, sandbox.Spec{}), c, true
}

// take makes a checkpoint.
func take(t *testing.T, c sandbox.Checkpointer, h sandbox.Handle) sandbox.Checkpoint {
	t.Helper()
	got, err := c.Checkpoint(within(t), h)
	must(t, err)
	return got
}

func restoreTo(t *testing.T, c sandbox.Checkpointer, h sandbox.Handle, number int) sandbox.Restored {
	t.Helper()
	got, err := c.Restore(within(t), h, sandbox.RestoreParams{Number: number})
	must(t, err)
	return got
}

// listed writes changes in one line.
func listed(changes []sandbox.FileChange) string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s %s %d %d +%d -%d", c.Path, c.Status, c.Old, c.New, c.Added, c.Removed))
	}
	return strings.Join(out, ", ")
}

// treeListing shows all that is in the workspace.
const treeListing = "find . -mindepth 1 ! -path './.sandboxtest*' | sort | while read -r f; do ls -ld \"$f\" | awk '{print $1, $3, $4}'; echo \"$f\"; " +
	"if [ -h \"$f\" ]; then readlink \"$f\"; elif [ -f \"$f\" ]; then cat \"$f\"; fi; done"

// checkpoints: files are restored while the sandbox runs and while it is stopped, and by another server.
func checkpoints(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	h := stored(t, b.handle)
	none := take(t, c, h)
	if again := take(t, c, h); again.Changed != 0 || again.Number != none.Number {
		t.Errorf("of the same state: %+v, then %+v", none, again)
	}
	b.ok(t, "echo one > a; mkdir -p d/e; echo x > d/e/b; ln -s /etc/passwd d/link; chmod 751 d; echo '#!/bin/sh' > run; chmod 755 run; mkfifo pipe; echo secret > closed; chmod 0 closed")
	first := b.ok(t, treeListing)
	one := take(t, c, h)
	if one.Number <= none.Number || one.Changed != 8 || one.Bytes == 0 {
		t.Errorf("%+v", one)
	}
	b.ok(t, "echo two > a; rm -r d; echo new > 'c ü'; rm pipe; mkdir pipe; echo y > pipe/y; chmod 644 run")
	second := b.ok(t, treeListing)
	two := take(t, c, h)
	undo := restoreTo(t, c, h, one.Number)
	same(t, "the checkpoint before", undo.Before.Number, two.Number)
	same(t, "restored", b.ok(t, treeListing), first)
	b.ok(t, "echo mine > d/e/b; rm -f a; echo again > a") // the owner is the same
	must(t, b.driver.Stop(within(t), h))
	redo := restoreTo(t, c, h, two.Number)
	is(t, b.driver, map[string]bool{"box": false}) // and was not woken
	other := driver(t, o, nil)
	later := other.(sandbox.Checkpointer)
	list, err := later.Checkpoints(within(t), h)
	must(t, err)
	if !slices.Contains(list.Numbers, one.Number) || !slices.Contains(list.Numbers, redo.Before.Number) || list.Bytes == 0 {
		t.Errorf("%+v", list)
	}
	changes, err := later.Compare(within(t), sandbox.CheckpointOf{Handle: h, Number: one.Number}, sandbox.CheckpointOf{Handle: h, Number: two.Number})
	must(t, err)
	same(t, "the changes", listed(changes), "a modified 4 4 +1 -1, c ü added 0 4 +1 -0, d/e/b deleted 2 0 +0 -1, d/link deleted 0 0 +0 -1, pipe deleted 0 0 +0 -0, "+
		"pipe/y added 0 2 +1 -0, run modified 10 10 +0 -0")
	for path, want := range map[string]string{"a": "one\n", "/d/e/b": "x\n", "d/link": "/etc/passwd", "d": "-", "../../etc/passwd": "-", "none": "-"} {
		text, found, err := later.CheckpointFile(within(t), sandbox.CheckpointOf{Handle: h, Number: one.Number}, path, 100)
		must(t, err)
		if got := string(text); found != (want != "-") || found && got != want {
			t.Errorf("%s is %q, %v", path, got, found)
		}
	}
	_, err = later.Restore(within(t), h, sandbox.RestoreParams{Number: 99})
	fails(t, "a checkpoint that does not exist", err, sandbox.ErrNoCheckpoint)
	_, err = later.Checkpoint(within(t), sandbox.Handle{Driver: h.Driver, ID: "unknown"})
	fails(t, "a checkpoint of an unknown sandbox", err, sandbox.ErrGone)
	_, err = later.Restore(within(t), sandbox.Handle{Driver: h.Driver, ID: "unknown"}, sandbox.RestoreParams{Number: 1})
	fails(t, "a restore of an unknown sandbox", err, sandbox.ErrGone)
	b = enter(t, o, other, sandbox.Spec{})
	same(t, "restored while it was stopped", b.ok(t, treeListing), second)
	restoreTo(t, later, h, none.Number)
	same(t, "the beginning", b.ok(t, "ls -A"), "")
	must(t, other.Destroy(within(t), h))
	_, err = later.Checkpoints(within(t), h)
	fails(t, "checkpoints of a destroyed sandbox", err, sandbox.ErrGone)
	again := enter(t, o, other, sandbox.Spec{})
	if list, err := later.Checkpoints(within(t), again.handle); err != nil || len(list.Numbers) > 1 {
		t.Errorf("a new sandbox has the checkpoints of an old one: %+v, %v", list, err)
	}
}

// beginningCheckpoints: Verified of the first checkpoint with files is the time of the last checkpoint without files. Callers decide by it
// who made the files.
func beginningCheckpoints(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	take(t, c, b.handle)
	b.ok(t, "true")
	seen := time.Now()
	none := take(t, c, b.handle)
	changes := time.Now()
	b.ok(t, "echo x > a")
	one := take(t, c, b.handle)
	if one.Previous != none.Number || one.Changed != 1 || one.Verified.Before(seen) || one.Verified.After(changes) {
		t.Errorf("%+v after %+v, want it verified between %s and %s", one, none, seen, changes)
	}
}

// hostileCheckpoints: names and links that lead elsewhere, and folders that become links, change nothing outside.
func hostileCheckpoints(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	b.ok(t, "mkdir -p d out; echo in > d/f; echo keep > out/f; ln -s ../out d/link; mkdir \"$(printf 'new\\nline')\"; echo x > \"$(printf 'new\\nline')\"/'..  ..'; truncate -s 5G huge")
	first := b.ok(t, "find d out new* | sort; cat d/f out/f; ls -l huge | awk '{print $5}'")
	one := take(t, c, b.handle)
	b.ok(t, "rm -r d; ln -s out d; rm -r new*; rm huge")
	got := restoreTo(t, c, b.handle, one.Number)
	if len(got.Kept) > 0 {
		t.Errorf("not restored: %q", got.Kept)
	}
	same(t, "restored", b.ok(t, "find d out new* | sort; cat d/f out/f; ls -l huge | awk '{print $5}'"), first)
	same(t, "what a link led to", b.ok(t, "cat out/f; ls out"), "keep\nf")
	if got := b.sh(t, "find / -xdev \\( -name '*.meta' -o -name restoring \\) -path '*checkpoints*' 2>/dev/null"); o.Confined && strings.TrimSpace(got.Output) != "" {
		t.Errorf("the sandbox sees its checkpoints: %s", got.Output)
	}
}

// copiedCheckpoints: a copy has the checkpoints of its original, and goes its own way.
func copiedCheckpoints(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	s, ok := b.driver.(sandbox.Snapshotter)
	if !ok {
		return
	}
	b.ok(t, "echo one > a")
	one := take(t, c, b.handle)
	b.ok(t, "echo two > a; echo b > b")
	must(t, s.Snapshot(within(t), b.handle, "copy"))
	copied := sandbox.Handle{Driver: b.handle.Driver, ID: "copy"}
	restoreTo(t, c, copied, one.Number)
	from, to := take(t, c, b.handle), take(t, c, copied)
	changes, err := c.Compare(within(t), sandbox.CheckpointOf{Handle: b.handle, Number: from.Number}, sandbox.CheckpointOf{Handle: copied, Number: to.Number})
	must(t, err)
	same(t, "the changes", listed(changes), "a modified 4 4 +1 -1, b deleted 2 0 +0 -1")
	must(t, b.driver.Destroy(within(t), b.handle))
	other := enter(t, o, b.driver, sandbox.Spec{ID: "copy"})
	same(t, "the copy", other.ok(t, "cat a"), "one")
	other.ok(t, "echo three > a")
	restoreTo(t, c, copied, one.Number)
	same(t, "the copy, restored", other.ok(t, "cat a"), "one")
}

// unrecorded: a restore with a note is known, also to another server, until it is recorded.
func unrecorded(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	b.ok(t, "echo one > a")
	one := take(t, c, b.handle)
	b.ok(t, "echo two > a")
	got, err := c.Restore(within(t), b.handle, sandbox.RestoreParams{Number: one.Number, Note: []byte("note")})
	must(t, err)
	other := driver(t, o, nil)
	later := other.(sandbox.Checkpointer)
	list, err := later.Unrecorded(within(t), anyID)
	must(t, err)
	if len(list) != 1 || list[0].Handle.ID != "box" || string(list[0].Note) != "note" || list[0].Before.Number != got.Before.Number || list[0].Changed != 1 {
		t.Errorf("%+v", list)
	}
	must(t, later.Recorded(within(t), b.handle))
	if list, err = later.Unrecorded(within(t), anyID); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	same(t, "restored", b.ok(t, "cat a"), "one")
}

// ownChanges: what others changed between and after spans stays, and they are asked about files that both changed.
func ownChanges(t *testing.T, o Options) {
	b, c, ok := keeping(t, o)
	if !ok {
		return
	}
	b.ok(t, "echo 0 > agents; echo 0 > mine; echo 0 > both; mkdir -p r/.git/refs r/.git/objects; echo 0 > r/.git/HEAD; echo 0 > r/.git/refs/main")
	start := take(t, c, b.handle)
	b.ok(t, "echo 1 > agents; echo 1 > both; mkdir new; echo 1 > new/agents; echo 1 > r/.git/FETCH_HEAD")
	one := take(t, c, b.handle)
	if one.Previous != start.Number || one.Verified.IsZero() {
		t.Errorf("%+v after %+v", one, start)
	}
	b.ok(t, "echo user > mine; echo user > new/mine; echo user > r/.git/refs/main")
	between := take(t, c, b.handle)
	b.ok(t, "echo 2 > agents")
	two := take(t, c, b.handle)
	b.ok(t, "echo user > both")
	spans := []sandbox.Span{{From: start.Number, To: one.Number}, {From: between.Number, To: two.Number}}
	undo := func(own sandbox.Own, spans ...sandbox.Span) sandbox.Restored {
		t.Helper()
		got, err := c.Restore(within(t), b.handle, sandbox.RestoreParams{Spans: spans, Own: own, Note: []byte("note")})
		must(t, err)
		return got
	}
	const all = "cat agents mine both r/.git/refs/main; find new -type f | sort"
	before := b.ok(t, all)
	got := undo(sandbox.RefuseOwn, spans...)
	same(t, "changed by both", fmt.Sprint(got.Own), "{[both] [] 1}")
	same(t, "refused", b.ok(t, all), before)
	got = undo(sandbox.KeepOwn, spans...)
	same(t, "kept", b.ok(t, all), "0\nuser\nuser\nuser\nnew/mine")
	same(t, "changed", fmt.Sprint(got.Changed, got.Git, got.Target > got.Before.Number), "2 false true")
	undo(sandbox.RefuseOwn, sandbox.Span{From: got.Before.Number, To: got.Target})
	same(t, "undone", b.ok(t, all), before)
	got = undo(sandbox.OverwriteOwn, spans...)
	same(t, "overwritten", b.ok(t, all), "0\nuser\n0\nuser\nnew/mine")
	list, err := driver(t, o, nil).(sandbox.Checkpointer).Unrecorded(within(t), anyID)
	must(t, err)
	if len(list) != 1 || list[0].Target != got.Target || list[0].Before.Number != got.Before.Number || list[0].Changed != 3 {
		t.Errorf("%+v", list)
	}
	must(t, c.Recorded(within(t), b.handle))
}

func anyID(string) bool { return true }
