package edit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

const (
	// versions is how many earlier versions of a file are kept.
	versions = 10
	// maxHistory bounds what all of them take up; the oldest go first.
	maxHistory = 256 << 20
)

// history keeps earlier versions of files on disk: a folder for each file, in
// it a file for each version, named by a number that grows. The editor makes
// those of one path wait for each other.
type history struct {
	dir string

	mu    sync.Mutex
	known bool
	total int64
}

func (h *history) folder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(h.dir, hex.EncodeToString(sum[:16]))
}

// numbers lists the versions of a file, oldest first.
func (h *history) numbers(path string) ([]int, error) {
	entries, err := os.ReadDir(h.folder(path))
	if err != nil {
		return nil, err
	}
	var all []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, nil
}

func (h *history) file(path string, n int) string {
	return filepath.Join(h.folder(path), strconv.Itoa(n))
}

// push keeps a version. The function it returns takes it away again.
func (h *history) push(path string, b []byte) (drop func(), err error) {
	if err := os.MkdirAll(h.folder(path), 0o700); err != nil {
		return nil, err
	}
	all, err := h.numbers(path)
	if err != nil {
		return nil, err
	}
	n := 1
	if len(all) > 0 {
		n = all[len(all)-1] + 1
	}
	name := h.file(path, n)
	// A half written version would be taken for a whole one after a crash.
	if err := os.WriteFile(name+".tmp", b, 0o600); err != nil {
		_ = os.Remove(name + ".tmp")
		return nil, err
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return nil, err
	}
	h.grow(int64(len(b)))
	for len(all) >= versions {
		h.remove(h.file(path, all[0]))
		all = all[1:]
	}
	h.trim()
	return func() { h.remove(name) }, nil
}

// last is the newest version that differs from what the file has now: a version
// that is the same was kept by a runner that died before it changed the file.
// The function it returns forgets the version.
func (h *history) last(path string, now []byte, exists bool) ([]byte, func(), error) {
	all, err := h.numbers(path)
	if err != nil {
		return nil, nil, err
	}
	for _, n := range slices.Backward(all) {
		name := h.file(path, n)
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, nil, err
		}
		if !exists || !bytes.Equal(b, now) {
			return b, func() { h.remove(name) }, nil
		}
		h.remove(name)
	}
	return nil, nil, fmt.Errorf("no version: %w", fs.ErrNotExist)
}

// forget forgets all versions of a file.
func (h *history) forget(path string) {
	all, _ := h.numbers(path)
	for _, n := range all {
		h.remove(h.file(path, n))
	}
	_ = os.RemoveAll(h.folder(path))
}

func (h *history) remove(name string) {
	info, err := os.Lstat(name)
	if err != nil || os.Remove(name) != nil {
		return
	}
	h.grow(-info.Size())
}

// grow keeps count of what all versions take up.
func (h *history) grow(by int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known {
		h.total += by
	}
}

// trim removes the oldest versions of all while there is too much.
func (h *history) trim() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known && h.total <= maxHistory {
		return
	}
	type version struct {
		name string
		fs.FileInfo
	}
	var all []version
	h.total, h.known = 0, true
	_ = filepath.WalkDir(h.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			all = append(all, version{name, info})
			h.total += info.Size()
		}
		return nil
	})
	slices.SortFunc(all, func(a, b version) int { return cmp.Compare(a.ModTime().UnixNano(), b.ModTime().UnixNano()) })
	for _, v := range all {
		if h.total <= maxHistory {
			return
		}
		if os.Remove(v.name) == nil {
			h.total -= v.Size()
		}
	}
}
