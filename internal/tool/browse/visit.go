package browse

import (
	"context"
	"errors"
	"sync"
	"time"

	"deckhand/internal/tool/browse/chromium"
	"deckhand/internal/tool/browse/page"
)

// errClosed says that the tool, or the session, is not served any more.
var errClosed = errors.New("the browser tool was closed")

// visit is a session's connection to its browser. One call at a time uses it.
type visit struct {
	turn chan struct{} // holds a token while it is unused

	mu      sync.Mutex
	over    bool
	browser *page.Browser // nil if there is none
	place   chromium.Place
	used    bool // there was one before
	idle    *time.Timer
}

// enter waits for the session's turn.
func (t *Tool) enter(ctx context.Context, session string) (*visit, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, errClosed
	}
	v := t.visits[session]
	if v == nil {
		v = &visit{turn: make(chan struct{}, 1)}
		v.turn <- struct{}{}
		t.visits[session] = v
	}
	t.mu.Unlock()
	select {
	case <-v.turn:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.idle != nil {
		v.idle.Stop()
	}
	return v, nil
}

// leave lets the next caller in. If none comes for so long, the connection is closed.
func (v *visit) leave(idle time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.over {
		v.idle = time.AfterFunc(idle, v.rest)
	}
	v.turn <- struct{}{} // there is room for it
}

// rest closes an unused connection. It waits for a caller that is leaving: otherwise it would
// find the turn taken, and the connection would stay.
func (v *visit) rest() {
	v.mu.Lock()
	var free bool
	select {
	case <-v.turn:
		free = true
	default: // a caller came just now
	}
	v.mu.Unlock()
	if free {
		v.drop()
		v.turn <- struct{}{}
	}
}

// hold keeps a connection, unless the visit is over.
func (v *visit) hold(b *page.Browser, place chromium.Place) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return false
	}
	v.browser, v.place, v.used = b, place, true
	return true
}

// drop closes the connection.
func (v *visit) drop() {
	v.mu.Lock()
	b := v.browser
	v.browser = nil
	v.mu.Unlock()
	if b != nil {
		b.Close()
	}
}

// end closes the connection for good, also under a call that uses it.
func (v *visit) end() {
	v.mu.Lock()
	v.over = true
	if v.idle != nil {
		v.idle.Stop()
	}
	b := v.browser
	v.mu.Unlock()
	if b != nil {
		b.Close()
	}
}
