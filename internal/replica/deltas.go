package replica

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"deckhand/internal/session"
)

// Hub delivers fragments of answers to the local followers of a session.
type Hub interface {
	Delta(id session.ID, call, text string)
	Hold(id session.ID, call, text string)
	EndDelta(id session.ID, call string)
	// DeltaAt is Delta for a fragment at an offset in bytes.
	DeltaAt(id session.ID, call string, offset int, text string)
}

const (
	// gather is how long fragments are collected before they are sent.
	gather = 40 * time.Millisecond
	// most is the maximum size of a message's text, if NATS allows it, and gatherMost that of all collected text.
	most       = 64 << 10
	gatherMost = 4 << 20
)

// Deltas delivers fragments of answers to local followers and sends them to the other servers.
type Deltas struct {
	*Replica
	Hub

	mu      sync.Mutex
	open    map[session.ID]*fragment
	changed map[session.ID]bool
	size    int
	wake    chan struct{}
}

// fragment is the text of a call that is yet to be sent.
type fragment struct {
	Session session.ID `json:"session"`
	Call    string     `json:"call"`
	Offset  int        `json:"offset"`
	Text    string     `json:"text,omitempty"`
	End     bool       `json:"end,omitempty"`
	lost    bool       // text was dropped, so the rest is not sent either
}

// NewDeltas returns Deltas. Run sends the collected fragments.
func NewDeltas(r *Replica, h Hub) *Deltas {
	return &Deltas{Replica: r, Hub: h, open: map[session.ID]*fragment{}, changed: map[session.ID]bool{}, wake: make(chan struct{}, 1)}
}

// Delta implements agent.Deltas, as do Hold and EndDelta.
func (d *Deltas) Delta(id session.ID, call, text string) {
	d.Hub.Delta(id, call, text)
	if d.Alone() || text == "" || session.IsTyped(call) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.open[id]
	if f == nil || f.Call != call {
		if f != nil {
			d.size -= len(f.Text)
		}
		f = &fragment{Session: id, Call: call}
		d.open[id] = f
	}
	if f.lost = f.lost || d.size+len(text) > gatherMost; f.lost {
		return
	}
	f.Text += text
	d.size += len(text)
	d.poke(id)
}

// EndDelta implements agent.Deltas.
func (d *Deltas) EndDelta(id session.ID, call string) {
	d.Hub.EndDelta(id, call)
	if d.Alone() || session.IsTyped(call) {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.open[id]; f != nil && f.Call == call {
		f.End = true
		d.poke(id)
	}
}

// poke makes Run send what a session has. It is called with mu held.
func (d *Deltas) poke(id session.ID) {
	d.changed[id] = true
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// Run sends fragments and delivers those of other servers, until ctx ends.
func (d *Deltas) Run(ctx context.Context) error {
	if d.Alone() {
		return nil
	}
	stop, err := d.receive("delta", d.received)
	if err != nil {
		return err
	}
	defer stop()
	tick := time.NewTicker(gather)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		}
		select { // collect more
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, f := range d.take() {
			d.send(f)
		}
	}
}

// take returns and removes the collected fragments.
func (d *Deltas) take() (out []fragment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.changed {
		f := d.open[id]
		if f == nil {
			continue
		}
		out = append(out, *f)
		d.size -= len(f.Text)
		f.Offset += len(f.Text)
		f.Text = ""
		if f.End {
			delete(d.open, id)
		}
	}
	clear(d.changed)
	return out
}

// send publishes a fragment in one or more messages.
func (d *Deltas) send(f fragment) {
	size := min(most, d.room()/4*3) // in base64
	for {
		part := f
		if len(part.Text) > size {
			part.Text, part.End = f.Text[:size], false
		}
		d.Replica.send("delta", struct {
			fragment
			Bytes []byte `json:"bytes"` // a part may end within a character
		}{fragment{Session: part.Session, Call: part.Call, Offset: part.Offset, End: part.End}, []byte(part.Text)})
		if f.Text = f.Text[len(part.Text):]; f.Text == "" {
			return
		}
		f.Offset += len(part.Text)
	}
}

// received delivers a fragment of another server.
func (d *Deltas) received(data []byte) {
	var f struct {
		fragment
		Bytes []byte `json:"bytes"`
	}
	if json.Unmarshal(data, &f) != nil {
		return
	}
	if len(f.Bytes) > 0 {
		d.DeltaAt(f.Session, f.Call, f.Offset, string(f.Bytes))
	}
	if f.End {
		d.Hub.EndDelta(f.Session, f.Call)
	}
}
