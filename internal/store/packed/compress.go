package packed

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"sync"
)

// compressed is the first byte of a compressed row. Other rows begin with the length of
// the name of a kind, and no name is empty. What follows is the size of the events and
// then the events, deflated.
const compressed = 0

// No deflated byte becomes more than this many, so a damaged size is noticed before
// room is made for it.
const maxRatio = 1032

var (
	writers = sync.Pool{New: func() any { w, _ := flate.NewWriter(nil, flate.DefaultCompression); return w }}
	readers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}
)

// Compress makes a smaller row of the events of a row, or returns the row itself if
// it would not be smaller.
func Compress(row []byte) []byte {
	out := bytes.NewBuffer(binary.AppendUvarint([]byte{compressed}, uint64(len(row))))
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	w.Reset(out)
	_, _ = w.Write(row) // to memory
	_ = w.Close()
	if out.Len() >= len(row) {
		return row
	}
	return out.Bytes()
}

// Open returns the events of a row, decompressed if they are compressed.
func Open(row []byte) ([]byte, error) {
	if len(row) == 0 || row[0] != compressed {
		return row, nil
	}
	size, n := binary.Uvarint(row[1:])
	if n <= 0 || size > maxRatio*uint64(len(row)) {
		return nil, ErrCut
	}
	r := readers.Get().(io.ReadCloser)
	defer readers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(row[1+n:]), nil); err != nil {
		return nil, err
	}
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, ErrCut
	}
	return out, nil
}
