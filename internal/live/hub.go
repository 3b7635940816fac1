package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"deckhand/internal/session"
)

// Frame is one thing that a reader is told.
type Frame struct {
	// Number is that of the stored event, 0 if nothing is stored.
	Number int64
	// Event is "" for a stored event, or one of the Event constants.
	Event string
	// Data is JSON on one line. It is shared between readers: do not change it.
	Data []byte
}

// The frames that are not simply a stored event.
const (
	EventStatus = "status" // a stored fact that is a notice beside the history; encoders make it
	EventDelta  = "delta"  // more of the answer that is being written: {"call","offset","text"}
	EventEnd    = "end"    // the conversation was deleted, nothing will follow
	EventPing   = "ping"   // nothing happened for a while
)

// Encoder makes the frame of a stored event. False means that readers have no
// word for the event: it is skipped, and the position moves past it. An error
// ends the stream of whoever needs the event. It is called from several
// goroutines. Hub sets the Number.
type Encoder func(session.ID, session.Event) (Frame, bool, error)

// ErrAhead is given to a reader whose position is beyond the end of the log:
// it followed another log (one that was restored from a backup since, say) and
// must begin anew, or it would wait for numbers that mean something else.
var ErrAhead = errors.New("the position is beyond the end of the conversation")

// Hub implements session.Observer. Sessions that nobody follows cost nothing.
type Hub struct {
	log    session.Log
	encode Encoder
	open   fragments
	large  large

	mu    sync.RWMutex
	feeds map[session.ID]*feed
}

// New makes a Hub that reads from log.
func New(log session.Log, encode Encoder) *Hub {
	return &Hub{log: log, encode: encode, open: fragments{byID: map[session.ID]*fragment{}}, feeds: map[session.ID]*feed{}}
}

// Appended implements session.Observer; it never blocks. Being called too
// often, too early, out of order or for a number that is not there does no harm.
func (h *Hub) Appended(id session.ID, last int64) {
	if d := h.feed(id); d != nil {
		d.poke(last)
	}
}

// Followers is how many readers there are.
func (h *Hub) Followers() int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	n := 0
	for _, d := range h.feeds {
		d.mu.Lock()
		n += d.followers
		d.mu.Unlock()
	}
	return n
}

// Following is how many readers one session has.
func (h *Hub) Following(id session.ID) int {
	d := h.feed(id)
	if d == nil {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.followers
}

// feed finds the session's feed; nil if nobody follows it.
func (h *Hub) feed(id session.ID) *feed {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.feeds[id]
}

// join subscribes a reader. From now on the feed notices every append; what
// was appended before is for the reader to read.
func (h *Hub) join(id session.ID, after int64) *follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.feeds[id]
	if d == nil {
		d = &feed{hub: h, id: id, changed: make(chan struct{})}
		d.ctx, d.cancel = context.WithCancel(context.Background())
		h.feeds[id] = d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followers++
	after = max(after, 0)
	return &follower{hub: h, feed: d, cursor: after, verified: after == 0, round: -1, settled: d.settled}
}

// leave takes a reader away; the last one takes the feed along.
func (h *Hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := f.feed
	d.mu.Lock()
	defer d.mu.Unlock()
	d.followers--
	if f.round == d.round {
		d.current--
	}
	d.dropTail()
	if d.followers == 0 {
		d.cancel()
		if h.feeds[d.id] == d { // a feed that failed was replaced already
			delete(h.feeds, d.id)
		}
	}
}

// forget takes a feed that failed out of the map, so that the next reader gets a new one.
func (h *Hub) forget(d *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[d.id] == d {
		delete(h.feeds, d.id)
	}
}

// item is a stored event on its way to readers.
type item struct {
	number  int64
	frame   Frame
	shown   bool   // there is a frame
	settles string // the model call that this event ends
	end     bool   // nothing follows
	shared  *item  // the one in the cache of large frames, which lives as long as somebody holds it
}

// item encodes an event. False means that no reader needs to know of it.
func (h *Hub) item(id session.ID, e session.Event) (item, bool, error) {
	if shared := h.large.get(id, e.Number); shared != nil {
		it := *shared
		it.shared = shared
		return it, true, nil
	}
	it, needed, err := h.encodeItem(id, e)
	if err == nil && len(it.frame.Data) >= largeFrame {
		mine := it // on the heap, for as long as somebody holds it
		shared := h.large.put(id, &mine)
		it = *shared
		it.shared = shared
	}
	return it, needed, err
}

func (h *Hub) encodeItem(id session.ID, e session.Event) (item, bool, error) {
	frame, shown, err := h.encode(id, e)
	if err != nil {
		return item{}, false, fmt.Errorf("encode event %d: %w", e.Number, err)
	}
	it := item{number: e.Number, shown: shown}
	if shown {
		frame.Number = e.Number
		if frame.Data, err = oneLine(frame.Data); err != nil {
			return item{}, false, fmt.Errorf("encode event %d: %w", e.Number, err)
		}
		it.frame = frame
	}
	switch p := e.Payload.(type) {
	case session.ModelAnswered:
		it.settles = p.Call
	case session.ModelFailed:
		it.settles = p.Call
	case session.Deleted:
		it.end = true
	}
	return it, it.shown || it.settles != "" || it.end, nil
}

// oneLine makes sure of what server-sent events need: no line breaks. In JSON
// they can only stand between tokens.
func oneLine(data []byte) ([]byte, error) {
	if !bytes.ContainsAny(data, "\r\n") {
		return data, nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// anyNumber pokes a feed that shall look at the log whatever it knows.
const anyNumber = math.MaxInt64
