// Package record defines the entries of a checkpoint and the format of its meta file.
package record

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path"
	"slices"
	"strings"
	"time"
)

// ErrCorrupt means that a record cannot be read.
var ErrCorrupt = errors.New("the checkpoint is damaged")

// MaxExtents is the maximum number of extents of a sparse file.
const MaxExtents = 10_000

// Kind is the type of an entry.
type Kind byte

const (
	File   Kind = 'f'
	Folder Kind = 'd'
	Link   Kind = 'l'
	Pipe   Kind = 'p'
	// Kept is an entry that a restore does not touch: a file that is too large or cannot be read, a device, a folder that the
	// repository ignores.
	Kept Kind = 'k'
)

// Entry is a file, link or folder of a checkpoint.
type Entry struct {
	Path string
	Kind Kind
	Mode uint32 // the permission bits
	// UID and GID count from the first user of the workspace.
	UID, GID uint32
	Size     int64
	// Ino, Mtime and Ctime identify an unchanged file. Ino is 0 if the file may have changed at the moment at which
	// it was read.
	Ino          uint64
	Mtime, Ctime int64
	Target       string // of a link
	Blob         Blob
}

// Blob is the content of a file and where the store has it.
type Blob struct {
	Hash [32]byte
	Pack int // the number of the data file
	Off  int64
	Len  int64
	// Extents are the data of a sparse file; nil for a file without holes.
	Extents []Extent
}

// Extent is a part of a file.
type Extent struct{ Off, Len int64 }

// Same reports whether two entries are the same to a user, ignoring times.
func (e *Entry) Same(o *Entry) bool {
	if e.Kind != o.Kind {
		return false
	}
	if e.Kind == Kept {
		return true
	}
	if e.UID != o.UID || e.GID != o.GID {
		return false
	}
	switch e.Kind {
	case Link:
		return e.Target == o.Target
	case File:
		return e.Mode == o.Mode && e.Size == o.Size && e.Blob.Hash == o.Blob.Hash
	}
	return e.Mode == o.Mode
}

// Fresh reports whether a file has the recorded inode and times, so that the record needs no update.
func (e *Entry) Fresh(o *Entry) bool {
	return e.Kind != File || e.Ino == o.Ino && e.Mtime == o.Mtime && e.Ctime == o.Ctime
}

// State has all entries of a checkpoint by path.
type State map[string]*Entry

// Record is the content of a meta file.
type Record struct {
	Number, Parent int
	At             time.Time
	Changed        []*Entry
	Removed        []string
}

var magic = []byte("deckhand checkpoint 1\n")

// Encode returns the content of the meta file.
func (r *Record) Encode() []byte {
	slices.SortFunc(r.Changed, func(a, b *Entry) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(r.Removed)
	w := writer{magic}
	w.ints(int64(r.Number), int64(r.Parent), r.At.UnixNano(), int64(len(r.Changed)), int64(len(r.Removed)))
	last := ""
	for _, e := range r.Changed {
		last = w.path(last, e.Path)
		w.b = append(w.b, byte(e.Kind))
		w.ints(int64(e.Mode), int64(e.UID), int64(e.GID), e.Size, int64(e.Ino), e.Mtime, e.Ctime-e.Mtime)
		switch e.Kind {
		case Link:
			w.text(e.Target)
		case File:
			w.b = append(w.b, e.Blob.Hash[:]...)
			w.ints(int64(e.Blob.Pack), e.Blob.Off, e.Blob.Len, int64(len(e.Blob.Extents)))
			for _, x := range e.Blob.Extents {
				w.ints(x.Off, x.Len)
			}
		}
	}
	last = ""
	for _, p := range r.Removed {
		last = w.path(last, p)
	}
	return binary.LittleEndian.AppendUint32(w.b, crc32.ChecksumIEEE(w.b))
}

type writer struct{ b []byte }

func (w *writer) ints(list ...int64) {
	for _, n := range list {
		w.b = binary.AppendVarint(w.b, n)
	}
}

func (w *writer) text(s string) {
	w.ints(int64(len(s)))
	w.b = append(w.b, s...)
}

// path writes a path without the prefix that it shares with the path before.
func (w *writer) path(last, p string) string {
	n := 0
	for n < len(last) && n < len(p) && last[n] == p[n] {
		n++
	}
	w.ints(int64(n))
	w.text(p[n:])
	return p
}

// Decode reads what Encode returns. ErrCorrupt if that is not possible.
func Decode(b []byte) (*Record, error) {
	end := len(b) - 4
	if end < len(magic) || !bytes.HasPrefix(b, magic) || binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return nil, ErrCorrupt
	}
	d := &reader{b: b[len(magic):end]}
	r := &Record{Number: int(d.int()), Parent: int(d.int()), At: time.Unix(0, d.int())}
	changed, removed := d.int(), d.int()
	if changed < 0 || removed < 0 || changed > int64(len(b)) || removed > int64(len(b)) {
		return nil, ErrCorrupt
	}
	entries := make([]Entry, changed)
	r.Changed = make([]*Entry, changed)
	last := ""
	for i := range entries {
		e := &entries[i]
		last = d.path(last)
		e.Path, e.Kind = last, Kind(d.byte())
		e.Mode, e.UID, e.GID, e.Size, e.Ino = uint32(d.int()), uint32(d.int()), uint32(d.int()), d.int(), uint64(d.int())
		e.Mtime = d.int()
		e.Ctime = e.Mtime + d.int()
		switch e.Kind {
		case Link:
			e.Target = d.text()
		case File:
			copy(e.Blob.Hash[:], d.take(32))
			e.Blob.Pack, e.Blob.Off, e.Blob.Len = int(d.int()), d.int(), d.int()
			for range min(d.int(), MaxExtents) {
				e.Blob.Extents = append(e.Blob.Extents, Extent{d.int(), d.int()})
			}
		}
		r.Changed[i] = e
	}
	last = ""
	for range removed {
		last = d.path(last)
		r.Removed = append(r.Removed, last)
	}
	if d.bad {
		return nil, ErrCorrupt
	}
	return r, nil
}

// reader reads the format of writer. After an error it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

func (d *reader) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.b, d.bad = nil, true
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *reader) take(n int64) []byte {
	if n < 0 || n > int64(len(d.b)) {
		d.b, d.bad = nil, true
		return nil
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *reader) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *reader) text() string { return string(d.take(d.int())) }

func (d *reader) path(last string) string {
	n := d.int()
	if n < 0 || n > int64(len(last)) {
		d.bad = true
		return ""
	}
	return last[:n] + d.text()
}

// Compare adds the differences between two states to a record, and counts those that a user can see. If looked is not nil,
// only these paths can differ.
func (r *Record) Compare(known, found State, looked map[string]bool) (changed int) {
	for path, e := range found {
		old := known[path]
		switch {
		case old == nil || !old.Same(e):
			changed++
			r.Changed = append(r.Changed, e)
		case !old.Fresh(e):
			r.Changed = append(r.Changed, e)
		}
	}
	gone := func(path string) {
		if known[path] != nil && found[path] == nil {
			changed++
			r.Removed = append(r.Removed, path)
		}
	}
	if looked != nil {
		for path := range looked {
			gone(path)
		}
		return changed
	}
	for path := range known {
		gone(path)
	}
	return changed
}

// Differ reports whether a user can tell two entries apart. nil means that there is none.
func Differ(a, b *Entry) bool {
	if a == nil || b == nil {
		return a != b
	}
	return !a.Same(b)
}

// LeftOut returns the path, or the folder that it is in, that is in no checkpoint in a state, "" if there is none. old are entries of
// the state that replace those of now.
func LeftOut(p string, old map[string]*Entry, now State) string {
	for ; p != "."; p = path.Dir(p) {
		e, ok := old[p]
		if !ok {
			e = now[p]
		}
		if e != nil && e.Kind == Kept {
			return p
		}
	}
	return ""
}

// Stored reports whether an entry exists and can be restored.
func (e *Entry) Stored() bool { return e != nil && e.Kind != Kept }
