package portable

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strings"

	"deckhand/internal/jsonbound"
	"deckhand/internal/takeover"
)

// Limits of a file, for imports and exports.
const (
	// maxContent is the maximum size of all entries together.
	maxContent = 4 << 30
	maxEntries = 200_000
	maxPath    = 4096
	// Paths and the targets of links are held in memory until the end.
	maxPaths   = 32 << 20
	maxPadding = 1 << 20
	// Events are held in memory until they are stored.
	maxManifest    = 64 << 10
	maxServers     = 100
	maxEventsBytes = 64 << 20
	maxEvents      = 200_000
	maxEventValues = 50_000
	maxEventDepth  = 100
)

// BadFile is the error of a file that cannot be imported. Its text is for users.
type BadFile struct{ Reason string }

func (e *BadFile) Error() string { return "the file cannot be imported: " + e.Reason }

func bad(format string, args ...any) error { return &BadFile{fmt.Sprintf(format, args...)} }

// errDamaged is the error of a truncated or changed file.
var errDamaged = bad("it is damaged or incomplete. Export the conversation again")

// size counts what the limits of a file restrict.
type size struct {
	entries, events     int
	content, eventBytes int64
	paths               int // bytes
}

// entry counts an entry. It returns an error if a file must not contain the entry.
func (s *size) entry(h *tar.Header) error {
	if s.entries++; s.entries > maxEntries {
		return bad("it has more than %d files, folders and links", maxEntries)
	}
	if s.content += h.Size; h.Size < 0 || s.content > maxContent {
		return bad("its content is larger than %d GiB", maxContent>>30)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeDir, tar.TypeSymlink:
	default:
		return bad("the entry %q is not a file, folder or symbolic link", clipped(h.Name))
	}
	name := strings.TrimSuffix(h.Name, "/")
	if len(name) > maxPath || len(h.Linkname) > maxPath || name == "" || strings.ContainsRune(name+h.Linkname, 0) || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return bad("the entry %q has an invalid path", clipped(h.Name))
	}
	if s.paths += len(h.Name) + len(h.Linkname); s.paths > maxPaths {
		return bad("its paths are longer than %d bytes together", maxPaths)
	}
	return nil
}

// event counts an event, and eventsOf counts the bytes of several.
func (s *size) event(line []byte) error {
	if s.events++; s.events > maxEvents {
		return bad("it has more than %d events", maxEvents)
	}
	if _, err := jsonbound.Check(line, jsonbound.Limits{Values: maxEventValues, Depth: maxEventDepth}); err != nil {
		return bad("event %d has %v", s.events, err)
	}
	return nil
}

func (s *size) eventsOf(bytes int64) error {
	if s.eventBytes += bytes; s.eventBytes > maxEventsBytes {
		return bad("its events are larger than %d MiB", maxEventsBytes>>20)
	}
	return nil
}

// reader reads a file once, from beginning to end.
type reader struct {
	size
	raw io.Reader // what tar reads
	tar *tar.Reader
	sum hash.Hash
	// next is the entry that was read but not used yet.
	next *tar.Header
	seen map[string]byte // types of the paths in the workspace
}

func newReader(r io.Reader) (*reader, error) {
	zip, err := gzip.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, notAFile(err)
	}
	zip.Multistream(false)
	// Headers also count towards the limit.
	limited := &io.LimitedReader{R: zip, N: maxContent + 2048*maxEntries}
	return &reader{raw: limited, tar: tar.NewReader(limited), sum: sha256.New(), seen: map[string]byte{}}, nil
}

// notAFile returns errDamaged for errors in the content, and other errors, such as those of the connection, unchanged.
func notAFile(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errDamaged
	}
	var corrupt flate.CorruptInputError
	if errors.As(err, &corrupt) {
		return errDamaged
	}
	return err
}

// header returns the next entry after checking it. At the end of the archive it returns errDamaged: the digest is missing.
func (r *reader) header() (*tar.Header, error) {
	if h := r.next; h != nil {
		r.next = nil
		return h, nil
	}
	h, err := r.tar.Next()
	if err != nil {
		return nil, notAFile(err)
	}
	if err := r.entry(h); err != nil {
		return nil, err
	}
	if h.Name != digestName {
		describe(r.sum, h)
	}
	return h, nil
}

func clipped(name string) string { return name[:min(len(name), 200)] }

// bytes reads an entry that is kept in memory.
func (r *reader) bytes(h *tar.Header, most int64) ([]byte, error) {
	if h.Typeflag != tar.TypeReg || h.Size > most {
		return nil, bad("the entry %q is too large or not a file", clipped(h.Name))
	}
	b, err := io.ReadAll(io.TeeReader(r.tar, r.sum))
	if err != nil {
		return nil, notAFile(err)
	}
	return b, nil
}

// conversation reads everything before the workspace.
func (r *reader) conversation() (t takeover.Trajectory, m manifest, err error) {
	h, err := r.header()
	if err != nil {
		return t, m, err
	}
	if h.Name != manifestName {
		return t, m, bad("it is not a conversation exported by Deckhand")
	}
	b, err := r.bytes(h, maxManifest)
	if err != nil {
		return t, m, err
	}
	if err := json.Unmarshal(b, &m); err != nil || m.Format != format || len(m.Settings.Servers) > maxServers {
		return t, m, bad("%s is not valid", manifestName)
	}
	if m.Version != version {
		return t, m, bad("it has format version %d, but this server supports version %d. Install a newer version of Deckhand", m.Version, version)
	}
	t.Title, t.Began = m.Title, m.CreatedAt
	for {
		if h, err = r.header(); err != nil {
			return t, m, err
		}
		if !strings.HasPrefix(h.Name, eventsFolder) {
			r.next = h
			return t, m, nil
		}
		if err := r.eventsOf(h.Size); err != nil {
			return t, m, err
		}
		if b, err = r.bytes(h, h.Size); err != nil {
			return t, m, err
		}
		for line := range bytes.Lines(b) {
			if err := r.event(line); err != nil {
				return t, m, err
			}
			t.Events = append(t.Events, bytes.TrimSpace(line))
		}
	}
}

// file is an entry of the workspace.
type file struct {
	path    string
	header  *tar.Header
	content io.Reader
}

// files calls each for the entries of the workspace, and verifies the digest. It refuses repeated paths, and paths through a file or a link.
func (r *reader) files(each func(file) error) error {
	for {
		h, err := r.header()
		if err != nil {
			return err
		}
		if h.Name == digestName {
			return r.verify(h)
		}
		name, ok := strings.CutPrefix(strings.TrimSuffix(h.Name, "/"), filesFolder)
		if !ok {
			return bad("the entry %q is unexpected", clipped(h.Name))
		}
		if _, twice := r.seen[name]; twice {
			return bad("it contains the entry %q twice", clipped(h.Name))
		}
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if kind, known := r.seen[dir]; known && kind != tar.TypeDir {
				return bad("the entry %q lies below a file or a link", clipped(h.Name))
			} else if known { // and so are the folders above it
				break
			}
			if r.seen[dir] = tar.TypeDir; len(r.seen) > maxEntries { // it is created with the entry
				return bad("it has more than %d entries and folders", maxEntries)
			}
		}
		r.seen[name] = h.Typeflag
		if h.Typeflag == tar.TypeSymlink && h.Linkname == "" {
			return bad("the link %q has no target", clipped(h.Name))
		}
		content := io.TeeReader(r.tar, r.sum)
		if err := each(file{name, h, content}); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil { // the unread rest
			return notAFile(err)
		}
	}
}

func (r *reader) verify(h *tar.Header) error {
	want := hex.EncodeToString(r.sum.Sum(nil))
	b, err := r.bytes(h, 256)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(b)) != want {
		return errDamaged
	}
	if _, err := r.tar.Next(); err != io.EOF {
		return errDamaged
	}
	// What follows is padding, and the checksum of gzip.
	if n, err := io.CopyN(io.Discard, r.raw, maxPadding); err != io.EOF || n == maxPadding {
		return errDamaged
	}
	return nil
}
