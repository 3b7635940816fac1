package checkpoint

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
)

// span makes changes as the agent does, and returns their span.
func (r *rig) span(change func()) sandbox.Span {
	r.t.Helper()
	from := r.take().Number
	change()
	return sandbox.Span{From: from, To: r.take().Number}
}

func (r *rig) write(all map[string]string) {
	r.t.Helper()
	files(r.t, r.w.Dir, all)
}

// undo undoes spans.
func (r *rig) undo(own sandbox.Own, spans ...sandbox.Span) Restored {
	r.t.Helper()
	got, err := r.Restore(context.Background(), r.w, sandbox.RestoreParams{Spans: spans, Own: own})
	must(r.t, err)
	return got
}

// has checks files; "-" means that there is none.
func (r *rig) has(what string, want map[string]string) {
	r.t.Helper()
	for name, text := range want {
		b, err := os.ReadFile(r.at(name))
		if got := string(b); err == nil && got != text || err != nil && text != "-" {
			r.t.Errorf("%s: %s is %q (%v), want %q", what, name, got, err, text)
		}
	}
}

// A restore undoes what the agent changed. What the user changed between and after turns stays.
func TestUndoSpans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(map[string]string{"mine": "0", "agents": "0", "both": "0", "dir/in": "0"})
	one := r.span(func() {
		r.write(map[string]string{"agents": "1", "new/deep/file": "1"})
		must(t, os.RemoveAll(r.at("dir")))
	})
	r.write(map[string]string{"mine": "1", "new/deep/mine": "kept"})
	two := r.span(func() { r.write(map[string]string{"agents": "2", "second": "2"}) })
	r.write(map[string]string{"later": "kept"})
	three := r.span(func() { must(t, os.Remove(r.at("second"))) })
	must(t, os.WriteFile(r.at("mine"), []byte("2"), 0o644))
	last := picture(t, r.w.Dir)
	got := r.undo(sandbox.RefuseOwn, one, two, three)
	if len(got.Files) > 0 || got.Target != got.Undo.Number+1 || got.Changed != 4 { // agents, new/deep/file, dir, dir/in
		t.Errorf("%+v", got)
	}
	r.has("undone", map[string]string{"mine": "2", "agents": "0", "new/deep/file": "-", "new/deep/mine": "kept", "dir/in": "0", "second": "-", "later": "kept", "both": "0"})
	if next := r.take(); next.Changed != 0 || next.Number != got.Target {
		t.Errorf("the state after is another than the checkpoint of it: %+v", next)
	}
	undo := r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
	same(t, "undo of the restore", picture(t, r.w.Dir), last)
	r.undo(sandbox.RefuseOwn, sandbox.Span{From: undo.Undo.Number, To: undo.Target})
	r.has("redo", map[string]string{"mine": "2", "agents": "0", "second": "-", "later": "kept"})
}

// Files that both changed are restored or kept as the user says, and never without a question.
func TestUndoConflicts(t *testing.T) {
	t.Parallel()
	for _, own := range []sandbox.Own{sandbox.RefuseOwn, sandbox.KeepOwn, sandbox.OverwriteOwn} {
		r := newRig(t)
		r.write(map[string]string{"both": "0", "between": "0", "deleted": "0", "agents": "0", "folder/f": "0", "gone/f": "0", "same": "0", "kind": "0"})
		one := r.span(func() {
			r.write(map[string]string{"both": "1", "between": "1", "deleted": "1", "agents": "1", "same": "1", "folder/f": "1", "gone/f": "1"})
			must(t, os.Remove(r.at("kind")))
			r.write(map[string]string{"kind/f": "1"})
		})
		r.write(map[string]string{"between": "user"})
		two := r.span(func() { r.write(map[string]string{"between": "2"}) })
		r.write(map[string]string{"both": "user", "same": "0", "kind/mine": "user"})
		must(t, os.Remove(r.at("deleted")))
		must(t, os.RemoveAll(r.at("folder")))
		must(t, os.RemoveAll(r.at("gone")))
		r.write(map[string]string{"folder": "a file of the user"})
		before := picture(t, r.w.Dir)
		got := r.undo(own, one, two)
		want := "[between both deleted folder folder/f gone/f kind/mine]"
		if own == sandbox.KeepOwn {
			want = strings.Replace(want, "folder ", "", 1)
		}
		if fmt.Sprint(got.Files) != want {
			t.Errorf("%q: changed by both: %v, want %s", own, got.Files, want)
		}
		switch own {
		case sandbox.RefuseOwn:
			same(t, "refused", picture(t, r.w.Dir), before)
		case sandbox.KeepOwn:
			r.has("kept", map[string]string{"both": "user", "between": "2", "deleted": "-", "agents": "0", "folder": "a file of the user", "same": "0", "kind/mine": "user", "kind/f": "-"})
		case sandbox.OverwriteOwn:
			r.has("overwritten", map[string]string{"both": "0", "between": "0", "deleted": "0", "agents": "0", "folder/f": "0", "gone/f": "0", "same": "0", "kind": "0"})
			r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
			same(t, "undone", picture(t, r.w.Dir), before)
		}
		if next := r.take(); next.Changed != 0 {
			t.Errorf("%q: the state after is another than the checkpoint of it: %+v", own, next)
		}
	}
}

// git runs git in the workspace.
func (r *rig) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir = r.w.Dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *rig) commit(name, text string) {
	r.t.Helper()
	r.write(map[string]string{name: text})
	r.git("add", name)
	r.git("commit", "-q", "-m", name+" "+text)
}

func (r *rig) log() string { return strings.ReplaceAll(r.git("log", "--format=%s"), "\n", ", ") }

func gitRig(t *testing.T) *rig {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: there is no git")
	}
	r := newRig(t)
	r.git("init", "-q", "-b", "main")
	r.commit("a", "0")
	return r
}

// A commit of the user is never lost without a question, and a repository is never left half restored.
func TestUndoGit(t *testing.T) {
	t.Parallel()
	t.Run("the user commits", func(t *testing.T) {
		t.Parallel()
		r := gitRig(t)
		turn := r.span(func() { r.write(map[string]string{"b": "1"}); r.git("status") })
		r.commit("b", "1")
		got := r.undo(sandbox.RefuseOwn, turn)
		if len(got.Files)+len(got.Repositories) > 0 || got.Git || got.Changed != 1 {
			t.Errorf("%+v", got)
		}
		if log := r.log(); log != "b 1, a 0" {
			t.Error(log)
		}
		r.has("undone", map[string]string{"b": "-", "a": "0"})
		r.git("fsck", "--strict")
	})
	t.Run("the agent commits", func(t *testing.T) {
		t.Parallel()
		r := gitRig(t)
		turn := r.span(func() { r.commit("b", "1"); r.git("gc", "-q"); r.git("branch", "agent") })
		r.write(map[string]string{"c": "user", ".git/hooks/pre-push": "user"})
		r.git("status")
		r.git("config", "user.name", "user")
		got := r.undo(sandbox.RefuseOwn, turn)
		if len(got.Files)+len(got.Repositories) > 0 || !got.Git || got.Changed != 1 {
			t.Errorf("%+v", got)
		}
		if log := r.log(); log != "a 0" || r.git("branch", "--list", "agent") != "" || r.git("config", "user.name") != "user" {
			t.Error(log)
		}
		r.has("undone", map[string]string{"b": "-", "a": "0", "c": "user", ".git/hooks/pre-push": "user"})
		r.git("fsck", "--strict")
		r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
		if log := r.log(); log != "b 1, a 0" {
			t.Error(log)
		}
		r.git("fsck", "--strict")
	})
	for _, own := range []sandbox.Own{sandbox.RefuseOwn, sandbox.KeepOwn, sandbox.OverwriteOwn} {
		t.Run("both commit, "+string(own), func(t *testing.T) {
			t.Parallel()
			r := gitRig(t)
			turn := r.span(func() { r.commit("b", "1") })
			r.commit("c", "user")
			users := r.git("rev-parse", "HEAD")
			got := r.undo(own, turn)
			if fmt.Sprint(got.Repositories) != "[.]" || len(got.Files) > 0 || got.Git != (own == sandbox.OverwriteOwn) {
				t.Errorf("%+v", got)
			}
			want := map[sandbox.Own]string{sandbox.RefuseOwn: "c user, b 1, a 0", sandbox.KeepOwn: "c user, b 1, a 0", sandbox.OverwriteOwn: "a 0"}[own]
			if log := r.log(); log != want {
				t.Error(log)
			}
			r.has("the user's file", map[string]string{"c": "user"})
			r.git("fsck", "--strict")
			r.git("cat-file", "-e", users) // it can still be found
		})
	}
	t.Run("the agent makes and removes repositories", func(t *testing.T) {
		t.Parallel()
		r := gitRig(t)
		r.commit("x", "1")
		want := r.log()
		made := r.span(func() { r.git("init", "-q", "sub"); r.write(map[string]string{"sub/f": "1"}) })
		if got := r.undo(sandbox.RefuseOwn, made); len(got.Repositories) > 0 {
			t.Errorf("%+v", got)
		}
		if _, err := os.Lstat(r.at("sub")); !os.IsNotExist(err) {
			t.Errorf("the new repository: %v", err)
		}
		gone := r.span(func() { must(t, os.RemoveAll(r.at(".git"))) })
		r.undo(sandbox.RefuseOwn, gone)
		if log := r.log(); log != want {
			t.Error(log)
		}
		r.git("fsck", "--strict")
	})
	t.Run("nested repositories", func(t *testing.T) {
		t.Parallel()
		r := gitRig(t)
		r.git("init", "-q", "sub")
		r.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "first")
		turn := r.span(func() { r.commit("b", "1") })
		r.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "user")
		if got := r.undo(sandbox.RefuseOwn, turn); len(got.Repositories) > 0 || !got.Git {
			t.Errorf("%+v", got)
		}
		if log := r.log() + "; " + r.git("-C", "sub", "log", "--format=%s"); log != "a 0; user\nfirst" {
			t.Error(log)
		}
	})
}

// The spans of a long conversation, with complete records and dropped checkpoints in between.
func TestUndoManySpans(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(map[string]string{"f": "start", "other": "x"})
	var spans []sandbox.Span
	for i := range 3 * maxChain {
		spans = append(spans, r.span(func() { r.write(map[string]string{"f": strconv.Itoa(i), fmt.Sprint("n", i): "new"}) }))
		r.write(map[string]string{fmt.Sprint("mine", i): "kept"})
	}
	got := r.undo(sandbox.RefuseOwn, spans[50:]...)
	if got.Changed != 3*maxChain-50+1 || len(got.Files) > 0 {
		t.Errorf("%+v", got)
	}
	r.has("undone", map[string]string{"f": "49", "n49": "new", "n50": "-", "mine0": "kept", "mine100": "kept", "other": "x"})
	r.Store = Open(r.dir)
	r.undo(sandbox.RefuseOwn, sandbox.Span{From: got.Undo.Number, To: got.Target})
	r.has("undone", map[string]string{"f": "119", "n50": "new"})
}

// A process that is killed at any step of an undo leaves one of the two states, and the user's changes in both.
func TestKilledUndoing(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_UNDO_DIR"); dir != "" {
		die(dir, os.Getenv("CHECKPOINT_TEST_STEP"), sandbox.RestoreParams{Spans: []sandbox.Span{{From: 1, To: 2}}, Note: []byte("note")})
		return
	}
	t.Parallel()
	program, err := os.Executable()
	must(t, err)
	seen := map[string]int{}
	for step := 1; step < 500; step++ {
		r := newRig(t)
		before(t, r.w.Dir)
		r.write(map[string]string{"mine": "0"})
		r.span(func() { after(t, r.w.Dir) })
		r.write(map[string]string{"mine": "user", "new/deeper/mine": "user"})
		second := picture(t, r.w.Dir)
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestKilledUndoing$")
		cmd.Env = append(os.Environ(), "CHECKPOINT_UNDO_DIR="+filepath.Dir(r.w.Dir), "CHECKPOINT_TEST_STEP="+strconv.Itoa(step))
		out, err := cmd.CombinedOutput()
		ended := err == nil
		if !ended && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("%v\n%s", err, out)
		}
		state := "unfinished"
		if r.Pending() {
			must(t, r.Finish(r.w))
		} else if state = "restored"; maps.Equal(picture(t, r.w.Dir), second) {
			state = "old"
		}
		seen[state]++
		if state == "old" {
			if _, _, ok := r.Unrecorded(); ok {
				t.Errorf("killed at step %d: a restore that was not made is unrecorded", step)
			}
			r.undo(sandbox.RefuseOwn, sandbox.Span{From: 1, To: 2})
		} else {
			unrecorded(t, r, 3)
			if _, got, _ := r.Unrecorded(); got.Target != 0 {
				t.Errorf("%+v", got)
			}
		}
		r.has(fmt.Sprint("killed at step ", step), map[string]string{"mine": "user", "new/deeper/mine": "user", "new/deeper/z": "-", "a.txt": "one", "sub/deep/x": "x", "zero": "", "closed/secret": "-"})
		numbers, err := r.Numbers()
		must(t, err)
		last := numbers[len(numbers)-1]
		if next := r.take(); next.Changed != 0 || next.Number != last {
			t.Errorf("killed at step %d: %+v after %v", step, next, numbers)
		}
		r.undo(sandbox.RefuseOwn, sandbox.Span{From: 3, To: last})
		same(t, fmt.Sprint("killed at step ", step, ", then undone"), picture(t, r.w.Dir), second)
		if ended {
			if seen["old"] < 2 || seen["unfinished"] < 30 {
				t.Errorf("%v", seen)
			}
			return
		}
	}
	t.Error("the restore does not end")
}

// die restores and kills this process on the way.
func die(dir, at string, p sandbox.RestoreParams) {
	left, err := strconv.Atoi(at)
	s := Open(filepath.Join(dir, "store"))
	s.step = func() {
		if left--; left == 0 {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	if err == nil {
		_, err = s.Restore(context.Background(), Workspace{Dir: filepath.Join(dir, "work")}, p)
	}
	if err != nil {
		panic(err)
	}
}

// A restore that fails is rolled back, and the checkpoint that was made for it is removed.
func TestUndoFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.write(map[string]string{"a": "0", "b": "0"})
	turn := r.span(func() { r.write(map[string]string{"a": "1", "b": "1"}) })
	numbers, err := r.Numbers()
	must(t, err)
	data := r.data(1)
	must(t, os.Rename(data, data+".away"))
	if _, err := r.Restore(t.Context(), r.w, sandbox.RestoreParams{Spans: []sandbox.Span{turn}}); err == nil {
		t.Error("a restore without contents")
	}
	must(t, os.Rename(data+".away", data))
	if now, err := r.Numbers(); err != nil || !slices.Equal(now, numbers) || r.Pending() {
		t.Errorf("%v, %v", now, err)
	}
	r.has("rolled back", map[string]string{"a": "1", "b": "1"})
	r.undo(sandbox.RefuseOwn, turn)
	r.has("then undone", map[string]string{"a": "0", "b": "0"})
}
