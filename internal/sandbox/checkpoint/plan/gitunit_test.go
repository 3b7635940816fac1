package plan

import (
	"strings"
	"testing"

	"deckhand/internal/sandbox/checkpoint/record"
)

// What is in a git folder belongs to one of five groups.
func TestInGit(t *testing.T) {
	t.Parallel()
	st := record.State{}
	for _, dir := range []string{".git/modules/a/b", ".git/modules/config", ".git/modules/config/modules/index", ".git/modules/objects", "hub.git", "deep/away"} {
		st[dir+"/HEAD"] = &record.Entry{Kind: record.File}
		st[dir+"/objects"], st[dir+"/refs"] = &record.Entry{Kind: record.Folder}, &record.Entry{Kind: record.Folder}
	}
	st["half/HEAD"], st["half/objects"] = &record.Entry{Kind: record.File}, &record.Entry{Kind: record.Folder}
	var l Layout
	l.Add(st)
	hash := strings.Repeat("c", 38)
	for p, want := range map[string]part{".git/HEAD": gitHistory, "a/.git/refs/heads/logs": gitHistory, ".git/refs/heads/x.lock": gitState, ".git/packed-refs": gitHistory, ".git/MERGE_HEAD": gitHistory,
		".git/FETCH_HEAD": gitState, ".git/index": gitIndex, ".git/logs/HEAD": gitState, ".git/objects/ab/" + hash: gitObjects, ".git/config": gitSettings, ".git/hooks/x": gitSettings,
		".git/objects/info/alternates": gitSettings, ".git/objects/other": gitSettings, ".git/objects/pack/x.pack": gitObjects, ".git/modules": gitState, ".git/modules/config": gitState,
		".git/modules/a/b/HEAD": gitHistory, ".git/modules/a/b/objects/ab/" + hash: gitObjects, ".git/modules/a/b/index": gitIndex, ".git/modules/a": gitState,
		".git/modules/config/objects/ab/" + hash: gitObjects, ".git/modules/config/config": gitSettings, ".git/modules/config/refs/heads/config": gitHistory,
		".git/modules/config/modules/index/objects/pack/p": gitObjects, ".git/modules/config/modules/index/HEAD": gitHistory, ".git/modules/objects/HEAD": gitHistory,
		".git/worktrees/w/HEAD": gitHistory, ".git/worktrees/config/index": gitIndex, ".git/worktrees/HEAD/logs/HEAD": gitState, ".git/other": gitState, ".git": gitState,
		"hub.git/HEAD": gitHistory, "hub.git/objects/ab/" + hash: gitObjects, "deep/away/index": gitIndex, "deep/away/config": gitSettings, "hub.git/worktrees/w/HEAD": gitHistory} {
		if git, got := l.in(p); got != want || git != ".git" && git != "a/.git" && git != "hub.git" && git != "deep/away" {
			t.Errorf("%s: %q, %d, want %d", p, git, got, want)
		}
	}
	for _, p := range []string{"a", ".gitignore", "x.git/HEAD", "a/.github/x", "half/HEAD", "hub.git", "hub.git/README", "hub.git/logs/server.log", "deep/HEAD"} {
		if git, _ := l.in(p); git != "" {
			t.Errorf("%s is in %q", p, git)
		}
	}
}
