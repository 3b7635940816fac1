package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// kind is the type of an entry.
type kind byte

const (
	file   kind = 'f'
	folder kind = 'd'
	link   kind = 'l'
	pipe   kind = 'p'
	// kept is an entry that a restore does not touch: a file that is too large or cannot be read, a device, a folder that the
	// repository ignores.
	kept kind = 'k'
)

// entry is a file, link or folder of a checkpoint.
type entry struct {
	path string
	kind kind
	mode uint32 // the permission bits
	// uid and gid count from the first user of the workspace.
	uid, gid uint32
	size     int64
	// ino, mtime and ctime identify an unchanged file. ino is 0 if the file may have changed at the moment at which
	// it was read.
	ino          uint64
	mtime, ctime int64
	target       string // of a link
	blob         blob
}

// blob is the content of a file and where the store has it.
type blob struct {
	hash [32]byte
	pack int // the number of the data file
	off  int64
	len  int64
	// extents are the data of a sparse file; nil for a file without holes.
	extents []extent
}

type extent struct{ off, len int64 }

// same reports whether two entries are the same to a user, ignoring times.
func (e *entry) same(o *entry) bool {
	if e.kind != o.kind {
		return false
	}
	if e.kind == kept {
		return true
	}
	if e.uid != o.uid || e.gid != o.gid {
		return false
	}
	switch e.kind {
	case link:
		return e.target == o.target
	case file:
		return e.mode == o.mode && e.size == o.size && e.blob.hash == o.blob.hash
	}
	return e.mode == o.mode
}

// fresh reports whether a file has the recorded inode and times, so that the record needs no update.
func (e *entry) fresh(o *entry) bool {
	return e.kind != file || e.ino == o.ino && e.mtime == o.mtime && e.ctime == o.ctime
}

// state has all entries of a checkpoint by path.
type state map[string]*entry

// record is the content of a meta file.
type record struct {
	number, parent int
	at             time.Time
	changed        []*entry
	removed        []string
}

var magic = []byte("deckhand checkpoint 1\n")

func (r *record) encode() []byte {
	slices.SortFunc(r.changed, func(a, b *entry) int { return strings.Compare(a.path, b.path) })
	slices.Sort(r.removed)
	w := writer{magic}
	w.ints(int64(r.number), int64(r.parent), r.at.UnixNano(), int64(len(r.changed)), int64(len(r.removed)))
	last := ""
	for _, e := range r.changed {
		last = w.path(last, e.path)
		w.b = append(w.b, byte(e.kind))
		w.ints(int64(e.mode), int64(e.uid), int64(e.gid), e.size, int64(e.ino), e.mtime, e.ctime-e.mtime)
		switch e.kind {
		case link:
			w.text(e.target)
		case file:
			w.b = append(w.b, e.blob.hash[:]...)
			w.ints(int64(e.blob.pack), e.blob.off, e.blob.len, int64(len(e.blob.extents)))
			for _, x := range e.blob.extents {
				w.ints(x.off, x.len)
			}
		}
	}
	last = ""
	for _, p := range r.removed {
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

func (s *Store) read(n int) (*record, error) {
	b, err := os.ReadFile(s.meta(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %d", ErrNone, n)
	}
	if err != nil {
		return nil, err
	}
	r, err := decode(b)
	if err == nil && r.number != n {
		err = ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d", ErrCorrupt, n)
	}
	return r, nil
}

func decode(b []byte) (*record, error) {
	end := len(b) - 4
	if end < len(magic) || !bytes.HasPrefix(b, magic) || binary.LittleEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) {
		return nil, ErrCorrupt
	}
	d := &reader{b: b[len(magic):end]}
	r := &record{number: int(d.int()), parent: int(d.int()), at: time.Unix(0, d.int())}
	changed, removed := d.int(), d.int()
	if changed < 0 || removed < 0 || changed > int64(len(b)) || removed > int64(len(b)) {
		return nil, ErrCorrupt
	}
	entries := make([]entry, changed)
	r.changed = make([]*entry, changed)
	last := ""
	for i := range entries {
		e := &entries[i]
		last = d.path(last)
		e.path, e.kind = last, kind(d.byte())
		e.mode, e.uid, e.gid, e.size, e.ino = uint32(d.int()), uint32(d.int()), uint32(d.int()), d.int(), uint64(d.int())
		e.mtime = d.int()
		e.ctime = e.mtime + d.int()
		switch e.kind {
		case link:
			e.target = d.text()
		case file:
			copy(e.blob.hash[:], d.take(32))
			e.blob.pack, e.blob.off, e.blob.len = int(d.int()), d.int(), d.int()
			for range min(d.int(), maxExtents) {
				e.blob.extents = append(e.blob.extents, extent{d.int(), d.int()})
			}
		}
		r.changed[i] = e
	}
	last = ""
	for range removed {
		last = d.path(last)
		r.removed = append(r.removed, last)
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

// load returns the state of a checkpoint, and the number of records it was read from.
func (s *Store) load(n int) (state, int, error) {
	var chain []*record
	for at := n; at != 0; {
		r, err := s.read(at)
		if err != nil {
			return nil, 0, err
		}
		if r.parent >= at || len(chain) > 2*maxChain {
			return nil, 0, fmt.Errorf("%w: %d", ErrCorrupt, n)
		}
		chain = append(chain, r)
		at = r.parent
	}
	if len(chain) == 0 {
		return state{}, 0, nil
	}
	out := make(state, len(chain[len(chain)-1].changed))
	for _, r := range slices.Backward(chain) {
		for _, p := range r.removed {
			delete(out, p)
		}
		for _, e := range r.changed {
			out[e.path] = e
		}
	}
	return out, len(chain), nil
}
