package prompt

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"deckhand/internal/gitignore"
)

// Limits on the number of listed files and of results.
const (
	maxFiles = 20_000
	MaxFound = 8
)

// Files lists the files of a folder with forward slashes, without .git and files that its .gitignore
// ignores. Folders end with a slash. Links are not followed.
func Files(folder string) []string {
	text, _ := os.ReadFile(filepath.Join(folder, ".gitignore")) // optional
	hidden := gitignore.Parse(string(text))
	var out []string
	_ = filepath.WalkDir(folder, func(at string, e fs.DirEntry, err error) error {
		name, relErr := filepath.Rel(folder, at)
		if err != nil || relErr != nil || name == "." {
			return nil // a folder that cannot be read has no files to mention
		}
		name = filepath.ToSlash(name)
		if e.Name() == ".git" || hidden.Hides(name, e.IsDir()) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if e.IsDir() {
			name += "/"
		}
		if out = append(out, name); len(out) >= maxFiles {
			return fs.SkipAll
		}
		return nil
	})
	return out
}

// Rank returns the names that match the typed text, best first: names whose last part starts with it,
// names that contain it, and names that contain its letters in order.
func Rank(names []string, typed string) []string {
	typed = strings.ToLower(typed)
	type match struct {
		name  string
		score int
	}
	var found []match
	for _, name := range names {
		lower := strings.ToLower(name)
		base := path.Base(lower)
		score := 0
		switch {
		case typed == "":
			score = strings.Count(strings.TrimSuffix(name, "/"), "/")
		case strings.HasPrefix(lower, typed):
			score = 0
		case strings.HasPrefix(base, typed):
			score = 1
		case strings.Contains(lower, typed):
			score = 2
		case inOrder(lower, typed):
			score = 3
		default:
			continue
		}
		found = append(found, match{name, score})
	}
	slices.SortStableFunc(found, func(a, b match) int {
		if a.score != b.score {
			return a.score - b.score
		}
		if len(a.name) != len(b.name) {
			return len(a.name) - len(b.name)
		}
		return strings.Compare(a.name, b.name)
	})
	out := make([]string, 0, MaxFound)
	for _, m := range found[:min(len(found), MaxFound)] {
		out = append(out, m.name)
	}
	return out
}

// inOrder reports whether the letters of typed are in text, in this order.
func inOrder(text, typed string) bool {
	for _, r := range typed {
		at := strings.IndexRune(text, r)
		if at < 0 {
			return false
		}
		text = text[at+len(string(r)):]
	}
	return true
}

// Nearest returns the name that differs from the typed one in at most two letters, or starts with it; "" if there is none.
func Nearest(names []string, typed string) string {
	best, found := 3, ""
	for _, name := range names {
		n := distance(name, typed)
		if strings.HasPrefix(name, typed) {
			n = 0
		}
		if n < best && n < len(name) {
			best, found = n, name
		}
	}
	return found
}

// distance returns the edit distance of two texts.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := before
			if a[i] != b[j] {
				next = min(before, row[j], row[j+1]) + 1
			}
			before, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// MentionAt returns the start of the mention at the end of a text, -1 if there is none. In quotes, a name may have spaces.
func MentionAt(text string) int {
	at := strings.LastIndexByte(text, '@')
	if at < 0 || at > 0 && !strings.ContainsRune(" \n\t(\"'", rune(text[at-1])) {
		return -1
	}
	name, ends := text[at+1:], " \n\t"
	if quoted, ok := strings.CutPrefix(name, `"`); ok {
		name, ends = quoted, "\n\""
	}
	if strings.ContainsAny(name, ends) {
		return -1
	}
	return at
}

// Mention returns the text that mentions a file.
func Mention(name string) string {
	if strings.ContainsAny(name, " \t") {
		return `@"` + name + `"`
	}
	return "@" + name
}

// Mentioned returns the part of the name that was typed after the mention at a position.
func Mentioned(text string, at int) string { return strings.TrimPrefix(text[at+1:], `"`) }
