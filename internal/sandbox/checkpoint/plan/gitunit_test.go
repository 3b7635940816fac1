package plan

import (
	"strings"
	"testing"
)

// What is in a .git folder belongs to one of four groups.
func TestInGit(t *testing.T) {
	t.Parallel()
	for p, want := range map[string]part{".git/HEAD": gitHistory, "a/.git/refs/heads/logs": gitHistory, ".git/refs/heads/x.lock": gitState, ".git/packed-refs": gitHistory, ".git/MERGE_HEAD": gitHistory,
		".git/FETCH_HEAD": gitState, ".git/index": gitState, ".git/logs/HEAD": gitState, ".git/objects/ab/cd": gitObjects, ".git/config": gitSettings, ".git/hooks/x": gitSettings,
		".git/modules/a/b/HEAD": gitHistory, ".git/modules/a/objects/x": gitObjects, ".git/worktrees/w/HEAD": gitHistory, ".git/worktrees/w/index": gitState, ".git/other": gitState, ".git": gitState} {
		if git, got := inGit(p); got != want || !strings.HasSuffix(git, ".git") {
			t.Errorf("%s: %q, %d, want %d", p, git, got, want)
		}
	}
	for _, p := range []string{"a", ".gitignore", "x.git/HEAD", "a/.github/x"} {
		if git, _ := inGit(p); git != "" {
			t.Errorf("%s is in %q", p, git)
		}
	}
}
