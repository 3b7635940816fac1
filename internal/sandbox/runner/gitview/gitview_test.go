package gitview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/spawn"
)

func TestEveryKindOfChange(t *testing.T) {
	s := newSpace(t)
	s.clone("", "same", "changed", "gone", "moved", "mode", "kind", "staged", "uncached", "twice", "back", "dir/deep")
	s.put(".gitignore", "*.o\n")
	s.put("changed", "new\n")
	s.remove("gone")
	s.git("", "mv", "moved", "moved to")
	s.ok(os.Chmod(filepath.Join(s.dir, "mode"), 0o755))
	s.remove("kind")
	s.ok(os.Symlink("same", filepath.Join(s.dir, "kind")))
	s.put("staged", "x")
	s.put("added", "x")
	s.git("", "add", "staged", "added")
	s.git("", "rm", "-q", "--cached", "uncached")
	s.put("uncached", "y")
	s.put("twice", "one")
	s.put("back", "one")
	s.git("", "add", "twice", "back")
	s.put("twice", "two")
	s.put("back", "original back\n") // as it was
	s.put("ignored.o", "x")
	s.put("new/deep/file", "x")
	s.put("added and gone", "x")
	s.git("", "add", "added and gone")
	s.remove("added and gone")
	s.put("meant", "x")
	s.git("", "add", "-N", "meant")
	want := []string{
		"A .gitignore", "A added", "M changed", "D gone", "M kind", "A meant", "M mode", "D moved", "A moved to", "A new/deep/file",
		"M staged", "M twice", "M uncached",
	}
	s.want(want...)
	// It is compared with origin, so a commit changes nothing.
	s.remove("meant")
	s.commit("")
	s.want(slices.DeleteFunc(want, func(c string) bool { return c == "A meant" })...)
	// What was committed and then taken back is not a change.
	s.put("changed", "original changed\n")
	s.put("gone", "original gone\n")
	s.remove("added")
	s.put("mode", "original mode\n") // still may be run
	s.want("A .gitignore", "M kind", "M mode", "D moved", "A moved to", "A new/deep/file", "M staged", "M twice", "M uncached")
}

func TestAnyName(t *testing.T) {
	s := newSpace(t)
	s.clone("", "x")
	var want []string
	for b := 1; b < 256; b++ {
		if b == '/' {
			continue
		}
		name := "n" + string([]byte{byte(b)}) + "n"
		s.put(name, name)
		want = append(want, "A "+name)
	}
	s.put("\" b\t\\\n", "quoted")
	s.put("-x", "dash")
	s.put(":(top)x", "magic")
	s.put("*", "star")
	want = append(want, "A \" b\t\\\n", "A -x", "A :(top)x", "A *")
	slices.Sort(want)
	s.want(want...)
	s.git("", "checkout", "-qb", "b")
	s.commit("")
	s.want(want...) // committed, against where the branch was left
	for _, c := range want {
		name := c[2:]
		s.remove(name)
	}
	s.want()
	s.git("", "checkout", "-q", ".")
	s.git("", "push", "-q", "origin", "b")
	for _, name := range []string{"n\nn", "\" b\t\\\n", "-x", ":(top)x", "*", "n\xffn", "n n"} {
		s.put(name, "now")
		if got := s.diff(name); !strings.HasSuffix(got, "|now") || strings.HasPrefix(got, "-") {
			t.Errorf("%q: got %q", name, got)
		}
	}
	s.want("M \" b\t\\\n", "M *", "M -x", "M :(top)x", "M n\nn", "M n n", "M n\xffn")
}

func TestBases(t *testing.T) {
	s := newSpace(t)
	s.clone("", "file")
	s.put("one", "x")
	s.want("A one") // the branch at origin
	s.git("", "checkout", "-qb", "work")
	s.commit("")
	s.want("A one") // where the branch left the default one
	s.git("", "push", "-q", "origin", "work")
	s.want() // the branch at origin again
	s.put("two", "x")
	s.commit("")
	s.want("A two")
	s.git("", "checkout", "-q", "--detach")
	s.want("A one", "A two")
	// Origin went on: that is not our change.
	s.git("", "checkout", "-q", "main")
	s.put("theirs", "x")
	s.commit("")
	s.git("", "push", "-q", "origin", "main")
	s.git("", "checkout", "-q", "--detach", "work")
	s.want("A one", "A two")
	// The default branch need not be called main, nor be known.
	s.git("", "push", "-q", "origin", "main:refs/heads/trunk")
	s.git("", "update-ref", "-d", "refs/remotes/origin/main")
	s.git("", "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	s.want("A one", "A two")
	s.git("", "symbolic-ref", "-d", "refs/remotes/origin/HEAD")
	s.want("A one", "A two") // where the work left the local default branch
	s.git("", "update-ref", "refs/remotes/origin/master", "main")
	s.want("A one", "A two")
	// Nothing in common with the default branch: its tip.
	s.git("", "checkout", "-q", "--orphan", "lone")
	s.git("", "commit", "-qm", "lone")
	s.want("A one", "D theirs", "A two")
	if got := s.diff("theirs"); got != "x|-" {
		t.Errorf("got %q", got)
	}
}

func TestUnborn(t *testing.T) {
	s := newSpace(t)
	s.git("", "init", "-q")
	s.want()
	s.put("file", "x")
	s.want("A file")
	s.git("", "add", "file")
	s.want("A file")
	if got := s.diff("file"); got != "-|x" {
		t.Errorf("got %q", got)
	}
	s.commit("")
	s.want() // there is no origin: since the last commit
	s.remove("file")
	s.want("D file")
	// With an origin, but not a commit of our own.
	s.clone("late", "theirs", "both")
	s.git("late", "checkout", "-q", "--orphan", "new")
	s.git("late", "rm", "-qrf", ".")
	s.put("late/both", "original both\n")
	s.want("D file", "D late/theirs")
}

func TestOtherHash(t *testing.T) {
	s := newSpace(t)
	s.git("", "init", "-q", "--object-format=sha256")
	s.put("a", "a")
	s.commit("")
	s.git("", "update-ref", "refs/remotes/origin/main", "HEAD")
	s.put("a", "b")
	s.put("b", "b")
	s.want("M a", "A b")
	if got := s.diff("a"); got != "a|b" {
		t.Errorf("got %q", got)
	}
}

func TestNested(t *testing.T) {
	s := newSpace(t)
	if _, err := s.Changes(t.Context()); !errors.Is(err, rpc.ErrNoRepo) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Diff(t.Context(), []byte("x")); !errors.Is(err, rpc.ErrNoRepo) {
		t.Errorf("got %v", err)
	}
	s.clone("one", "a")
	s.clone("t w\no", "a")
	s.put("plain/file", "x")
	s.put("one/a", "changed")
	s.put("t w\no/b", "new")
	s.clone("deep/er", "a") // two levels down is too deep
	s.put("deep/er/a", "changed")
	s.ok(os.Symlink("one", filepath.Join(s.dir, "link")))
	s.put("broken/.git/x", "")
	s.put("broken/file", "x")
	s.want("M one/a", "A t w\no/b")
	for name, want := range map[string]string{"one/a": "original a\n|changed", "t w\no/b": "-|new", "link/a": "original a\n|changed", s.dir + "/one/a": "original a\n|changed"} {
		if got := s.diff(name); got != want {
			t.Errorf("%q: got %q", name, got)
		}
	}
	// In a repository of its own, each tells of its own files.
	s.git("", "init", "-q")
	s.want("A broken/file", "A deep/er/", "A link", "M one/a", "A plain/file", "A t w\no/b")
	if got := s.diff("broken/file"); got != "-|x" {
		t.Errorf("got %q", got)
	}
}

func TestBrokenRepository(t *testing.T) {
	s := newSpace(t)
	s.put(".git/x", "")
	if _, err := s.Changes(t.Context()); !errors.Is(err, rpc.ErrNoRepo) {
		t.Errorf("got %v", err)
	}
	if _, err := s.Diff(t.Context(), []byte("x")); !errors.Is(err, rpc.ErrNoRepo) {
		t.Errorf("got %v", err)
	}
	s.clone("sub", "a")
	s.put("sub/b", "x")
	s.want("A sub/b")
}

func TestSubmodules(t *testing.T) {
	s := newSpace(t)
	s.clone("", "file")
	other := filepath.Join(s.home, "other")
	s.ok(os.Mkdir(other, 0o755))
	for _, args := range [][]string{{"init", "-q"}, {"commit", "-qm", "x", "--allow-empty"}} {
		_, err := s.work(t.Context(), other, args...)
		s.ok(err)
	}
	s.git("", "submodule", "--quiet", "add", other, "mod")
	s.git("", "submodule", "--quiet", "add", other, "deep/mod")
	s.commit("")
	s.git("", "update-ref", "refs/remotes/origin/main", "HEAD")
	s.want()
	s.put("mod/new", "x")
	s.put("deep/mod/new", "x")
	s.want("A mod/new") // what is not committed there does not move the module
	was := s.git("mod", "rev-parse", "HEAD")
	s.commit("mod")
	s.commit("deep/mod")
	s.want("M deep/mod", "M mod", "A mod/new")
	is := s.git("mod", "rev-parse", "HEAD")
	if got, want := s.diff("mod"), "Subproject commit "+was+"\n|Subproject commit "+is+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.diff("mod/new"); got != "-|x" {
		t.Errorf("got %q", got)
	}
}

func TestWorktree(t *testing.T) {
	s := newSpace(t)
	s.clone("main", "a")
	s.git("main", "worktree", "add", "-q", "../side")
	s.put("side/a", "changed")
	s.want("M side/a")
}

func TestConflict(t *testing.T) {
	s := newSpace(t)
	s.clone("", "file", "other")
	s.git("", "checkout", "-qb", "a")
	s.put("file", "a")
	s.commit("")
	s.git("", "checkout", "-q", "main")
	s.put("file", "b")
	s.commit("")
	if _, err := s.work(t.Context(), s.dir, "merge", "a"); err == nil {
		t.Fatal("there is no conflict")
	}
	s.want("U file")
	if got := s.diff("file"); !strings.HasPrefix(got, "original file\n|<<<<<<<") {
		t.Errorf("got %q", got)
	}
}

// fingerprint is everything that could be changed in a repository.
func fingerprint(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintln(&out, at, st.Ino, st.Size, st.Mtim, st.Ctim)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Looking must not write, not even what git would like to remember.
func TestNothingIsWritten(t *testing.T) {
	s := newSpace(t)
	s.clone("", "a", "b")
	s.git("", "config", "core.untrackedCache", "true")
	s.git("", "config", "core.splitIndex", "true")
	ran := filepath.Join(s.home, "ran")
	script := filepath.Join(s.home, "script")
	s.ok(os.WriteFile(script, []byte("#!/bin/sh\ntouch '"+ran+"'\nexit 0\n"), 0o755))
	for _, hook := range []string{"post-index-change", "fsmonitor-watchman"} {
		s.ok(os.WriteFile(filepath.Join(s.dir, ".git/hooks", hook), []byte("#!/bin/sh\ntouch '"+ran+"'\n"), 0o755))
	}
	s.git("", "config", "core.fsmonitor", script)
	s.git("", "config", "diff.external", script)
	s.git("", "config", "core.pager", script)
	s.git("", "config", "diff.x.textconv", script)
	s.put(".gitattributes", "* diff=x\n")
	s.put("a", "changed\n")
	s.ok(os.WriteFile(filepath.Join(s.dir, "b"), []byte("original b\n"), 0o644)) // touched: git would refresh its index
	s.ok(os.Chtimes(filepath.Join(s.dir, "b"), fixed, fixed))
	_ = os.Remove(ran)
	before := fingerprint(t, s.dir)
	s.want("A .gitattributes", "M a")
	if got := s.diff("a"); got != "original a\n|changed\n" {
		t.Errorf("got %q", got)
	}
	if after := fingerprint(t, s.dir); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	if _, err := os.Lstat(ran); err == nil {
		t.Error("a program of the repository was run")
	}
}

// Filters of a repository cannot be switched off. They have no network, and git is that of
// the system, with the repository's settings alone.
func TestFiltersAreOffline(t *testing.T) {
	s := newSpace(t)
	s.clone("", "a", "b")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	s.ok(err)
	defer l.Close()
	said := filepath.Join(s.home, "said")
	filter := fmt.Sprintf(`cat; echo "$0 $SECRET" >> '%s'; (exec 3<>/dev/tcp/127.0.0.1/%d) && echo online >> '%s'`, said, l.Addr().(*net.TCPAddr).Port, said)
	script := func(name, text string) string {
		at := filepath.Join(s.home, name)
		s.ok(os.WriteFile(at, []byte("#!/bin/bash\n"+text+"\n"), 0o755))
		return at
	}
	s.git("", "config", "filter.x.clean", script("local", filter))
	s.git("", "config", "--global", "filter.y.clean", script("global", filter))
	s.put(".git/info/attributes", "a filter=x\nb filter=y\n")
	for _, name := range []string{"a", "b"} { // touched: git has to read it
		s.ok(os.Chtimes(filepath.Join(s.dir, name), fixed, fixed))
	}
	script("git", filter)
	s.View = New(Config{Spawner: spawner, Workspace: s.dir, Env: func() []string {
		return spawn.SystemFirst(append(s.environ(), "PATH="+s.home+":"+os.Getenv("PATH")))
	}})
	s.want()
	got, err := os.ReadFile(said)
	s.ok(err)
	if string(got) == "" || strings.Trim(strings.ReplaceAll(string(got), filepath.Join(s.home, "local")+" \n", ""), "\n") != "" {
		t.Errorf("%s", got)
	}
}

// A repository that says its files lie elsewhere is not believed.
func TestWorkTreeElsewhere(t *testing.T) {
	s := newSpace(t)
	s.clone("", "a")
	s.git("", "config", "core.worktree", s.home)
	s.put("new", "x")
	s.want("A new")
}

func TestDiff(t *testing.T) {
	s := newSpace(t)
	s.clone("", "file", "gone", "kind", "folder", "empty", "was/file")
	s.put("file", "")
	s.remove("gone")
	s.remove("kind")
	s.ok(os.Symlink("/etc/passwd", filepath.Join(s.dir, "kind")))
	s.remove("folder")
	s.put("folder/x", "x")
	s.put("new", "gr\u00fc\u00df")
	s.put("latin", "gr\xfc\xdf")
	s.put("dir/x", "x")
	s.remove("was")
	for name, want := range map[string]string{
		"file": "original file\n|", "gone": "original gone\n|-", "kind": "original kind\n|/etc/passwd", "folder": "original folder\n|-",
		"new": "-|gr\u00fc\u00df", "latin": "-|gr\u00fc\u00df", "./dir/../new": "-|gr\u00fc\u00df", s.dir + "/new": "-|gr\u00fc\u00df", "was/file": "original was/file\n|-",
	} {
		if got := s.diff(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	s.put("large", strings.Repeat("x", maxDiff+1))
	s.put("fits", strings.Repeat("x", maxDiff))
	s.put("binary", "a\x00b")
	s.ok(os.Symlink("..", filepath.Join(s.dir, "out")))
	s.ok(os.Symlink("/etc", filepath.Join(s.dir, "etc")))
	s.ok(syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o666))
	for name, want := range map[string]error{
		"large": rpc.ErrTooBig, "fits": nil, "binary": rpc.ErrBinary, "../x": rpc.ErrEscapes, "/etc/passwd": rpc.ErrEscapes, "out/x": rpc.ErrEscapes, "etc/passwd": rpc.ErrEscapes,
		"a\x00": rpc.ErrInvalid, "dir": rpc.ErrInvalid, "": rpc.ErrInvalid, "pipe": rpc.ErrInvalid, "nothing": fs.ErrNotExist, "no/where": fs.ErrNotExist,
	} {
		if _, err := s.Diff(t.Context(), []byte(name)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
	// The same limits hold for what was.
	s.commit("")
	s.git("", "update-ref", "refs/remotes/origin/main", "HEAD")
	s.put("large", "x")
	s.put("binary", "x")
	for name, want := range map[string]error{"large": rpc.ErrTooBig, "binary": rpc.ErrBinary} {
		if _, err := s.Diff(t.Context(), []byte(name)); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
	if got := s.diff("kind"); got != "/etc/passwd|/etc/passwd" {
		t.Errorf("got %q", got)
	}
}

func TestTooMany(t *testing.T) {
	s := newSpace(t)
	states := map[string]*state{}
	for i := range maxChanges {
		s.ok(note(states, entry{path: fmt.Sprint(i), head: absent, work: "100644"}))
	}
	for _, err := range []error{note(states, entry{path: "x"}), combine(states, step{path: "x"})} {
		if !errors.Is(err, rpc.ErrTooBig) || !strings.Contains(err.Error(), "50000") {
			t.Errorf("got %v", err)
		}
	}
	s.ok(note(states, entry{path: "1"}))
}

func TestNoGit(t *testing.T) {
	s := newSpace(t)
	s.git("", "init", "-q")
	v := New(Config{Spawner: spawner, Workspace: s.dir, Env: func() []string { return []string{"PATH=" + s.home} }})
	if _, err := v.Changes(t.Context()); err == nil || !strings.Contains(err.Error(), "install it") {
		t.Errorf("got %v", err)
	}
	if len(v.slots) != 0 {
		t.Error("a slot was kept")
	}
}

// A git that never ends is ended with its children when the caller goes.
func TestCancel(t *testing.T) {
	s := newSpace(t)
	s.git("", "init", "-q")
	s.ok(syscall.Mkfifo(filepath.Join(s.home, "started"), 0o666))
	fake := filepath.Join(s.home, "git")
	s.ok(os.WriteFile(fake, []byte("#!/bin/sh\necho x > '"+s.home+"/started'\nsleep 1000 & wait\n"), 0o755))
	v := New(Config{Spawner: spawner, Workspace: s.dir, Env: func() []string { return []string{"PATH=" + s.home + ":" + os.Getenv("PATH")} }})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, _ = os.ReadFile(filepath.Join(s.home, "started"))
		cancel()
	}()
	if _, err := v.Changes(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A filter of the repository that never ends delays a review for a limited time.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("", "a")
	s.git("", "config", "filter.x.clean", "sleep 1000; cat")
	s.put(".git/info/attributes", "a filter=x\n")
	s.put("a", "changed a!\n")
	c := s.View.config
	c.Timeout = 200 * time.Millisecond
	s.View = New(c)
	_, err := s.Review(t.Context(), sandbox.GitRange{Kind: sandbox.RangeHead})
	if !errors.Is(err, rpc.ErrInvalid) || !strings.Contains(err.Error(), "took too long") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Review(ctx, sandbox.GitRange{Kind: sandbox.RangeHead}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestHandlers(t *testing.T) {
	s := newSpace(t)
	s.clone("", "a")
	s.put("\xff", "x")
	handlers := s.Handlers()
	handlers["hello"] = func(context.Context, *rpc.Call) (any, error) { return sandbox.Info{}, nil }
	here, there := net.Pipe()
	peer, err := rpc.Accept(there, rpc.Handlers{Calls: handlers})
	s.ok(err)
	defer peer.Close()
	c, err := sandbox.Connect(t.Context(), sandbox.Link{Conn: here})
	s.ok(err)
	defer c.Close()
	if got, err := c.GitChanges(t.Context()); err != nil || len(got) != 1 || string(got[0].Path) != "\xff" || got[0].Status != "A" {
		t.Errorf("got %v, %v", got, err)
	}
	if d, err := c.GitDiff(t.Context(), []byte("\xff")); err != nil || d.Original != nil || *d.Modified != "x" {
		t.Errorf("got %v, %v", d, err)
	}
	if _, err := c.GitDiff(t.Context(), []byte("../x")); !errors.Is(err, sandbox.ErrEscapes) {
		t.Errorf("got %v", err)
	}
}
