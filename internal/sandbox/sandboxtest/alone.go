package sandboxtest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deckhand/internal/sandbox"
)

// aloneTests change the whole sandbox, so each has its own.
var aloneTests = []test[Options]{
	{name: "Environment", run: environment},
	{name: "KillAll", run: killAll},
	{name: "Load", run: load},
	{name: "Terminal", run: terminal},
	{name: "Git", run: git, when: func(o Options) bool { return !o.NoGit }},
	{name: "NoGit", run: withoutGit, when: func(o Options) bool { return o.NoGit }},
	{name: "Mounts", run: mounts, when: confined},
	{name: "Folder", run: folder, when: func(o Options) bool { return o.State != nil || o.Folders }},
}

// environment: what SetEnv says holds for all that is started later, and nothing of it before.
func environment(t *testing.T, o Options) {
	secret := "s3cret 'quoted' \n line $x"
	b := open(t, o, sandbox.Spec{Env: map[string]string{"FROM_SPEC": secret, "PLAIN": "1"}}, nil)
	same(t, "in a shell", b.ok(t, `printf %%s "$FROM_SPEC"`), secret)
	h := b.program(t)
	r, err := b.Run(within(t), sandbox.Process{Args: []string{"sh", "-c", `printf %s "$FROM_SPEC"`}}, nil)
	must(t, err)
	same(t, "in a program", string(r.Stdout), secret)
	_, err = b.MCPStart(within(t), sandbox.MCPServer{Name: "s", Command: h, Args: []string{"mcp"}})
	must(t, err)
	same(t, "in a tool server", said(t, b.tool(t, "s", "env", "FROM_SPEC")), secret)

	must(t, b.SetEnv(within(t), map[string]string{"LATER": "2"}))
	same(t, "in a new shell", b.in(t, "new", `echo "$FROM_SPEC$PLAIN$LATER"`).Output, "2\n")
	same(t, "in the old shell", b.ok(t, `echo "$PLAIN$LATER"`), "1")
	for _, name := range []string{"", "A=B", "A\x00"} {
		fails(t, fmt.Sprintf("a variable called %q", name), b.SetEnv(within(t), map[string]string{name: "x"}), sandbox.ErrInvalid)
	}
	same(t, "after a refused one", b.in(t, "third", `echo "$LATER"`).Output, "2\n")
	same(t, "HOME is a folder", b.ok(t, `test -d "$HOME" && test -w "$HOME" && echo yes`), "yes")
	b.ok(t, `test -n "$PATH"`)
}

// killAll ends everything but the runner.
func killAll(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	h := b.program(t)
	b.ok(t, "kept=yes; (%s hold a > out-a &) ; (trap '' TERM INT HUP; %s hold b > out-b &)", h, h)
	b.ok(t, "until grep -q held out-a && grep -q held out-b; do sleep 0.02; done")
	running := b.start(t, sandbox.Command{Shell: "other", Text: "echo ready; sleep 1000"})
	running.shows(t, "ready")
	_, err := b.MCPStart(within(t), sandbox.MCPServer{Name: "s", Command: h, Args: []string{"mcp"}})
	must(t, err)
	must(t, b.KillAll(within(t)))
	if r := running.wait(t); r.Exit != 137 || !r.NewShell {
		t.Errorf("a command that was killed has the result %+v", r)
	}
	for _, file := range []string{"a", "b"} {
		same(t, "lock "+file, b.ok(t, "%s locked %s", h, file), "free")
	}
	same(t, "a fresh shell", b.ok(t, "echo ${kept:-fresh}"), "fresh")
	same(t, "a tool server", said(t, b.tool(t, "s", "echo", "again")), "again")
	must(t, b.KillAll(within(t)))
	must(t, b.KillAll(within(t)))
}

// git: what changed since the work began.
func git(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{Env: map[string]string{
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
	}}, nil)
	if b.sh(t, "git --version").Exit != 0 {
		skip(t, "there is no git in this sandbox")
	}
	_, err := b.GitChanges(within(t))
	fails(t, "changes without a repository", err, sandbox.ErrNoRepo)

	b.put(t, "repo/changed", "before\n")
	b.put(t, "repo/removed", "gone\n")
	b.put(t, "repo/old name", strings.Repeat("some lines\n", 20))
	b.put(t, "repo/same", "same\n")
	origin := b.outside(t) + "/sub"
	b.ok(t, "cd repo && git init -q -b main && git add -A && git commit -qm first && git init -q --bare %s && git remote add origin %s && git push -q origin main && git fetch -q", origin, origin)
	changes, err := b.GitChanges(within(t))
	must(t, err)
	same(t, "changes right after the clone", len(changes), 0)

	b.put(t, "repo/changed", "after\n")
	b.put(t, "repo/new\nügly", "new\n")
	b.ok(t, "rm removed && git mv 'old name' 'new name' && git commit -qm 'the name' && mkdir sub && echo x > sub/staged && git add sub")
	b.ok(t, "echo ignored > .gitignore; echo x > ignored")
	changes, err = b.GitChanges(within(t))
	must(t, err)
	var got []string
	for _, c := range changes {
		got = append(got, c.Status+" "+string(c.Path))
	}
	slices.Sort(got)
	want := []string{"A repo/.gitignore", "A repo/new name", "A repo/new\nügly", "A repo/sub/staged", "D repo/old name", "D repo/removed", "M repo/changed"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("changes are %q, want %q", got, want)
	}

	for path, want := range map[string][2]string{
		"repo/changed": {"before\n", "after\n"}, "repo/removed": {"gone\n", "-"}, "repo/new\nügly": {"-", "new\n"}, "repo/same": {"same\n", "same\n"},
	} {
		d, err := b.GitDiff(within(t), []byte(path))
		must(t, err)
		same(t, path+" before", text(d.Original), want[0])
		same(t, path+" now", text(d.Modified), want[1])
	}
	b.put(t, "repo/binary", "\x00\x01\xff")
	b.put(t, "repo/large", strings.Repeat("0123456789abcde\n", 1<<17))
	b.ok(t, "ln -s /etc/passwd out")
	for path, want := range map[string]error{
		"repo/binary": sandbox.ErrBinary, "repo/large": sandbox.ErrTooBig, "../x": sandbox.ErrEscapes, "/etc/passwd": sandbox.ErrEscapes,
	} {
		_, err := b.GitDiff(within(t), []byte(path))
		fails(t, "diff of "+path, err, want)
	}
	if d, err := b.GitDiff(within(t), []byte("repo/out")); err == nil && strings.Contains(text(d.Modified), "root:") {
		t.Error("a link out of the workspace was followed")
	}
}

func text(s *string) string {
	if s == nil {
		return "-"
	}
	return *s
}

// withoutGit: that there is no git is said, and nothing hangs.
func withoutGit(t *testing.T, o Options) {
	b := open(t, o, sandbox.Spec{}, nil)
	must(t, b.Mkdir(within(t), at(".git")))
	if _, err := b.GitChanges(within(t)); err == nil {
		t.Error("changes were found without git; is it inside after all?")
	}
}

// mounts: folders of this machine under other names.
func mounts(t *testing.T, o Options) {
	dir, err := os.MkdirTemp("", "sbx-mount-")
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o755))
	for name, mode := range map[string]os.FileMode{"fixed": 0o755, "open": 0o777} {
		must(t, os.Mkdir(filepath.Join(dir, name), mode))
		must(t, os.Chmod(filepath.Join(dir, name), mode))
		must(t, os.WriteFile(filepath.Join(dir, name, "file"), []byte("of the host\n"), 0o644))
	}
	b := open(t, o, sandbox.Spec{Mounts: []sandbox.Mount{
		{Source: filepath.Join(dir, "fixed"), Target: "/mnt/fixed", ReadOnly: true},
		{Source: filepath.Join(dir, "open"), Target: "/mnt/open"},
	}}, nil)
	same(t, "what is shown", b.ok(t, "cat /mnt/fixed/file /mnt/open/file"), "of the host\nof the host")
	for _, text := range []string{"echo x > /mnt/fixed/new", "rm -f /mnt/fixed/file", "chmod 777 /mnt/fixed"} {
		if r := b.sh(t, "%s", text); r.Exit == 0 {
			t.Errorf("%s changed what is read-only", text)
		}
	}
	b.ok(t, "echo from inside > /mnt/open/new")
	written, err := os.ReadFile(filepath.Join(dir, "open", "new"))
	must(t, err)
	same(t, "what was written", string(written), "from inside\n")
	found := map[string]bool{}
	must(t, filepath.WalkDir(dir, func(p string, _ os.DirEntry, err error) error { found[strings.TrimPrefix(p, dir)] = true; return err }))
	same(t, "files", strings.Join(slices.Sorted(maps.Keys(found)), " "), " /fixed /fixed/file /open /open/file /open/new")
}
