package prompt

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
)

// History has earlier prompts of this and other sessions. Each entry is a line of JSON in a
// file that only the user can read.
type History struct {
	file    string
	entries []string
	// back is the number of entries that the user went back, and draft the text typed before that.
	back  int
	draft string
}

// Limits of the history.
const (
	maxEntries   = 1000
	maxEntrySize = 64 << 10
)

// OpenHistory reads the history. A file that cannot be read is treated as empty.
func OpenHistory(dataDir string) *History {
	h := &History{file: filepath.Join(dataDir, "history.jsonl")}
	f, err := os.Open(h.file)
	if err != nil {
		return h
	}
	defer f.Close()
	lines, total := bufio.NewScanner(f), 0
	lines.Buffer(nil, 2*maxEntrySize)
	for lines.Scan() {
		var entry string
		if json.Unmarshal(lines.Bytes(), &entry) == nil {
			h.remember(entry)
		}
		total++
	}
	if total > 2*maxEntries {
		h.rewrite()
	}
	return h
}

func (h *History) remember(entry string) {
	if n := len(h.entries); n > 0 && h.entries[n-1] == entry {
		return
	}
	h.entries = append(h.entries, entry)
	h.entries = h.entries[max(0, len(h.entries)-maxEntries):]
}

// Add appends an entry. Write errors are ignored: they do not affect the session.
func (h *History) Add(entry string) {
	h.back = 0
	if entry == "" || len(entry) > maxEntrySize {
		return
	}
	h.remember(entry)
	f, err := os.OpenFile(h.file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	line, _ := json.Marshal(entry) // a string is always JSON
	_, _ = f.Write(append(line, '\n'))
}

// rewrite truncates the file to the entries in memory.
func (h *History) rewrite() {
	var all []byte
	for _, entry := range h.entries {
		line, _ := json.Marshal(entry) // a string is always JSON
		all = append(append(all, line...), '\n')
	}
	if next := h.file + ".new"; os.WriteFile(next, all, 0o600) == nil {
		_ = os.Rename(next, h.file)
	}
}

// Older returns the entry before the one that is shown; now is the typed text.
func (h *History) Older(now string) (string, bool) {
	if h.back == len(h.entries) {
		return "", false
	}
	if h.back == 0 {
		h.draft = now
	}
	h.back++
	return h.entries[len(h.entries)-h.back], true
}

// Newer returns the entry after it, or the text typed before.
func (h *History) Newer() (string, bool) {
	if h.back == 0 {
		return "", false
	}
	if h.back--; h.back == 0 {
		return h.draft, true
	}
	return h.entries[len(h.entries)-h.back], true
}
