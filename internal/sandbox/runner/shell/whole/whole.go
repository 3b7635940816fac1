// Package whole keeps the whole of long outputs in files that the sandbox can read.
package whole

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/sandbox/runner/hide"
)

const (
	// Max is how much of one output is kept in a file.
	Max = 64 << 20
	// maxKept bounds all such files together; the oldest go first.
	maxKept      = 256 << 20
	maxKeptFiles = 200
	keptPrefix   = "output-"
)

// Folder is the folder of whole outputs. What runs in the sandbox may read it and
// perhaps write it, so files are only ever made new, and never through links.
type Folder struct {
	seen    string          // what processes call the folder
	secrets func() []string // what must not be written
	root    *os.Root
	mu      sync.Mutex
}

// Open makes the folder, which processes call seen, if it is missing. The values of secrets
// are replaced in its files; secrets may be nil.
func Open(dir, seen string, secrets func() []string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{seen: seen, secrets: secrets, root: root}, nil
}

// Close closes the folder; its files stay.
func (k *Folder) Close() { k.root.Close() }

// Create makes the file for an output. If that fails the output goes on without.
func (k *Folder) Create() *File {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prune()
	name := keptPrefix + time.Now().UTC().Format("20060102-150405") + "-" + rand.Text() + ".txt"
	f, err := k.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	w := &File{file: f, Name: filepath.Join(k.seen, name), err: err}
	if k.secrets != nil {
		w.hide = hide.New(k.secrets())
	}
	return w
}

// prune makes room for one more.
func (k *Folder) prune() {
	files, err := fs.ReadDir(k.root.FS(), ".")
	if err != nil {
		return
	}
	type kept struct {
		name string
		size int64
		time time.Time
	}
	var all []kept
	var sum int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || !strings.HasPrefix(f.Name(), keptPrefix) {
			continue
		}
		all = append(all, kept{f.Name(), info.Size(), info.ModTime()})
		sum += info.Size()
	}
	slices.SortFunc(all, func(a, b kept) int { return a.time.Compare(b.time) })
	for i, f := range all {
		if sum <= maxKept-Max && len(all)-i < maxKeptFiles {
			return
		}
		_ = k.root.Remove(f.name)
		sum -= f.size
	}
}

// File is the file of one output.
type File struct {
	file *os.File
	Name string // as processes call it, "" after Close if it could not be kept
	size int64
	more int64 // what was left out
	hide *hide.Hider
	err  error
}

// Add writes more of the output.
func (w *File) Add(b []byte) {
	if w.hide != nil {
		b = w.hide.Add(b)
	}
	w.write(b)
}

func (w *File) write(b []byte) {
	n := min(Max-w.size, int64(len(b)))
	w.more += int64(len(b)) - n
	if w.err != nil || n == 0 {
		return
	}
	_, w.err = w.file.Write(b[:n])
	w.size += n
}

// Close ends the file and says what a reader of it should know.
func (w *File) Close() string {
	if w.file != nil {
		if w.hide != nil {
			w.write(w.hide.End())
		}
		_ = w.file.Close()
		w.file = nil
	}
	switch {
	case w.err != nil:
		w.Name = ""
		return fmt.Sprintf("the whole output could not be kept: %v", w.err)
	case w.more > 0:
		return fmt.Sprintf("the file with the output has only its first %d MiB", int64(Max>>20))
	}
	return ""
}
