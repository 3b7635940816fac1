package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
)

// Objects in the folder of a submodule stay, whatever its name is.
func TestUndoSubmodule(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"config", "hooks", "logs/index", "objects", "plain"} {
		other, r := gitRig(t), gitRig(t)
		r.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--name", name, other.w.Dir, "sub")
		r.git("commit", "-q", "-m", "sub")
		other.commit("upstream", "1")
		turn := r.span(func() { r.git("-C", "sub", "fetch", "-q") })
		r.git("-C", "sub", "merge", "-q", "origin/main")
		r.git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "user")
		if got := r.undo(sandbox.RefuseOwn, turn); fmt.Sprint(got.Repositories, got.Files) != "[.] []" {
			t.Errorf("%s: %+v", name, got)
		}
		for _, own := range []sandbox.Own{sandbox.KeepOwn, sandbox.OverwriteOwn} {
			users := r.git("-C", "sub", "rev-parse", "HEAD")
			r.undo(own, turn)
			r.git("-C", "sub", "fsck", "--strict")
			r.git("-C", "sub", "rev-list", "--objects", users) // all objects are there
		}
		if log := r.git("-C", "sub", "log", "--format=%s"); log != "a 0" {
			t.Errorf("%s: %s", name, log)
		}
	}
}

// A git folder with another name than .git is restored as a whole or not at all.
func TestUndoBareRepository(t *testing.T) {
	t.Parallel()
	log := func(r *rig) string {
		r.git("-C", "hub.git", "fsck", "--strict")
		return strings.ReplaceAll(r.git("-C", "hub.git", "log", "--format=%s", "main"), "\n", ", ")
	}
	start := func() *rig {
		r := gitRig(t)
		r.git("init", "-q", "--bare", "-b", "main", "hub.git")
		r.git("push", "-q", "hub.git", "main")
		return r
	}
	r := start()
	push := func() {
		r.commit("b", "1")
		r.git("push", "-q", "hub.git", "main")
		r.write(map[string]string{"hub.git/notes": "1"})
	}
	turn := r.span(push)
	if got := r.undo(sandbox.RefuseOwn, turn); len(got.Repositories) > 0 || !got.Git || got.Changed != 2 || log(r) != "a 0" {
		t.Errorf("%+v, %s", got, log(r))
	}
	r.has("undone", map[string]string{"b": "-", "hub.git/notes": "-"})

	r = start()
	turn = r.span(push)
	r.commit("c", "user")
	r.git("push", "-q", "hub.git", "main")
	users := r.git("rev-parse", "HEAD")
	if got := r.undo(sandbox.RefuseOwn, turn); fmt.Sprint(got.Repositories, got.Files) != "[. hub.git] []" {
		t.Errorf("%+v", got)
	}
	if r.undo(sandbox.KeepOwn, turn); log(r) != "c user, b 1, a 0" {
		t.Error(log(r))
	}
	if r.undo(sandbox.OverwriteOwn, turn); log(r) != "a 0" {
		t.Error(log(r))
	}
	r.git("-C", "hub.git", "rev-list", "--objects", users)

	r = gitRig(t) // one that the agent makes, with a file of the user in it
	turn = r.span(func() { r.git("init", "-q", "--bare", "hub.git"); r.git("push", "-q", "hub.git", "main") })
	r.write(map[string]string{"hub.git/mine": "user"})
	if got := r.undo(sandbox.RefuseOwn, turn); len(got.Repositories)+len(got.Files) > 0 {
		t.Errorf("%+v", got)
	}
	r.has("undone", map[string]string{"hub.git/mine": "user", "hub.git/HEAD": "-", "hub.git/config": "-"})

	r = gitRig(t) // a folder with files of the user that the agent makes a git folder
	r.write(map[string]string{"proj/a": "0", "proj/logs/x": "0", "proj/objects/x": "0"})
	turn = r.span(func() {
		r.git("init", "-q", "--bare", "proj")
		r.write(map[string]string{"proj/a": "1", "proj/logs/x": "1", "proj/objects/x": "1"})
	})
	r.write(map[string]string{"proj/a": "user", "proj/logs/x": "user", "proj/objects/x": "user"})
	if got := r.undo(sandbox.KeepOwn, turn); fmt.Sprint(got.Files) != "[proj/a proj/logs/x proj/objects/x]" {
		t.Errorf("%+v", got)
	}
	r.has("kept", map[string]string{"proj/a": "user", "proj/HEAD": "-"})

	r = newRig(t)
	r.git("init", "-q", "--separate-git-dir=meta", "work")
	r.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "first")
	turn = r.span(func() { r.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "agent") })
	r.git("-C", "work", "commit", "-q", "--allow-empty", "-m", "user")
	if got := r.undo(sandbox.RefuseOwn, turn); fmt.Sprint(got.Repositories, got.Files) != "[meta] []" {
		t.Errorf("%+v", got)
	}
	if r.undo(sandbox.OverwriteOwn, turn); r.git("-C", "work", "log", "--format=%s") != "first" {
		t.Error(r.git("-C", "work", "log", "--format=%s"))
	}
	r.git("-C", "work", "fsck", "--strict")
}

// Objects that the agent overwrote or removed are restored, even if the history is the user's, and so are the settings of objects.
func TestUndoObjects(t *testing.T) {
	t.Parallel()
	r := gitRig(t)
	r.commit("x", "1")
	object := func(rev string) string {
		id := r.git("rev-parse", rev)
		return r.at(filepath.Join(".git/objects", id[:2], id[2:]))
	}
	turn := r.span(func() {
		must(t, os.Chmod(object("HEAD:a"), 0o644))
		must(t, os.WriteFile(object("HEAD:a"), []byte("EVIL"), 0o644))
		must(t, os.Remove(object("HEAD:x")))
		r.write(map[string]string{".git/objects/info/alternates": "/elsewhere\n"})
	})
	must(t, os.Remove(r.at(".git/index")))
	r.git("read-tree", "HEAD")
	r.git("commit", "-q", "--allow-empty", "-m", "user")
	if got := r.undo(sandbox.RefuseOwn, turn); len(got.Repositories)+len(got.Files) > 0 {
		t.Errorf("%+v", got)
	}
	if log := r.log(); log != "user, x 1, a 0" {
		t.Error(log)
	}
	r.has("undone", map[string]string{".git/objects/info/alternates": "-"})
	r.git("fsck", "--strict")
}

var longAgo = time.Unix(1e9, 0)

// What the user staged is not lost without a question. A refresh of the index is no change.
func TestUndoStaged(t *testing.T) {
	t.Parallel()
	stage := func(r *rig) { r.write(map[string]string{"mine": "user"}); r.git("add", "mine") }
	old := func(r *rig) { must(t, os.Chtimes(r.at("a"), longAgo, longAgo)); r.git("status") }
	for what, c := range map[string]struct {
		agent, user func(r *rig)
		repos       string
		staged      string
	}{
		"the user stages, the agent refreshes": {old, stage, "[]", "mine"},
		"the user refreshes":                   {func(r *rig) { r.write(map[string]string{"b": "1"}); r.git("add", "b") }, old, "[]", ""},
		"both stage":                           {func(r *rig) { r.write(map[string]string{"b": "1"}); r.git("add", "b") }, stage, "[.]", "b\nmine"},
		"the agent commits, the user stages":   {func(r *rig) { r.commit("b", "1") }, stage, "[.]", "mine"},
		"the user breaks the index":            {func(r *rig) { r.commit("b", "1") }, func(r *rig) { r.git("update-index", "--split-index") }, "[.]", ""},
	} {
		r := gitRig(t)
		turn := r.span(func() { c.agent(r); r.write(map[string]string{"agents": "1"}) })
		c.user(r)
		got := r.undo(sandbox.RefuseOwn, turn)
		if fmt.Sprint(got.Repositories) != c.repos || len(got.Files) > 0 {
			t.Errorf("%s: %+v", what, got)
		}
		if c.repos != "[]" {
			r.undo(sandbox.KeepOwn, turn)
		}
		r.has(what, map[string]string{"agents": "-", "b": "-"})
		if staged := r.git("diff", "--cached", "--name-only"); staged != c.staged {
			t.Errorf("%s: %q is staged, want %q", what, staged, c.staged)
		}
	}
}
