// Package slash implements slash commands: built-in prompts, the user's own, and Markdown files in a repository, with
// placeholders for arguments.
package slash

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"deckhand/internal/clip"
)

// Command is a prompt with a name.
type Command struct {
	Name        string
	Description string
	// Hint describes the arguments.
	Hint string
	// Text may have $ARGUMENTS, and $1 to $9.
	Text string
	// File is the file of a repository's command, "" for other commands. Own is true for a command in the user's settings.
	File string
	Own  bool
}

// Folders are the folders of a repository with commands. A name in an earlier folder hides the same name in a later one.
var Folders = []string{".deckhand/commands", ".claude/commands"}

const (
	maxCommands = 200
	maxLine     = 200
	// MaxText is the maximum size of a command in bytes.
	MaxText = 64 << 10
	// repository is the prefix of a repository's command whose name is taken.
	repository = "repo:"
)

// builtin are the built-in commands.
var builtin = []Command{
	{Name: "review", Description: "Review the uncommitted changes", Hint: "[focus]",
		Text: "Review the uncommitted changes in this workspace (git status, git diff). Look for bugs, missing error handling, security problems and missing tests. " +
			"Report each finding with its file, line, why it matters and how to fix it, the most serious first. Do not change any file. $ARGUMENTS"},
	{Name: "init", Description: "Write AGENTS.md for this repository", Hint: "",
		Text: "Look at this repository and write AGENTS.md: how to build, test and lint it, how the code is organised, and the conventions a contributor must follow. " +
			"Keep it under 60 lines. If the file exists, improve it. $ARGUMENTS"},
}

// actions are the commands that clients implement, with their aliases.
var actions = []string{"attempts", "clear", "commands", "compact", "continue", "diff", "exit", "help", "model", "new", "pause", "plan", "q", "quit", "redo", "rename",
	"resume", "search", "sessions", "status", "stop", "title", "undo"}

// Reserved reports whether a name belongs to a built-in command.
func Reserved(name string) bool {
	return slices.Contains(actions, name) || slices.ContainsFunc(builtin, func(c Command) bool { return c.Name == name })
}

// List returns the built-in commands, the user's own by name, and those of a repository, sorted by name. repo may be nil. A
// file that cannot be read is left out. Built-in commands and the user's own keep their names: a file of the same name is
// listed with the prefix "repo:".
func List(ctx context.Context, own map[string]string, repo fs.FS) ([]Command, error) {
	found := slices.Clone(builtin)
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if c := Parse(name, own[name]); c.Text != "" && !Reserved(name) {
			c.Own = true
			found = append(found, c)
		}
	}
	if repo != nil {
		for _, folder := range Folders {
			if err := read(ctx, repo, folder, "", &found); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(found, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// ValidName reports whether a command may have this name.
func ValidName(name string) bool { return nameForm.MatchString(name) }

// read adds the commands of a folder, and of the folders in it: a/b.md is the command a:b.
func read(ctx context.Context, repo fs.FS, folder, prefix string, into *[]Command) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(repo, folder)
	if err != nil {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		return nil // most repositories have no such folder
	}
	for _, e := range entries {
		base, isCommand := strings.CutSuffix(e.Name(), ".md")
		if len(*into) >= maxCommands || !ValidName(base) {
			continue
		}
		at, name := path.Join(folder, e.Name()), prefix+base
		if Reserved(name) || slices.ContainsFunc(*into, func(c Command) bool { return c.Name == name && c.Own }) {
			name = repository + name
		}
		switch {
		case e.IsDir() && prefix == "":
			if err := read(ctx, repo, at, base+":", into); err != nil {
				return err
			}
		case e.Type().IsRegular() && isCommand && !slices.ContainsFunc(*into, func(c Command) bool { return c.Name == name }):
			if c, ok := load(repo, at, name); ok {
				*into = append(*into, c)
			}
		}
	}
	return nil
}

func load(repo fs.FS, file, name string) (Command, bool) {
	f, err := repo.Open(file)
	if err != nil {
		return Command{}, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, MaxText+1))
	if err != nil || len(b) > MaxText {
		return Command{}, false
	}
	c := Parse(name, string(b))
	c.File = file
	return c, c.Text != ""
}

// Parse reads a command file: Markdown, after optional front matter with the lines description and argument-hint.
func Parse(name, text string) Command {
	c := Command{Name: name}
	text = strings.ReplaceAll(strings.ToValidUTF8(strings.TrimPrefix(text, "\ufeff"), "\ufffd"), "\r\n", "\n")
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		if front, body, ok := strings.Cut(rest, "\n---\n"); ok {
			text = body
			for line := range strings.Lines(front) {
				key, value, _ := strings.Cut(line, ":")
				value = clip.Runes(strings.Trim(strings.TrimSpace(value), `"'`), maxLine)
				switch strings.TrimSpace(key) {
				case "description":
					c.Description = value
				case "argument-hint":
					c.Hint = value
				}
			}
		}
	}
	c.Text = strings.TrimSpace(text)
	if c.Description == "" {
		first, _, _ := strings.Cut(c.Text, "\n")
		c.Description = clip.Runes(strings.TrimSpace(strings.TrimLeft(first, "# ")), maxLine)
	}
	return c
}

var place = regexp.MustCompile(`\$(?:ARGUMENTS|[1-9])\b`)

// Expand replaces the placeholders in the text. If there are none, the arguments are appended.
func (c Command) Expand(arguments string) string {
	arguments = strings.TrimSpace(arguments)
	words := split(arguments)
	if !place.MatchString(c.Text) {
		return strings.TrimSpace(c.Text + "\n\n" + arguments)
	}
	return strings.TrimSpace(place.ReplaceAllStringFunc(c.Text, func(found string) string {
		if found == "$ARGUMENTS" {
			return arguments
		}
		if n, _ := strconv.Atoi(found[1:]); n <= len(words) {
			return words[n-1]
		}
		return ""
	}))
}

// split splits a text at spaces, but not within quotes.
func split(s string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				words, open = append(words, word.String()), false
				word.Reset()
			}
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words
}
