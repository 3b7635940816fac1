package gitview

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// review lists a range in short: status, path, counts, and s or u for staged and unstaged.
func (s *space) review(in sandbox.GitRange) []string {
	s.Helper()
	got, err := s.Review(s.Context(), in)
	s.ok(err)
	out := []string{}
	for _, f := range got.Files {
		line := fmt.Sprintf("%s %s +%d -%d", f.Status, f.Path, f.Added, f.Removed)
		if f.From != nil {
			line += " from " + string(f.From)
		}
		for _, mark := range []struct {
			on   bool
			text string
		}{{f.Binary, " binary"}, {f.Staged, " s"}, {f.Unstaged, " u"}} {
			if mark.on {
				line += mark.text
			}
		}
		out = append(out, line)
	}
	return out
}

func (s *space) wantReview(kind string, want ...string) {
	s.Helper()
	if got := s.review(sandbox.GitRange{Kind: kind}); !slices.Equal(got, want) {
		s.Errorf("%s:\ngot  %q\nwant %q", kind, got, want)
	}
}

func (s *space) read(name string) string {
	s.Helper()
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "-"
	}
	s.ok(err)
	return string(b)
}

// revert reverts the files of a range as a review shows them now; without names, all.
func (s *space) revert(kind string, names ...string) error {
	s.Helper()
	got, err := s.Review(s.Context(), sandbox.GitRange{Kind: kind})
	s.ok(err)
	p := sandbox.GitRevertParams{GitRange: sandbox.GitRange{Kind: kind}}
	for _, f := range got.Files {
		if len(names) == 0 || slices.Contains(names, string(f.Path)) {
			p.Files = append(p.Files, sandbox.GitRevertFile{Path: f.Path, From: f.From, ETag: f.ETag})
		}
	}
	return s.Revert(s.Context(), p)
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

// Counts, renames of files that git does not know yet, binary files, and where each was changed.
func TestReviewCountsAndRenames(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("", "same", "edited", "gone")
	s.put("long", lines(40))
	s.put("staged name", lines(50)+"other\n")
	s.put("picture.png", "\x89PNG\x00\x01")
	s.commit("")
	s.git("", "push", "-q")
	index := s.read(".git/index")
	s.ok(os.Rename(filepath.Join(s.dir, "long"), filepath.Join(s.dir, "renamed: 1\t2")))
	s.put("renamed: 1\t2", lines(40)+"more\n")
	s.put("edited", "one\ntwo\n")
	s.remove("gone")
	s.put("picture.png", "\x89PNG\x00\x02")
	s.put("new", "a\nb\nc\n")
	s.wantReview("upstream",
		"M edited +2 -1 u", "D gone +0 -1 u", "A new +3 -0 u", "M picture.png +0 -0 binary u", "R renamed: 1\t2 +1 -0 from long u")
	if s.read(".git/index") != index {
		t.Error("the review wrote to the index")
	}
	s.git("", "mv", "staged name", "moved")
	s.put("edited", "one\nthree\n")
	s.git("", "add", "edited")
	s.put("edited", "one\nthree\nfour\n")
	s.wantReview("staged", "M edited +2 -1 s u", "R moved +0 -0 from staged name s")
	s.wantReview("unstaged", "M edited +1 -0 s u", "D gone +0 -1 u", "A new +3 -0 u", "M picture.png +0 -0 binary u", "R renamed: 1\t2 +1 -0 from long u")
	s.commit("")
	s.wantReview("head")
	if got := s.review(sandbox.GitRange{Kind: "branch", Branch: "main"}); len(got) != 6 {
		t.Errorf("against origin's main: %q", got)
	}
	if _, err := s.Review(t.Context(), sandbox.GitRange{Kind: "branch", Branch: "--all"}); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("an unknown branch is %v", err)
	}
}

// The last turn and the start of the conversation, whatever was committed or pushed since.
func TestReviewOfATurn(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("app", "a", "b")
	s.put("app/left over", "by a set-up script\n")
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 3, First: true}))
	s.put("app/a", "first turn\n")
	s.commit("app")
	s.git("app", "push", "-q")
	s.put("app/untracked", "first\n")
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 9}))
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 9})) // a second call of the turn changes nothing
	s.put("app/b", "second turn\n")
	s.put("app/untracked", "second\n")
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 9}))
	s.wantReview("turn", "M app/b +1 -1 u", "M app/untracked +1 -1 u")
	s.wantReview("start", "M app/a +1 -1", "M app/b +1 -1 u", "A app/untracked +1 -0 u")
	if got := s.git("app", "status", "--porcelain"); got != "M b\n?? untracked" {
		t.Errorf("marking changed the repository: %q", got)
	}
	s.ok(s.revert("turn"))
	if got := s.read("app/b") + s.read("app/untracked") + s.read("app/a"); got != "original b\nfirst\nfirst turn\n" {
		t.Errorf("the files are %q", got)
	}
	s.put("app/big", strings.Repeat("x", maxMarkedSize+1))
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 12}))
	if s.read("app/"+marksFile) != "-" {
		t.Error("a turn that was not recorded has the mark of an earlier one")
	}
}

// Without a remote, the work is compared with the start of the conversation, and before its first call with the default branch
// or the last commit. The next conversation in the same folder has a start of its own.
func TestReviewWithoutARemote(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.git("", "init", "-q", "-b", "main")
	s.put("a", "a\n")
	s.put("b", "b\n")
	s.commit("")
	s.want()
	s.put("mine", "uncommitted\n")
	s.want("A mine")
	s.git("", "checkout", "-qb", "work")
	s.put("c", "c\n")
	s.git("", "add", "c")
	s.git("", "commit", "-qm", "c")
	s.want("A c", "A mine") // since the work left main
	s.git("", "branch", "-qm", "main", "trunk")
	s.want("A mine") // since the last commit
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 2, First: true, Conversation: "one"}))
	s.put("a", "changed\n")
	s.commit("")
	s.want("M a")
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 2, First: true, Conversation: "one"}))
	s.want("M a")
	next := New(Config{Spawner: spawner, Workspace: s.dir, Env: s.environ})
	s.ok(next.Mark(t.Context(), sandbox.GitMarkParams{Turn: 2, First: true, Conversation: "two"}))
	s.want()
	s.put("b", "changed\n")
	s.want("M b")
}

// A repository that the agent creates is shown whole since the start, and in its turn.
func TestReviewOfACreatedRepository(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	mark := func(turn int64, first bool) {
		t.Helper()
		s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: turn, First: first}))
	}
	mark(2, true)
	s.put("app/a", "a\n")
	s.git("app", "init", "-q")
	s.commit("app")
	s.put("app/b", "b\n")
	both := []string{"A app/a +1 -0", "A app/b +1 -0 u"}
	s.wantReview("start", both...)
	s.wantReview("turn", both...)
	mark(2, true) // by a server that was restarted
	s.wantReview("start", both...)
	s.wantReview("turn", both...)
	s.commit("app")
	mark(7, false)
	s.put("app/c", "c\n")
	s.commit("app")
	s.wantReview("turn", "A app/c +1 -0")
	s.wantReview("start", "A app/a +1 -0", "A app/b +1 -0", "A app/c +1 -0")

	// The same if the sandbox was restarted, and the turn in which it was created is not known.
	s.View = New(s.View.config)
	s.put("other/d", "d\n")
	s.git("other", "init", "-q")
	s.commit("other")
	mark(9, false)
	s.put("other/e", "e\n")
	s.wantReview("turn", "A other/e +1 -0 u")
	s.wantReview("start", "A app/a +1 -0", "A app/b +1 -0", "A app/c +1 -0", "A other/d +1 -0", "A other/e +1 -0 u")

	// One without a commit that is there from the start is the user's.
	s = newSpace(t)
	s.git("", "init", "-q")
	s.put("mine", "mine\n")
	mark(2, true)
	s.put("new", "new\n")
	s.commit("")
	mark(5, false)
	s.wantReview("start", "A new +1 -0")
}

// Files that changed since they were shown are left alone, and so is everything else that was to be reverted.
func TestRevert(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("", "edited", "gone", "old name", "other")
	s.ok(os.Chmod(filepath.Join(s.dir, "other"), 0o755))
	s.put("edited", "new\n")
	s.git("", "add", "edited")
	s.remove("gone")
	s.ok(os.Rename(filepath.Join(s.dir, "old name"), filepath.Join(s.dir, "new name")))
	s.put("deep/er/new", "x\n")
	got, err := s.Review(t.Context(), sandbox.GitRange{})
	s.ok(err)
	p := sandbox.GitRevertParams{}
	for _, f := range got.Files {
		p.Files = append(p.Files, sandbox.GitRevertFile{Path: f.Path, From: f.From, ETag: f.ETag})
	}
	s.put("deep/er/new", "y changed\n")
	if err := s.Revert(t.Context(), p); !errors.Is(err, rpc.ErrChanged) {
		t.Fatalf("a file that has changed: %v", err)
	}
	if s.read("edited") != "new\n" || s.read("gone") != "-" {
		t.Error("others were reverted")
	}
	c, err := s.Compare(t.Context(), sandbox.GitCompareParams{Path: []byte("edited")})
	s.ok(err)
	s.ok(s.Revert(t.Context(), sandbox.GitRevertParams{Files: []sandbox.GitRevertFile{{Path: []byte("edited"), ETag: c.ETag}}}))
	s.wantReview("", "A deep/er/new +1 -0 u", "D gone +0 -1 u", "R new name +0 -0 from old name u", "M other +0 -0 u")
	s.ok(s.revert(""))
	s.wantReview("")
	if _, err := os.Stat(filepath.Join(s.dir, "deep")); err == nil {
		t.Error("an empty folder is left")
	}
	if got := s.git("", "status", "--porcelain"); got != "" {
		t.Errorf("status is %q", got)
	}
	s.put(".git/index.lock", "")
	s.put("edited", "again\n")
	if err := s.revert(""); !errors.Is(err, rpc.ErrBusy) {
		t.Errorf("while another git works: %v", err)
	}
	if err := s.Revert(t.Context(), sandbox.GitRevertParams{Files: []sandbox.GitRevertFile{{Path: []byte("../outside")}}}); !errors.Is(err, rpc.ErrEscapes) {
		t.Errorf("a path outside: %v", err)
	}
}

func TestStageAndCommit(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("app", "a", "b")
	for _, hook := range []string{"pre-commit", "prepare-commit-msg", "post-commit"} {
		s.put("app/.git/hooks/"+hook, "#!/bin/sh\ntouch ran\nexit 1\n")
		s.ok(os.Chmod(filepath.Join(s.dir, "app/.git/hooks/"+hook), 0o755))
	}
	s.git("app", "config", "commit.gpgSign", "true")
	s.git("app", "config", "gpg.program", "false")
	s.put("app/a", "changed\n")
	s.put("app/b", "changed\n")
	s.put("app/*", "star\n")
	stage := func(staged bool, names ...string) {
		t.Helper()
		p := sandbox.GitStageParams{Staged: staged}
		for _, n := range names {
			p.Paths = append(p.Paths, []byte(n))
		}
		s.ok(s.Stage(t.Context(), p))
	}
	stage(true, "app/a", "app/*")
	s.wantReview("staged", "A app/* +1 -0 s", "M app/a +1 -1 s")
	stage(false, "app/*", "app/a")
	s.wantReview("staged")
	commit := func(p sandbox.GitCommitParams) (sandbox.GitCommitted, error) {
		p.Repo, p.Name, p.Email = []byte("app"), "Ada L", "ada@example.org"
		return s.Commit(t.Context(), p)
	}
	for _, p := range []sandbox.GitCommitParams{{Message: "x", StagedOnly: true}, {Message: " \n"}, {Message: "x", Branch: "no..branch"}, {Message: "x", Branch: "-x"}} {
		if _, err := commit(p); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("%+v: %v", p, err)
		}
	}
	s.git("app", "reset", "-q")
	stage(true, "app/a")
	done, err := commit(sandbox.GitCommitParams{Message: "Change a\n\n# not a comment", StagedOnly: true, Branch: "work/one"})
	s.ok(err)
	if got := s.git("app", "log", "-1", "--format=%H|%D|%an|%ce|%B"); got != done.Commit+"|HEAD -> work/one|Ada L|ada@example.org|Change a\n\n# not a comment" {
		t.Errorf("the commit is %q", got)
	}
	s.wantReview("head", "A app/* +1 -0 u", "M app/b +1 -1 u")
	_, err = commit(sandbox.GitCommitParams{Message: "The rest"})
	s.ok(err)
	s.wantReview("head")
	if _, err = commit(sandbox.GitCommitParams{Message: "Nothing"}); !errors.Is(err, rpc.ErrInvalid) {
		t.Errorf("nothing to commit: %v", err)
	}
	if s.read("app/ran") != "-" {
		t.Error("a hook ran")
	}
}

// A repository without a commit, in a workspace whose other folder is one too.
func TestFirstCommit(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.git("", "init", "-q")
	s.clone("other", "x")
	s.put("first", "a\n")
	s.wantReview("head", "A first +1 -0 u")
	_, err := s.Commit(t.Context(), sandbox.GitCommitParams{Message: "First", Branch: "trunk", Name: "a", Email: "a@b"})
	s.ok(err)
	if got := s.git("", "ls-tree", "-r", "--name-only", "trunk"); got != "first" {
		t.Errorf("committed is %q", got)
	}
}

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("", "a", "was")
	s.put("a", "staged\n")
	s.git("", "add", "a")
	s.put("a", "now\n")
	s.ok(os.Rename(filepath.Join(s.dir, "was"), filepath.Join(s.dir, "is")))
	s.put("picture.png", "\x89PNG\x00\x01")
	show := func(kind, name, from string) string {
		t.Helper()
		c, err := s.Compare(t.Context(), sandbox.GitCompareParams{GitRange: sandbox.GitRange{Kind: kind}, Path: []byte(name), From: []byte(from)})
		s.ok(err)
		text := func(v *sandbox.GitVersion) string {
			switch {
			case v == nil:
				return "-"
			case v.Text == nil:
				return fmt.Sprintf("%x", v.Data)
			}
			return *v.Text
		}
		return text(c.Original) + "|" + text(c.Modified)
	}
	for _, c := range [][4]string{
		{"", "a", "", "original a\n|now\n"}, {"staged", "a", "", "original a\n|staged\n"}, {"unstaged", "a", "", "staged\n|now\n"},
		{"head", "is", "was", "original was\n|original was\n"}, {"head", "picture.png", "", "-|89504e470001"},
	} {
		if got := show(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s %s: got %q, want %q", c[0], c[1], got, c[3])
		}
	}
	if _, err := s.Compare(t.Context(), sandbox.GitCompareParams{Path: []byte("never")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that never was: %v", err)
	}
}

// A file that changed in the second in which git looked at it, and kept its size.
func TestReviewRightAfterTheIndex(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	s.clone("", "a")
	index := filepath.Join(s.dir, ".git/index")
	at := time.Now().Add(-time.Minute)
	s.ok(os.Chtimes(filepath.Join(s.dir, "a"), at, at))
	s.git("", "config", "core.trustctime", "false")
	s.git("", "update-index", "--refresh")
	s.put("a", "modified a\n")
	for _, name := range []string{filepath.Join(s.dir, "a"), index} {
		s.ok(os.Chtimes(name, at, at))
	}
	s.wantReview("head", "M a +1 -1 u")
	s.ok(s.Mark(t.Context(), sandbox.GitMarkParams{Turn: 1}))
	s.wantReview("turn")
}
