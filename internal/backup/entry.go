package backup

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
)

// entry is a file or folder in the stream of a workspace. It is stored as JSON, preceded by its length and followed by the
// bytes of its extents. Entries have no paths: entries for entering and leaving a folder enclose its content.
type entry struct {
	Op   string `json:"op"`
	Name []byte `json:"name,omitempty"` // file names are bytes
	Mode uint32 `json:"mode,omitempty"`
	UID  uint32 `json:"uid,omitempty"`
	GID  uint32 `json:"gid,omitempty"`
	// Time is the modification time in nanoseconds since 1970.
	Time int64 `json:"time,omitempty"`
	Size int64 `json:"size,omitempty"`
	// Extents are the offsets and lengths of data; the rest are holes.
	Extents [][2]int64 `json:"extents,omitempty"`
	Target  []byte     `json:"target,omitempty"`
	// Link numbers files with several names, from 1. The first entry with a number has the content.
	Link       int               `json:"link,omitempty"`
	Attributes map[string][]byte `json:"attributes,omitempty"`
}

// Kinds of entries. The first one of a stream enters the workspace itself, and the last one leaves it.
const (
	opEnter = "enter"
	opLeave = "leave"
	opFile  = "file"
	opLink  = "link"  // symbolic link
	opAgain = "again" // hard link to an earlier file
	opPipe  = "pipe"
	// opGone is an overlay's marker of a removed file.
	opGone = "gone"
)

// maxEntry is the maximum size of an entry without its content.
const maxEntry = 4 << 20

// write writes an entry without its content.
func (e entry) write(w io.Writer) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := w.Write(binary.AppendUvarint(nil, uint64(len(b)))); err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// readEntry reads an entry and checks it.
func readEntry(r *bufio.Reader) (e entry, err error) {
	size, err := binary.ReadUvarint(r)
	if err != nil {
		return e, err
	}
	if size > maxEntry {
		return e, errors.New("an entry is too large")
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, err
	}
	return e, e.check()
}

// check returns an error for an entry that must not be restored.
func (e entry) check() error {
	if e.Op != opLeave && !validName(e.Name) {
		return fmt.Errorf("refused the file name %q", e.Name)
	}
	if e.Mode&^0o7777 != 0 || bytes.IndexByte(e.Target, 0) >= 0 || e.Size < 0 {
		return fmt.Errorf("refused the entry %q", e.Name)
	}
	at := int64(0)
	for _, x := range e.Extents {
		if x[0] < at || x[1] < 0 || x[0] > e.Size || x[1] > e.Size-x[0] {
			return fmt.Errorf("refused the extents of %q", e.Name)
		}
		at = x[0] + x[1]
	}
	return nil
}

// validName reports whether a name is a file name without a path.
func validName(name []byte) bool {
	return len(name) > 0 && len(name) < 256 && bytes.IndexByte(name, '/') < 0 && bytes.IndexByte(name, 0) < 0 && string(name) != "." && string(name) != ".."
}

// print is the hash of a tree: entries and their content, independent of holes.
type print struct {
	sum   hash.Hash
	files int
	// firsts maps link numbers to the position of the first file with that number. Link numbers themselves may differ,
	// because a file may also have names outside the tree.
	firsts map[int]int
}

func newPrint() *print { return &print{sum: sha256.New(), firsts: map[int]int{}} }

func (p *print) entry(e entry) {
	e.Extents = nil
	switch e.Op {
	case opFile:
		p.files++
		p.firsts[e.Link], e.Link = p.files, 0
	case opAgain:
		e.Link = p.firsts[e.Link]
	}
	b, _ := json.Marshal(e) // of texts and numbers
	p.sum.Write(b)
}

// content returns a writer for the content of a file.
func (p *print) content() *blocks { return &blocks{sum: p.sum} }

// blocks hashes the blocks of a file that are not zero.
type blocks struct {
	sum  hash.Hash
	at   int64 // of buf
	buf  [64 << 10]byte
	used bool
}

var zeros [64 << 10]byte

func (b *blocks) write(at int64, p []byte) {
	for len(p) > 0 {
		start := at &^ (int64(len(b.buf)) - 1)
		if start != b.at {
			b.flush()
			b.at = start
		}
		n := copy(b.buf[at-start:], p)
		b.used = true
		at, p = at+int64(n), p[n:]
	}
}

func (b *blocks) flush() {
	if b.used && !bytes.Equal(b.buf[:], zeros[:]) {
		b.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(b.at)))
		b.sum.Write(b.buf[:])
	}
	if b.used {
		b.buf, b.used = zeros, false
	}
}
