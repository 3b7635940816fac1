package shell

import (
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
	// maxWhole is how much of one output is kept in a file.
	maxWhole = 64 << 20
	// maxKept bounds all such files together; the oldest go first.
	maxKept      = 256 << 20
	maxKeptFiles = 200
	keptPrefix   = "output-"
)

// keep is the folder of whole outputs. What runs in the sandbox may read it and
// perhaps write it, so files are only ever made new, and never through links.
type keep struct {
	seen    string          // what processes call the folder
	secrets func() []string // what must not be written
	root    *os.Root
	mu      sync.Mutex
}

func openKeep(dir, seen string, secrets func() []string) (*keep, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &keep{seen: seen, secrets: secrets, root: root}, nil
}

func (k *keep) close() { k.root.Close() }

// create makes the file for an output. If that fails the output goes on without.
func (k *keep) create() *whole {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prune()
	name := keptPrefix + time.Now().UTC().Format("20060102-150405") + "-" + word() + ".txt"
	f, err := k.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	w := &whole{file: f, name: filepath.Join(k.seen, name), err: err}
	if k.secrets != nil {
		w.hide = hide.New(k.secrets())
	}
	return w
}

// prune makes room for one more.
func (k *keep) prune() {
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
		if sum <= maxKept-maxWhole && len(all)-i < maxKeptFiles {
			return
		}
		_ = k.root.Remove(f.name)
		sum -= f.size
	}
}

// whole is the file of one output.
type whole struct {
	file *os.File
	name string
	size int64
	more int64 // what was left out
	hide *hide.Hider
	err  error
}

func (w *whole) add(b []byte) {
	if w.hide != nil {
		b = w.hide.Add(b)
	}
	w.write(b)
}

func (w *whole) write(b []byte) {
	n := min(maxWhole-w.size, int64(len(b)))
	w.more += int64(len(b)) - n
	if w.err != nil || n == 0 {
		return
	}
	_, w.err = w.file.Write(b[:n])
	w.size += n
}

// close ends the file and says what a reader of it should know.
func (w *whole) close() string {
	if w.file != nil {
		if w.hide != nil {
			w.write(w.hide.End())
		}
		_ = w.file.Close()
		w.file = nil
	}
	switch {
	case w.err != nil:
		w.name = ""
		return fmt.Sprintf("the whole output could not be kept: %v", w.err)
	case w.more > 0:
		return fmt.Sprintf("the file with the output has only its first %d MiB", int64(maxWhole>>20))
	}
	return ""
}
