package rpc

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"
)

// guarded stands between yamux and the connection, for three things that yamux
// does not do well.
//
// It starts a goroutine for each ping, also while its answers cannot be sent: a hostile end
// could cause millions of them. Neither end of this protocol sends pings.
//
// And when the connection ends, every goroutine that waits on a stream spins until yamux has
// closed that stream, which takes minutes with hundreds of streams. It closes the connection
// first; then guarded wakes them.
//
// And it writes a call in pieces: that a stream begins, the head of a frame, its body, that the
// stream ends. Each piece would wake up the other end. Guarded holds back what the other end does
// not wait for, until there is more to write.
type guarded struct {
	io.ReadWriteCloser
	wake func()
	head [headLen]byte // of the frame that is being read, see yamux's spec
	have int
	skip uint32 // what is left of its body

	out    sync.Mutex
	held   []byte
	body   uint32 // how much of a frame's body is still to be written
	armed  bool
	silent map[uint32]bool // streams whose end the other end does not wait for
}

// headLen is the length of the head of a frame, holdTime how long frames are held back, and
// maxHeld how many bytes of them.
const (
	headLen  = 12
	holdTime = 100 * time.Millisecond
	maxHeld  = 4 << 10
)

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

// The flags of yamux's frames.
const (
	flagSYN = 1 << iota
	flagACK
	flagFIN
	flagRST
)

// Write takes the head of a frame or its body: yamux writes them one after the other.
func (g *guarded) Write(b []byte) (int, error) {
	g.out.Lock()
	defer g.out.Unlock()
	if g.waits(b) && len(g.held) < maxHeld {
		g.held = append(g.held, b...)
		return len(b), nil
	}
	if len(g.held) == 0 {
		return g.ReadWriteCloser.Write(b)
	}
	g.held = append(g.held, b...)
	return len(b), g.flush()
}

// waits reports whether what is written next can be held back.
func (g *guarded) waits(b []byte) bool {
	if g.body > 0 {
		g.body -= min(g.body, uint32(len(b)))
		return false
	}
	if len(b) != headLen {
		return false
	}
	length := binary.BigEndian.Uint32(b[8:])
	if b[1] == muxData {
		g.body = length
		return length > 0
	}
	id := binary.BigEndian.Uint32(b[4:])
	silent := g.silent[id]
	delete(g.silent, id)
	switch flags := binary.BigEndian.Uint16(b[2:]); {
	case b[1] != muxWindow || length > 0 || flags&flagRST != 0:
		return false
	case flags&flagFIN != 0 && !silent:
		return false
	}
	if !g.armed {
		g.armed = true
		time.AfterFunc(holdTime, g.flushLate)
	}
	return true
}

// flush writes what is held back. It is called with out locked.
func (g *guarded) flush() error {
	_, err := g.ReadWriteCloser.Write(g.held)
	if cap(g.held) > maxHeld {
		g.held = nil
	}
	g.held = g.held[:0]
	return err
}

// flushLate writes what nothing followed.
func (g *guarded) flushLate() {
	g.out.Lock()
	defer g.out.Unlock()
	g.armed = false
	if len(g.held) > 0 && g.flush() != nil {
		g.ReadWriteCloser.Close() // the reader notices
	}
}

// endSilently says that the end of a stream may be told later.
func (g *guarded) endSilently(id uint32) {
	g.out.Lock()
	defer g.out.Unlock()
	if len(g.silent) >= maxStreams { // some had ended before: they are told nothing
		clear(g.silent)
	}
	g.silent[id] = true
}

func (g *guarded) Close() error {
	g.wake()
	return g.ReadWriteCloser.Close()
}
