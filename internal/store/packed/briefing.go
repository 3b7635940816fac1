package packed

import (
	"bytes"
	"sync/atomic"

	"deckhand/internal/session"
)

// Encode is session.Encode, which for a briefing is most of what the first turn of a session writes.
func Encode(p session.Payload) ([]byte, error) {
	if p, ok := p.(session.Briefed); ok {
		b := briefingOf(p)
		return b.encoded[:len(b.encoded):len(b.encoded)], b.err
	}
	return session.Encode(p)
}

// briefing is an encoded briefing.
type briefing struct {
	of      session.Briefed
	encoded []byte
	err     error
	// stored and ok are those of asStored.
	stored session.Briefed
	ok     bool
}

// newest is the last briefing: nearly all sessions have the same one.
var newest atomic.Pointer[briefing]

func briefingOf(p session.Briefed) *briefing {
	if b := newest.Load(); b != nil && b.of.Prompt == p.Prompt && b.of.Agent == p.Agent && b.of.Model == p.Model && bytes.Equal(b.of.Tools, p.Tools) {
		return b
	}
	b := &briefing{of: p, stored: p}
	b.encoded, b.err = session.Encode(p)
	b.stored.Tools, b.ok = compact(p.Tools)
	b.ok = b.ok && valid(p.Prompt, p.Agent, p.Model)
	newest.Store(b)
	return b
}
