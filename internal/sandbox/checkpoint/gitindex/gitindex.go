// Package gitindex reads the index files of git repositories, which list the tracked and staged files.
package gitindex

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"path"
)

// Index is the content of an index file. The zero Index has no files.
type Index struct {
	paths [][]byte
	// Sum identifies the entries: modes, object IDs, stages, flags and paths. Times and sizes, which git refreshes, are not part of it.
	Sum [sha256.Size]byte
}

// Parse reads an index file of version 2, 3 or 4. It reports false for any other content, and for one that is split over several files.
func Parse(b []byte) (Index, bool) {
	for _, id := range []int{20, 32} { // SHA-1, SHA-256
		if x, ok := parse(b, id); ok {
			return x, true
		}
	}
	return Index{}, false
}

const (
	statSize  = 40 // times, device, inode, mode, owner and size
	modeAt    = 24
	extended  = 0x4000
	nameBits  = 0x0fff
	keptFlags = 0x6000 // skip-worktree and intent-to-add, in the extended flags
)

func parse(b []byte, id int) (x Index, ok bool) {
	if len(b) < 12+id || string(b[:4]) != "DIRC" {
		return x, false
	}
	version, count := binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	rest := b[12 : len(b)-id] // a checksum is at the end
	if version < 2 || version > 4 || int64(count) > int64(len(rest)/(statSize+id+2)) {
		return x, false
	}
	h := sha256.New()
	var last []byte
	for range count {
		fixed := statSize + id + 2
		if len(rest) < fixed {
			return x, false
		}
		flags := binary.BigEndian.Uint16(rest[fixed-2:])
		more := uint16(0)
		if flags&extended != 0 {
			if fixed += 2; len(rest) < fixed || version < 3 {
				return x, false
			}
			more = binary.BigEndian.Uint16(rest[fixed-2:]) & keptFlags
		}
		name, size, ok := name(rest[fixed:], version, last)
		if !ok {
			return x, false
		}
		if size += fixed; version < 4 {
			size = (size + 7) / 8 * 8 // entries are padded with 1 to 8 zeros; name counts one
		}
		if size > len(rest) {
			return x, false
		}
		_, _ = h.Write(rest[modeAt : modeAt+4])
		_, _ = h.Write(rest[statSize : statSize+id])
		_, _ = h.Write(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, flags&^(nameBits|extended)), more))
		_, _ = h.Write(name)
		_, _ = h.Write([]byte{0})
		x.paths = append(x.paths, name)
		last, rest = name, rest[size:]
	}
	for len(rest) > 0 { // extensions
		if len(rest) < 8 {
			return x, false
		}
		size := int64(binary.BigEndian.Uint32(rest[4:])) + 8
		if size > int64(len(rest)) || string(rest[:4]) == "link" {
			return x, false
		}
		rest = rest[size:]
	}
	h.Sum(x.Sum[:0])
	return x, true
}

// name reads a path that ends with a zero byte. Version 4 has only what differs from the end of the path before.
func name(b []byte, version uint32, last []byte) (name []byte, size int, ok bool) {
	if version == 4 {
		drop := 0
		for i := 0; ; i++ { // a variable-length number as in pack files
			if i >= len(b) || i > 4 {
				return nil, 0, false
			}
			drop = drop<<7 | int(b[i]&0x7f)
			if b[i]&0x80 == 0 {
				size = i + 1
				break
			}
			drop++
		}
		if drop > len(last) {
			return nil, 0, false
		}
		name = append(name, last[:len(last)-drop]...)
	}
	n := bytes.IndexByte(b[size:], 0)
	if n < 0 {
		return nil, 0, false
	}
	return append(name, b[size:size+n]...), size + n + 1, true
}

// Folders returns the folders with tracked files, relative to the repository.
func (x Index) Folders() map[string]bool {
	out := map[string]bool{}
	var last []byte
	for _, p := range x.paths {
		dir := p[:max(bytes.LastIndexByte(p, '/'), 0)]
		if bytes.Equal(dir, last) {
			continue
		}
		last = dir
		for at := string(dir); at != "." && at != "/" && !out[at]; at = path.Dir(at) {
			out[at] = true
		}
	}
	return out
}
