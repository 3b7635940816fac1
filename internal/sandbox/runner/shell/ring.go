package shell

import "bytes"

// ring holds the last bytes of a stream. It grows as far as there is something
// to hold.
type ring struct {
	limit int
	buf   []byte
	next  int   // where it goes on once it is full
	total int64 // of the stream
}

func (r *ring) add(b []byte) {
	r.total += int64(len(b))
	if len(b) > r.limit {
		b = b[len(b)-r.limit:]
	}
	n := min(r.limit-len(r.buf), len(b))
	r.buf = append(r.buf, b[:n]...)
	for b = b[n:]; len(b) > 0; b = b[n:] {
		n = copy(r.buf[r.next:], b)
		r.next = (r.next + n) % r.limit
	}
}

// start is the position in the stream of the first byte that is held.
func (r *ring) start() int64 { return r.total - int64(len(r.buf)) }

// read copies from a position that is held, as much as lies in one piece.
func (r *ring) read(from int64, buf []byte) int {
	if from < r.start() || from >= r.total {
		return 0
	}
	at := (int(from-r.start()) + r.next) % len(r.buf)
	n := copy(buf, r.buf[at:])
	return min(n, int(r.total-from))
}

// bytes is all that is held, in order.
func (r *ring) bytes() []byte {
	if r.next == 0 {
		return r.buf
	}
	return append(bytes.Clone(r.buf[r.next:]), r.buf[:r.next]...)
}
