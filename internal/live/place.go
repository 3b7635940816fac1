package live

import (
	"encoding/json"
	"sync"

	"deckhand/internal/session"
)

// EventQueue is the frame with the position of a session in the queue for a free slot. On the stream of a session it is the
// position, or null when the session no longer waits; on that of a list it is {"conversation_id","queue"}. It is never
// stored, and readers get only the newest one. Streams for legacy clients do not have it.
const EventQueue = "queue"

// notWaiting is the frame of a session that no longer waits.
var notWaiting = Frame{Event: EventQueue, Data: []byte("null")}

// queued are the positions of waiting sessions. Frames are compared by their address.
type queued struct {
	mu   sync.RWMutex
	byID map[session.ID]*Frame
	told func(owner string, id session.ID, place []byte)
}

// OnPlace sets a function that SetPlace calls, too. Call it before the first SetPlace.
func (h *Hub) OnPlace(told func(owner string, id session.ID, place []byte)) { h.queued.told = told }

// SetPlace sets the position of a session in the queue, as JSON; nil if it no longer waits.
func (h *Hub) SetPlace(owner string, id session.ID, place []byte) {
	if h.queued.told != nil {
		h.queued.told(owner, id, place)
	}
	h.queued.mu.Lock()
	if place == nil {
		delete(h.queued.byID, id)
	} else {
		h.queued.byID[id] = &Frame{Event: EventQueue, Data: place}
	}
	h.queued.mu.Unlock()
	for _, d := range h.feedsOf(id) {
		d.wake()
	}
}

// givePlace hands over the place in the queue, if it is new.
func (f *follower) givePlace(out sink) (bool, error) {
	if f.feed.format == 0 {
		return false, nil
	}
	f.hub.queued.mu.RLock()
	now := f.hub.queued.byID[f.feed.id]
	f.hub.queued.mu.RUnlock()
	if now == f.place {
		return false, nil
	}
	if f.place = now; now == nil {
		return true, out.frame(notWaiting)
	}
	return true, out.frame(*now)
}

// SetPlace tells the readers of a list where a session stands in the queue, as JSON; nil if it waits no more.
func (l *Lists) SetPlace(owner string, id session.ID, place []byte) {
	l.mu.RLock()
	d := l.owners[owner]
	l.mu.RUnlock()
	if d == nil {
		return
	}
	if place == nil {
		place = []byte("null")
	}
	n := &news{row: session.Row{ID: id}}
	n.once.Do(func() {
		n.frame.Event = EventQueue
		n.frame.Data, n.err = json.Marshal(struct {
			ID    session.ID      `json:"conversation_id"`
			Queue json.RawMessage `json:"queue"`
		}{id, place})
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.places) >= maxListed { // readers that fell behind get a snapshot, which has the places
		d.told++
		d.floor = d.told
		clear(d.places)
	}
	d.told++
	d.places[id] = &listed{number: d.told, news: n}
	d.broadcast()
}
