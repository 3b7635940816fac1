package backup

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"runtime"
	"sync"
)

// Hash is the SHA-256 of a chunk or a stream.
type Hash [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) {
		return fmt.Errorf("%q is not a hash", text)
	}
	_, err := hex.Decode(h[:], text)
	return err
}

// String returns the hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Sizes of chunks. Boundaries depend on the bytes before them, so an insertion changes one or two chunks and not
// all that follow.
const (
	minChunk = 64 << 10
	maxChunk = 1 << 20
	// boundary has 18 bits, for chunks of 256 KiB on average.
	boundary = 1<<18 - 1
	// window is the number of bytes that the rolling hash depends on.
	window = 64
)

// gear is the table of the rolling hash. It must never change, or no chunk of older backups is found again.
var gear = func() (t [256]uint64) {
	x := uint64(0x6465636b68616e64)
	for i := range t { // splitmix64
		x += 0x9e3779b97f4a7c15
		z := x
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		t[i] = z ^ z>>31
	}
	return t
}()

// cut returns the length of the first chunk of b, 0 if b does not contain its end.
func cut(b []byte) int {
	var h uint64
	for i := minChunk - window; i < min(len(b), maxChunk); i++ {
		h = h<<1 + gear[b[i]]
		if i >= minChunk && h>>(64-18)&boundary == 0 {
			return i + 1
		}
	}
	if len(b) >= maxChunk {
		return maxChunk
	}
	return 0
}

// Stream is a stream of a backup.
type Stream struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	Sum    Hash   `json:"sha256"`
	Chunks []Hash `json:"chunks"`
}

// writer stores a stream.
type writer struct {
	repo *Repository
	buf  []byte
	sum  hash.Hash
	size int64
	refs []*Hash

	busy sync.WaitGroup
	turn chan struct{}
	mu   sync.Mutex
	err  error
}

func (r *Repository) writer() *writer {
	return &writer{repo: r, sum: sha256.New(), turn: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	w.sum.Write(p)
	w.size += int64(len(p))
	w.repo.progress(len(p))
	w.buf = append(w.buf, p...)
	for len(w.buf) >= maxChunk {
		w.put(cut(w.buf))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(p), w.err
}

// put stores the first n bytes as a chunk, in the background.
func (w *writer) put(n int) {
	chunk, ref := bytes.Clone(w.buf[:n]), new(Hash)
	w.buf = append(w.buf[:0], w.buf[n:]...)
	w.refs = append(w.refs, ref)
	w.turn <- struct{}{}
	w.busy.Go(func() {
		defer func() { <-w.turn }()
		*ref = sha256.Sum256(chunk)
		if err := w.repo.put(*ref, chunk); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.err = err
		}
	})
}

// close stores the rest and returns the stream.
func (w *writer) close(kind, name string) (Stream, error) {
	for len(w.buf) > 0 {
		n := cut(w.buf)
		if n == 0 {
			n = len(w.buf)
		}
		w.put(n)
	}
	w.busy.Wait()
	s := Stream{Kind: kind, Name: name, Size: w.size, Sum: Hash(w.sum.Sum(nil)), Chunks: make([]Hash, len(w.refs))}
	for i, ref := range w.refs {
		s.Chunks[i] = *ref
	}
	return s, w.err
}

// The first byte of a stored chunk.
const (
	plain = iota
	deflated
)

var deflaters = sync.Pool{New: func() any { w, _ := flate.NewWriter(nil, flate.BestSpeed); return w }}

// encode returns the stored form of a chunk.
func encode(chunk []byte) []byte {
	out := bytes.NewBuffer(append(make([]byte, 0, len(chunk)/2), deflated))
	w := deflaters.Get().(*flate.Writer)
	defer deflaters.Put(w)
	w.Reset(out)
	_, _ = w.Write(chunk) // to memory
	_ = w.Close()
	if out.Len() > len(chunk) {
		return append([]byte{plain}, chunk...)
	}
	return out.Bytes()
}

// load reads a chunk and checks its hash.
func (r *Repository) load(h Hash) ([]byte, error) {
	stored, err := readFile(r.chunk(h), maxStored)
	if err != nil {
		return nil, err
	}
	damaged := &damagedError{h}
	if len(stored) == 0 {
		return nil, damaged
	}
	chunk := stored[1:]
	if stored[0] == deflated {
		if chunk, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(chunk)), maxChunk+1)); err != nil {
			return nil, damaged
		}
	}
	if sha256.Sum256(chunk) != h {
		return nil, damaged
	}
	return chunk, nil
}

// damagedError is the error of a chunk that does not match its hash.
type damagedError struct{ Hash }

func (e *damagedError) Error() string { return "chunk " + e.String() + " is damaged" }

// reader reads a stream and checks its size and hash at the end.
type reader struct {
	repo   *Repository
	stream Stream
	next   int
	buf    []byte
	size   int64
	sum    hash.Hash
}

func (r *Repository) reader(s Stream) *reader { return &reader{repo: r, stream: s, sum: sha256.New()} }

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.buf) == 0 {
		if r.next == len(r.stream.Chunks) {
			if r.size != r.stream.Size || Hash(r.sum.Sum(nil)) != r.stream.Sum {
				return 0, fmt.Errorf("the %s %s does not match its hash", r.stream.Kind, r.stream.Name)
			}
			return 0, io.EOF
		}
		chunk, err := r.repo.load(r.stream.Chunks[r.next])
		if err != nil {
			return 0, err
		}
		r.next++
		r.buf, r.size = chunk, r.size+int64(len(chunk))
		r.sum.Write(chunk)
		r.repo.progress(len(chunk))
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}
