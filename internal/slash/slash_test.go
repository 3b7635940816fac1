package slash_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"deckhand/internal/slash"
)

func TestCommandsOfARepository(t *testing.T) {
	t.Parallel()
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	repo := fstest.MapFS{
		".deckhand/commands/fix.md":     file("---\ndescription: \"Fix an issue\"\nargument-hint: [number]\n---\nFix issue $1 as $ARGUMENTS says.\n"),
		".deckhand/commands/db/dump.md": file("# Dump the database\nNow."),
		".deckhand/commands/review.md":  file("Our own review."),
		".deckhand/commands/empty.md":   file(" \n"),
		".deckhand/commands/note.txt":   file("no command"),
		".deckhand/commands/big.md":     file(strings.Repeat("x", 65<<10)),
		".deckhand/commands/a b.md":     file("no name"),
		".deckhand/commands/plan.md":    file("Our own plan."),
		".deckhand/commands/mine.md":    file("The repository's."),
		".claude/commands/fix.md":       file("hidden"),
		".claude/commands/ship.md":      file("Ship it."),
	}
	got, err := slash.List(t.Context(), map[string]string{"mine": "---\ndescription: My own\n---\nMine: $1", "quit": "never", "blank": " "}, repo)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]slash.Command{}
	var names []string
	for _, c := range got {
		by[c.Name] = c
		names = append(names, c.Name)
	}
	if all := strings.Join(names, " "); all != "db:dump fix init mine repo:mine repo:plan repo:review review ship" {
		t.Errorf("the commands are %s", all)
	}
	if c := by["fix"]; c.Description != "Fix an issue" || c.Hint != "[number]" || c.File != ".deckhand/commands/fix.md" {
		t.Errorf("fix is %+v", c)
	}
	if c := by["db:dump"]; c.Description != "Dump the database" {
		t.Errorf("db:dump is %+v", c)
	}
	if c := by["review"]; c.File != "" || by["repo:review"].Text != "Our own review." {
		t.Errorf("the repository's review takes the place of the built-in one: %+v", c)
	}
	if c := by["mine"]; !c.Own || c.Text != "Mine: $1" || c.Description != "My own" || by["repo:mine"].Text != "The repository's." {
		t.Errorf("the user's own command is %+v", c)
	}
	if none, err := slash.List(t.Context(), nil, nil); err != nil || len(none) != 2 {
		t.Errorf("without a repository: %v, %v", none, err)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, arguments, want string }{
		{"Fix $1 in $2.", `12 "the parser"`, "Fix 12 in the parser."},
		{"Fix $1 in $2.", "12", "Fix 12 in ."},
		{"Do $ARGUMENTS!", " a  b ", "Do a  b!"},
		{"Say $1", "$2 x", "Say $2"},
		{"No place.", "but this", "No place.\n\nbut this"},
		{"No place.", "", "No place."},
		{"It costs $100", "", "It costs $100"},
	} {
		if got := (slash.Command{Text: c.text}).Expand(c.arguments); got != c.want {
			t.Errorf("%q with %q is %q, want %q", c.text, c.arguments, got, c.want)
		}
	}
}
