package rpc

import (
	"encoding/binary"
	"errors"
	"io"
)

// guarded stands between yamux and the connection, for two things that yamux
// does not do well.
//
// It starts a goroutine for each ping, also while its answers cannot be sent: a hostile end
// could cause millions of them. Neither end of this protocol sends pings.
//
// And when the connection ends, every goroutine that waits on a stream spins until yamux has
// closed that stream, which takes minutes with hundreds of streams. It closes the connection
// first; then guarded wakes them.
type guarded struct {
	io.ReadWriteCloser
	wake func()
	head [12]byte // of the frame that is being read, see yamux's spec
	have int
	skip uint32 // what is left of its body
}

var errPing = errors.New("the other end sends what is not expected of it")

// The types of yamux's frames that we expect.
const (
	muxData   = 0
	muxWindow = 1
)

func (g *guarded) Read(b []byte) (int, error) {
	n, err := g.ReadWriteCloser.Read(b)
	for rest := b[:n]; len(rest) > 0; {
		if g.skip > 0 {
			k := min(g.skip, uint32(len(rest)))
			g.skip -= k
			rest = rest[k:]
			continue
		}
		k := copy(g.head[g.have:], rest)
		g.have += k
		rest = rest[k:]
		if g.have < len(g.head) {
			break
		}
		g.have = 0
		switch g.head[1] {
		case muxData:
			g.skip = binary.BigEndian.Uint32(g.head[8:])
		case muxWindow:
		default:
			return 0, errPing
		}
	}
	return n, err
}

func (g *guarded) Close() error {
	g.wake()
	return g.ReadWriteCloser.Close()
}
