package socketio

import (
	"sync"

	"deckhand/internal/socketio/wire"
)

// What a mailbox holds at most. One larger packet may wait alone.
const (
	mailPackets = 16
	mailBytes   = 1 << 20
)

// mailbox hands packets from the reader of a connection to the goroutine that
// works for one socket. It holds few, so that a client is soon told to wait, and
// some, so that a short piece of work in one namespace does not hold up others.
type mailbox struct {
	mu      sync.Mutex
	waiting []*wire.Packet
	bytes   int
	closed  bool

	// Each holds one token at most: there is one reader and one worker.
	room, filled chan struct{}
}

func newMailbox() *mailbox {
	return &mailbox{room: make(chan struct{}, 1), filled: make(chan struct{}, 1)}
}

// put waits until there is room. The packet is dropped if the mailbox closes.
func (m *mailbox) put(p *wire.Packet) {
	for !m.offer(p) {
		<-m.room
	}
}

// offer reports whether the packet needs no more waiting.
func (m *mailbox) offer(p *wire.Packet) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := p.Size()
	switch {
	case m.closed:
		return true
	case len(m.waiting) == mailPackets, len(m.waiting) > 0 && m.bytes+size > mailBytes:
		return false
	}
	m.waiting = append(m.waiting, p)
	m.bytes += size
	poke(m.filled)
	return true
}

// take waits for the next packet. It gives none when the mailbox is closed and
// empty, or when stop comes first.
func (m *mailbox) take(stop <-chan struct{}) (*wire.Packet, bool) {
	for {
		p, more := m.next()
		if p != nil || !more {
			return p, p != nil
		}
		select {
		case <-m.filled:
		case <-stop:
			return nil, false
		}
	}
}

// next takes a packet if one waits; more says whether waiting makes sense.
func (m *mailbox) next() (p *wire.Packet, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		return nil, !m.closed
	}
	p = m.waiting[0]
	m.waiting[0] = nil
	if m.waiting = m.waiting[1:]; len(m.waiting) == 0 {
		m.waiting = nil // idle sockets are many
	}
	m.bytes -= p.Size()
	poke(m.room)
	return p, true
}

// close lets nothing more in. What waits may still be taken, unless it is to be
// discarded.
func (m *mailbox) close(discard bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	if discard {
		m.waiting, m.bytes = nil, 0
	}
	poke(m.room)
	poke(m.filled)
}

// poke leaves a token, if none is there.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
