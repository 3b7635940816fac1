package knowledge_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"deckhand/internal/knowledge"
)

// repo is a repository in memory.
func repo(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644, ModTime: time.Unix(1e9, 0)}
	}
	return out
}

// folders is a library whose folders hold these files; names begin with server/ or users/.
func folders(t testing.TB, files map[string]string) *knowledge.Library {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return &knowledge.Library{Global: filepath.Join(dir, "server"), Users: filepath.Join(dir, "users")}
}

func put(t testing.TB, at, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func recall(t testing.TB, l *knowledge.Library, r knowledge.Request) knowledge.Recalled {
	t.Helper()
	got, err := l.Recall(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// first is what a conversation in a repository begins with.
func first(t testing.TB, files fs.FS, message string) knowledge.Recalled {
	t.Helper()
	return recall(t, &knowledge.Library{}, knowledge.Request{Scope: knowledge.Scope{Repo: files}, First: true, Message: message})
}

func list(t testing.TB, l *knowledge.Library, s knowledge.Scope) map[string]knowledge.Microagent {
	t.Helper()
	all, err := l.List(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]knowledge.Microagent{}
	for _, m := range all {
		if _, ok := out[m.Name]; ok {
			t.Errorf("%s is there twice", m.Name)
		}
		if m.Source != knowledge.BuiltIn {
			out[m.Name] = m
		}
	}
	return out
}

// mine are the items that are not the program's own.
func mine(items []knowledge.Item) []knowledge.Item {
	var out []knowledge.Item
	for _, i := range items {
		if i.Source != knowledge.BuiltIn {
			out = append(out, i)
		}
	}
	return out
}

func has(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in %q", p, shorten(text))
		}
	}
}

func hasNot(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if strings.Contains(text, p) {
			t.Errorf("%q is in %q", p, shorten(text))
		}
	}
}

func shorten(s string) string { return s[:min(len(s), 2000)] }

// problem finds what is said of a file.
func problem(t testing.TB, all []knowledge.Problem, file string) string {
	t.Helper()
	for _, p := range all {
		if strings.HasSuffix(p.File, file) {
			return p.Sentence
		}
	}
	return ""
}

// counted counts how often files are opened to be read.
type counted struct {
	fstest.MapFS
	opened atomic.Int64
}

func (c *counted) Open(name string) (fs.File, error) { c.opened.Add(1); return c.MapFS.Open(name) }

// broken is a repository that cannot be read.
type broken struct{ err error }

func (b broken) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: b.err}
}
