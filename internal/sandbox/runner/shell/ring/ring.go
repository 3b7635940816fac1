// Package ring holds the end of a stream of bytes.
package ring

import "bytes"

// Ring holds the last bytes of a stream. It grows as far as there is something
// to hold.
type Ring struct {
	Limit int    // how many it holds
	Buf   []byte // these, not in order
	next  int    // where it goes on once it is full
	Total int64  // of the stream
}

// Add adds what comes next.
func (r *Ring) Add(b []byte) {
	r.Total += int64(len(b))
	if len(b) > r.Limit {
		b = b[len(b)-r.Limit:]
	}
	n := min(r.Limit-len(r.Buf), len(b))
	r.Buf = append(r.Buf, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(r.Buf[r.next:], b)
		r.next = (r.next + n) % r.Limit
	}
}

// Start is the position in the stream of the first byte that is held.
func (r *Ring) Start() int64 { return r.Total - int64(len(r.Buf)) }

// Read copies from a position that is held, as much as lies in one piece.
func (r *Ring) Read(from int64, buf []byte) int {
	if from < r.Start() || from >= r.Total {
		return 0
	}
	at := (int(from-r.Start()) + r.next) % len(r.Buf)
	n := copy(buf, r.Buf[at:])
	return min(n, int(r.Total-from))
}

// Bytes is all that is held, in order.
func (r *Ring) Bytes() []byte {
	if r.next == 0 {
		return r.Buf
	}
	return append(bytes.Clone(r.Buf[r.next:]), r.Buf[:r.next]...)
}
