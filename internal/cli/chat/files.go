package chat

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"deckhand/internal/gitignore"
)

// Limits on the list of files.
const (
	maxFiles = 20_000
	maxFound = 8
)

// localFiles lists the files of a folder with forward slashes, without .git and files that its .gitignore
// ignores. Folders end with a slash. Links are not followed.
func localFiles(folder string) []string {
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

// files lists files to mention: all files of the folder, or on another server those in the folder
// given by the prefix.
func (s *conversation) files(ctx context.Context, id, prefix string) []string {
	if s.Elsewhere == "" {
		return localFiles(s.Folder)
	}
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	folder, _ := path.Split(prefix)
	found, _ := s.Client.ListFiles(ctx, id, folder) // without a list there is nothing to complete
	return found
}

// rank returns the names that match the typed text, best first: those whose last part begins with it,
// those that contain it, and those that have its letters in order.
func rank(names []string, typed string) []string {
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
	out := make([]string, 0, maxFound)
	for _, m := range found[:min(len(found), maxFound)] {
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
