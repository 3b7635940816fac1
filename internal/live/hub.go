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

// Encoder makes the frame of a stored event. False means that the format has no frame for the
// event: it is skipped, and the position moves past it. An error ends the streams that need the
// event. It is called from several goroutines. Hub sets the Number.
type Encoder func(session.ID, session.Event) (Frame, bool, error)

// ErrAhead is given to a reader whose position is beyond the end of the log:
// it followed another log (one that was restored from a backup since, say) and
// must begin anew, or it would wait for numbers that mean something else.
var ErrAhead = errors.New("the position is beyond the end of the conversation")

// Hub implements session.Observer. Sessions without followers cost nothing.
type Hub struct {
	log      session.Log
	encoders []Encoder // by Format
	open     fragments
	large    large
	queued   queued

	mu    sync.RWMutex
	feeds map[feedKey]*feed
}

// Format is the index of an Encoder given to New. The zero value is the first one.
type Format int

// feedKey names a feed: the readers of one session in one format share it.
type feedKey struct {
	id     session.ID
	format Format
}

// New makes a Hub that reads from log. Each encoder is a format that readers can choose.
func New(log session.Log, encoders ...Encoder) *Hub {
	return &Hub{log: log, encoders: encoders, open: fragments{byID: map[session.ID]*fragment{}}, feeds: map[feedKey]*feed{}, queued: queued{byID: map[session.ID]*Frame{}}}
}

// Encode returns the frame of a stored event as readers of the format get it; false if they
// have no word for it.
func (h *Hub) Encode(format Format, id session.ID, e session.Event) (Frame, bool, error) {
	return h.encoders[format](id, e)
}

// Appended implements session.Observer; it never blocks. Being called too
// often, too early, out of order or for a number that is not there does no harm.
func (h *Hub) Appended(id session.ID, last int64) {
	for _, d := range h.feedsOf(id) {
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
	n := 0
	for _, d := range h.feedsOf(id) {
		d.mu.Lock()
		n += d.followers
		d.mu.Unlock()
	}
	return n
}

// feedsOf finds the session's feeds, at most one for each format; none if it has no followers.
func (h *Hub) feedsOf(id session.ID) []*feed {
	h.mu.RLock()
	defer h.mu.RUnlock()
	var found []*feed
	for format := range h.encoders {
		if d := h.feeds[feedKey{id, Format(format)}]; d != nil {
			found = append(found, d)
		}
	}
	return found
}

// join subscribes a reader. From now on the feed notices every append; what
// was appended before is for the reader to read.
func (h *Hub) join(id session.ID, format Format, after int64) *follower {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := feedKey{id, format}
	d := h.feeds[key]
	if d == nil {
		d = &feed{hub: h, feedKey: key, encode: h.encoders[format], changed: make(chan struct{})}
		d.ctx, d.cancel = context.WithCancel(context.Background())
		h.feeds[key] = d
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
		if h.feeds[d.feedKey] == d { // a feed that failed was replaced already
			delete(h.feeds, d.feedKey)
		}
	}
}

// forget takes a feed that failed out of the map, so that the next reader gets a new one.
func (h *Hub) forget(d *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.feeds[d.feedKey] == d {
		delete(h.feeds, d.feedKey)
	}
}

// item is a stored event on its way to readers.
type item struct {
	number  int64
	frame   Frame
	shown   bool   // there is a frame
	settles string // the model call that this event ends
	end     bool   // nothing follows
	shared  *item  // the one in the cache of large frames, which lives as long as it is in use
}

// item encodes an event. False means that no reader needs to know of it.
func (d *feed) item(e session.Event) (item, bool, error) {
	large := &d.hub.large
	if shared := large.get(d.feedKey, e.Number); shared != nil {
		it := *shared
		it.shared = shared
		return it, true, nil
	}
	it, needed, err := d.encodeItem(e)
	if err == nil && len(it.frame.Data) >= largeFrame {
		mine := it // on the heap, for as long as it is in use
		shared := large.put(d.feedKey, &mine)
		it = *shared
		it.shared = shared
	}
	return it, needed, err
}

func (d *feed) encodeItem(e session.Event) (item, bool, error) {
	frame, shown, err := d.encode(d.id, e)
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

// anyNumber makes a feed read the log again, whatever it has read.
const anyNumber = math.MaxInt64
