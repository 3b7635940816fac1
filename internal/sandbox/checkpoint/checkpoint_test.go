package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/checkpoint/record"
)

// files writes a tree: a name that ends with a slash is a folder, a content "-> X" a link.
func files(t testing.TB, dir string, all map[string]string) {
	t.Helper()
	for name, content := range all {
		p := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(p, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		if to, ok := strings.CutPrefix(content, "-> "); ok {
			must(t, os.Symlink(to, p))
			continue
		}
		must(t, os.WriteFile(p, []byte(content), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// picture is what is in a folder: kind, mode and content by path.
func picture(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular() && info.Size() < 1<<20:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			text += " " + string(b)
		case info.Mode().IsRegular():
			text += fmt.Sprintf(" of %d", info.Size())
		case info.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			text = "-> " + to
		}
		rel, _ := filepath.Rel(dir, p)
		out[rel] = text
		return nil
	}))
	return out
}

func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for p := range want {
		if got[p] != want[p] {
			t.Errorf("%s: %q is %.60q, want %.60q", what, p, got[p], want[p])
		}
	}
	for p := range got {
		if _, ok := want[p]; !ok {
			t.Errorf("%s: %q should not be there", what, p)
		}
	}
}

// rig is a workspace and its store.
type rig struct {
	*Store
	t testing.TB
	w Workspace
}

func newRig(t testing.TB) *rig {
	dir := t.TempDir()
	r := &rig{Store: Open(filepath.Join(dir, "store")), t: t, w: Workspace{Dir: filepath.Join(dir, "work")}}
	must(t, os.Mkdir(r.w.Dir, 0o755))
	return r
}

func (r *rig) take() Taken {
	r.t.Helper()
	got, err := r.Take(context.Background(), r.w, time.Now())
	must(r.t, err)
	return got
}

func (r *rig) restore(n int) Restored {
	r.t.Helper()
	got, err := r.Restore(context.Background(), r.w, sandbox.RestoreParams{Number: n})
	must(r.t, err)
	return got
}

func (r *rig) at(name string) string { return filepath.Join(r.w.Dir, name) }

// before and after are two states with every kind of difference between them.
func before(t testing.TB, dir string) {
	files(t, dir, map[string]string{"a.txt": "one", "keep": "same", "sub/deep/x": "x", "sub/y": "y", "empty/": "", "to-folder": "a file", "from-folder/in": "in",
		"link": "-> a.txt", "to-link": "file", "odd\nname": "newline", "zero": "", "run.sh": "#!/bin/sh\n"})
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755))
	must(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	must(t, os.Chmod(filepath.Join(dir, "pipe"), 0o600))
}

func after(t testing.TB, dir string) {
	for _, gone := range []string{"a.txt", "sub", "empty", "to-folder", "from-folder", "link", "to-link", "odd\nname", "pipe"} {
		must(t, os.RemoveAll(filepath.Join(dir, gone)))
	}
	files(t, dir, map[string]string{"a.txt": "two", "new/deeper/z": "z", "to-folder/in": "in", "from-folder": "now a file", "link": "-> /etc/passwd",
		"to-link": "-> keep", "sub": "a file in place of a folder", "pipe": "a file", "zero": "not empty"})
	must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o600))
	must(t, os.Mkdir(filepath.Join(dir, "closed"), 0o755))
	files(t, dir, map[string]string{"closed/secret": "s"})
	must(t, os.Chmod(filepath.Join(dir, "closed/secret"), 0))
	must(t, os.Chmod(filepath.Join(dir, "closed"), 0o500))
}

func TestRestoreUndoRedo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before(t, r.w.Dir)
	first := picture(t, r.w.Dir)
	one := r.take()
	if one.Changed != one.Files || one.Files < 15 {
		t.Errorf("the first checkpoint: %+v", one)
	}
	after(t, r.w.Dir)
	second := picture(t, r.w.Dir)
	two := r.take()
	if two.Number <= one.Number || two.Changed == 0 {
		t.Errorf("the second checkpoint: %+v", two)
	}
	if again := r.take(); again.Changed != 0 || again.Number != two.Number || again.Bytes != 0 {
		t.Errorf("nothing changed, and yet: %+v", again)
	}
	must(t, os.WriteFile(r.at("a.txt"), []byte("three"), 0o644))
	third := picture(t, r.w.Dir)
	back := r.restore(one.Number)
	same(t, "restored", picture(t, r.w.Dir), first)
	if len(back.Kept) > 0 {
		t.Errorf("kept: %q", back.Kept)
	}
	undone := r.restore(back.Undo.Number)
	same(t, "undone", picture(t, r.w.Dir), third)
	r.restore(undone.Undo.Number)
	same(t, "redone", picture(t, r.w.Dir), first)
	r.restore(two.Number)
	same(t, "to the second", picture(t, r.w.Dir), second)
	if _, err := r.Restore(t.Context(), r.w, sandbox.RestoreParams{Number: 99}); !errors.Is(err, ErrNone) {
		t.Errorf("a checkpoint that does not exist: %v", err)
	}
}

// Only what changed is stored, and what the store has is not stored again.
func TestCost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 300 {
		files(t, r.w.Dir, map[string]string{fmt.Sprintf("d%d/f%d", i%7, i): strings.Repeat(strconv.Itoa(i), 500)})
	}
	first := r.take()
	must(t, os.WriteFile(r.at("d1/f1"), []byte("changed"), 0o644))
	if next := r.take(); next.Changed != 1 || next.Bytes*20 > first.Bytes {
		t.Errorf("one file changed: %+v after %+v", next, first)
	}
	must(t, os.Rename(r.at("d2"), r.at("moved")))
	if next := r.take(); next.Changed < 40 || next.Bytes*5 > first.Bytes {
		t.Errorf("a folder was moved: %+v", next)
	}
	// The same size and the same time of modification.
	info, err := os.Stat(r.at("d1/f8"))
	must(t, err)
	must(t, os.WriteFile(r.at("d1/f8"), []byte(strings.Repeat("9", int(info.Size()))), 0o644))
	must(t, os.Chtimes(r.at("d1/f8"), time.Now(), info.ModTime()))
	if next := r.take(); next.Changed != 1 {
		t.Errorf("a change that hides behind its time: %+v", next)
	}
}

// A folder that the repository ignores stays as it is; single files that it ignores are restored.
func TestIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files(t, r.w.Dir, map[string]string{"repo/.git/HEAD": "ref", "repo/.gitignore": "node_modules/\n.env\n", "repo/.env": "KEY=1", "repo/node_modules/m": "1", "repo/src": "1",
		"plain/.gitignore": "node_modules/\n", "plain/node_modules/m": "1"})
	one := r.take()
	files(t, r.w.Dir, map[string]string{"repo/.env": "KEY=2", "repo/node_modules/m": "2", "repo/src": "2", "plain/node_modules/m": "2"})
	r.restore(one.Number)
	got := picture(t, r.w.Dir)
	for name, want := range map[string]string{"repo/.env": "KEY=1", "repo/node_modules/m": "2", "repo/src": "1", "plain/node_modules/m": "1"} {
		if !strings.HasSuffix(got[name], want) {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	// What is stored stays in later checkpoints, even if it is ignored from now on.
	files(t, r.w.Dir, map[string]string{"plain/.git/HEAD": "ref", "plain/node_modules/m": "3"})
	undo := r.restore(one.Number).Undo
	if got := picture(t, r.w.Dir)["plain/node_modules/m"]; !strings.HasSuffix(got, "1") {
		t.Errorf("a stored folder that is ignored was not restored: %q", got)
	}
	r.restore(undo.Number)
	if got := picture(t, r.w.Dir)["plain/node_modules/m"]; !strings.HasSuffix(got, "3") {
		t.Errorf("a stored folder that is ignored was not brought back: %q", got)
	}
}

// A workspace can neither block a checkpoint nor lead it elsewhere.
func TestHostile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	outside := filepath.Join(t.TempDir(), "outside")
	files(t, outside, map[string]string{"secret": "of the server", "dir/f": "1"})
	files(t, r.w.Dir, map[string]string{"dir/f": "mine", "link": "-> " + outside, "fileLink": "-> " + filepath.Join(outside, "secret")})
	must(t, unix.Mkfifo(r.at("pipe"), 0o600))
	sparse, err := os.Create(r.at("sparse"))
	must(t, err)
	must(t, sparse.Truncate(1<<40))
	_, err = sparse.WriteAt([]byte("here"), 1<<39)
	must(t, err)
	must(t, sparse.Close())
	large, err := os.Create(r.at("large"))
	must(t, err)
	if err := unix.Fallocate(int(large.Fd()), 0, 0, MaxFile+1<<20); err != nil {
		t.Skip("SKIPPED: this file system cannot allocate a file:", err)
	}
	must(t, large.Close())
	one := r.take()
	if one.Bytes > 1<<20 || one.LeftOut != 1 {
		t.Errorf("%+v", one)
	}
	content, _, err := r.Content(one.Number, "fileLink", 100)
	if err != nil || strings.Contains(string(content), "of the server") {
		t.Errorf("a link was followed: %q, %v", content, err)
	}
	// The folder becomes a link to elsewhere: a restore must not write through it.
	must(t, os.RemoveAll(r.at("dir")))
	must(t, os.Symlink(filepath.Join(outside, "dir"), r.at("dir")))
	must(t, os.Remove(r.at("sparse")))
	r.restore(one.Number)
	if b, _ := os.ReadFile(filepath.Join(outside, "dir/f")); string(b) != "1" {
		t.Errorf("a file outside was written: %q", b)
	}
	if b, _ := os.ReadFile(r.at("dir/f")); string(b) != "mine" {
		t.Errorf("dir/f: %q", b)
	}
	var st unix.Stat_t
	must(t, unix.Stat(r.at("sparse"), &st))
	if st.Size != 1<<40 || st.Blocks*512 > 1<<20 {
		t.Errorf("the sparse file has %d bytes in %d blocks", st.Size, st.Blocks)
	}
	f, err := os.Open(r.at("sparse"))
	must(t, err)
	defer f.Close()
	b := make([]byte, 4)
	if _, err := f.ReadAt(b, 1<<39); err != nil || string(b) != "here" {
		t.Errorf("%q, %v", b, err)
	}
	must(t, unix.Stat(r.at("large"), &st))
}

// Files that change all the time cost a checkpoint a few attempts, not its end.
func TestChangesWhileRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	files(t, r.w.Dir, map[string]string{"a/busy": "0", "b/other": "1"})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.WriteFile(r.at("a/busy"), []byte(strings.Repeat("x", i%5000)), 0o644)
			_ = os.Rename(r.at("b"), r.at("c"))
			_ = os.Symlink("/etc", r.at("b"))
			_ = os.Remove(r.at("b"))
			_ = os.Rename(r.at("c"), r.at("b"))
		}
	}()
	for range 50 {
		if _, err := r.Take(t.Context(), r.w, time.Now()); err != nil && !strings.Contains(err.Error(), "moved") {
			t.Error(err)
			break
		}
	}
	close(stop)
	<-stopped
	n := r.take().Number
	st, _, err := r.load(n)
	must(t, err)
	for p := range st {
		if strings.Contains(p, "passwd") {
			t.Errorf("a link was followed to %s", p)
		}
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.MaxCheckpoints = 20
	files(t, r.w.Dir, map[string]string{"first": strings.Repeat("stays", 100_000)})
	want := map[int]map[string]string{}
	for i := range 70 {
		files(t, r.w.Dir, map[string]string{"f": strings.Repeat(strconv.Itoa(i), 50_000)})
		want[r.take().Number] = picture(t, r.w.Dir)
	}
	numbers, err := r.Numbers()
	must(t, err)
	if len(numbers) > 20 || len(numbers) < 10 {
		t.Errorf("%d checkpoints are left", len(numbers))
	}
	size, err := r.Bytes()
	if err != nil || size > 20*120_000+600_000 {
		t.Errorf("the store has %d bytes, %v", size, err)
	}
	r.MaxCheckpoints = 1000 // a restore makes one, too
	for _, n := range numbers {
		r.restore(n)
		same(t, strconv.Itoa(n), picture(t, r.w.Dir), want[n])
	}
	r.MaxBytes = 1 << 20
	files(t, r.w.Dir, map[string]string{"f": "last"})
	last := r.take()
	if size, err := r.Bytes(); err != nil || size > 1<<20 {
		t.Errorf("the store has %d bytes, %v", size, err)
	}
	r.restore(last.Number)
}

// A fork shares the checkpoints, and dropping them from one leaves the other whole.
func TestLink(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before(t, r.w.Dir)
	first := picture(t, r.w.Dir)
	one := r.take()
	after(t, r.w.Dir)
	two := r.take()
	fork := Open(filepath.Join(t.TempDir(), "fork"))
	must(t, r.Link(fork))
	changes, err := r.Compare(two.Number, fork, one.Number)
	if err != nil || len(changes) < 10 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	for _, c := range changes {
		if c.Path == "a.txt" && (c.Status != 'M' || c.Old != 3 || c.New != 3) || c.Path == "new/deeper/z" && c.Status != 'D' || c.Path == "sub/y" && c.Status != 'A' {
			t.Errorf("%+v", c)
		}
	}
	r.MaxCheckpoints = 1
	files(t, r.w.Dir, map[string]string{"more": "1"})
	r.take()
	dir := t.TempDir()
	if _, err := fork.Restore(t.Context(), Workspace{Dir: dir}, sandbox.RestoreParams{Number: one.Number}); err != nil {
		t.Fatal(err)
	}
	same(t, "the fork", picture(t, dir), first)
}

// A store that is damaged is noticed, and the next checkpoint begins anew.
func TestDamaged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before(t, r.w.Dir)
	one := r.take()
	b, err := os.ReadFile(r.meta(one.Number))
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(r.meta(one.Number), b, 0o600))
	if _, err := r.Restore(t.Context(), r.w, sandbox.RestoreParams{Number: one.Number}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
	r.Store = Open(r.dir) // as after a restart
	if next := r.take(); next.Number != one.Number+1 || next.Changed == 0 {
		t.Errorf("%+v", next)
	}
}

func FuzzDecode(f *testing.F) {
	r := &record.Record{Number: 1, Changed: []*record.Entry{{Path: "a/b", Kind: record.File, Blob: record.Blob{Extents: []record.Extent{{Off: 1, Len: 2}}}}, {Path: "a/c", Kind: record.Link, Target: "x"}}, Removed: []string{"z"}}
	f.Add(r.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := record.Decode(b); err == nil {
			if _, err := record.Decode(r.Encode()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A process that is killed at any step of a restore leaves one of the two states.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_TEST_DIR"); dir != "" {
		die(dir, os.Getenv("CHECKPOINT_TEST_STEP"), sandbox.RestoreParams{Number: 1, Note: []byte("note")})
		return
	}
	t.Parallel()
	program, err := os.Executable()
	must(t, err)
	old, unfinished := 0, 0
	for step := 1; step < 500; step++ {
		r := newRig(t)
		before(t, r.w.Dir)
		first := picture(t, r.w.Dir)
		n := r.take().Number
		after(t, r.w.Dir)
		second := picture(t, r.w.Dir)
		cmd := exec.CommandContext(t.Context(), program, "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "CHECKPOINT_TEST_DIR="+filepath.Dir(r.w.Dir), "CHECKPOINT_TEST_STEP="+strconv.Itoa(step))
		if out, err := cmd.CombinedOutput(); err == nil { // it came to its end
			if step < 40 || old == 0 || unfinished < 30 {
				t.Errorf("killed at %d steps, %d of them before the restore, %d during it\n%s", step, old, unfinished, out)
			}
			same(t, "the end", picture(t, r.w.Dir), first)
			unrecorded(t, r, n+1)
			return
		}
		if !r.Pending() {
			old++
			got := picture(t, r.w.Dir)
			if maps.Equal(got, first) {
				unrecorded(t, r, n+1)
			} else {
				same(t, fmt.Sprintf("killed at step %d, with no note", step), got, second)
				if _, _, ok := r.Unrecorded(); ok {
					t.Errorf("killed at step %d: a restore that was not made is unrecorded", step)
				}
			}
			r.restore(n)
		} else {
			unfinished++
			if _, err := r.Take(t.Context(), r.w, time.Now()); err == nil {
				t.Error("half of a restore became a checkpoint")
			}
			must(t, r.Finish(r.w))
			unrecorded(t, r, n+1)
		}
		same(t, fmt.Sprintf("killed at step %d, then finished", step), picture(t, r.w.Dir), first)
		r.restore(n + 1)
		same(t, fmt.Sprintf("killed at step %d, then undone", step), picture(t, r.w.Dir), second)
	}
	t.Error("the restore does not end")
}

// unrecorded checks that the restore is known until it is recorded.
func unrecorded(t *testing.T, r *rig, undo int) {
	t.Helper()
	note, got, ok := r.Unrecorded()
	if !ok || string(note) != "note" || got.Undo.Number != undo || got.Changed == 0 {
		t.Errorf("unrecorded: %q, %+v, %v", note, got, ok)
	}
	must(t, r.Recorded())
	if _, _, ok := r.Unrecorded(); ok {
		t.Error("it was recorded and is still known")
	}
}
