package live

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"deckhand/internal/session"
)

// Bounds of what is remembered of answers that are being written. What does
// not fit is not shown while it is written; the stored answer brings it.
const (
	fragmentBytes = 1 << 20  // of one answer
	totalBytes    = 64 << 20 // of all
	openCalls     = 10_000
	// staleAfter is for a call whose end was never reported: its replica died.
	staleAfter = 10 * time.Minute
	// endedCalls is how many ended calls are remembered, so that a delta that
	// comes too late (from another replica, say) does not open one again.
	endedCalls = 256
)

// fragments are the unfinished answers, by session. They are kept with or without followers,
// because a client that connects in the middle needs the beginning too. The text is in memory
// once here and once in the loop.
type fragments struct {
	mu    sync.Mutex
	byID  map[session.ID]*fragment
	bytes int
	swept time.Time
	ended [endedCalls]endedCall
	at    int
}

type endedCall struct {
	id   session.ID
	call string
}

// fragment is the part of an answer that exists. Its text only grows, so
// readers use slices of it without a copy.
type fragment struct {
	call    string
	touched time.Time
	full    bool

	text []byte
	// held was written after text, and is not shown.
	held string
	// chunk is the delta that was encoded last: readers that keep up all want the same.
	chunk    Frame
	from, to int
}

// Delta adds to the answer that the model is writing in the call. It is never
// stored, and never moves a reader's position.
func (h *Hub) Delta(id session.ID, call, text string) {
	if text != "" && h.open.add(id, call, text) {
		for _, d := range h.feedsOf(id) {
			d.wake()
		}
	}
}

// DeltaAt is Delta for text that another server sent: it begins after offset bytes of the answer. Text that is known is
// left out, and after a gap nothing more of the answer is shown, because messages between servers can be lost.
func (h *Hub) DeltaAt(id session.ID, call string, offset int, text string) {
	h.open.mu.Lock()
	known := 0
	if fr := h.open.byID[id]; fr != nil && fr.call == call {
		known = len(fr.text)
		fr.full = fr.full || offset > known
	} else if offset > 0 {
		h.open.mu.Unlock()
		return
	}
	h.open.mu.Unlock()
	if known < offset+len(text) && known >= offset {
		h.Delta(id, call, text[known-offset:])
	}
}

// Hold sets what the call has written after its deltas and what may not be shown
// yet. It is part of Written until the next delta, which begins with it.
func (h *Hub) Hold(id session.ID, call, text string) {
	h.open.mu.Lock()
	defer h.open.mu.Unlock()
	if fr := h.open.of(id, call, time.Now()); fr != nil {
		h.open.hold(fr, text)
	}
}

// EndDelta says the call is over; call it after its end was stored. Without it
// the text is let go when a reader sees the end, when the session's next call
// begins, or when the place is needed.
func (h *Hub) EndDelta(id session.ID, call string) {
	h.open.mu.Lock()
	defer h.open.mu.Unlock()
	h.open.end(id, call)
}

// Written is what the call has written so far, "" if it is not known.
func (h *Hub) Written(id session.ID, call string) string {
	h.open.mu.Lock()
	defer h.open.mu.Unlock()
	if fr := h.open.byID[id]; fr != nil && fr.call == call {
		text := append(slices.Clip(fr.text), fr.held...)
		return string(text[:whole(text)])
	}
	return ""
}

// add appends; false if nothing is to be shown.
func (o *fragments) add(id session.ID, call, text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	fr := o.of(id, call, time.Now())
	if fr == nil {
		return false
	}
	o.hold(fr, "")
	if !o.fits(fr, text) {
		fr.full = true // a hole in the text would be worse than its end
		return false
	}
	fr.text = append(fr.text, text...)
	o.bytes += len(text)
	return true
}

// of is the fragment of a call, a new one if need be; nil if the call has ended, or
// there are too many. It is called with mu held, as are hold, fits and end.
func (o *fragments) of(id session.ID, call string, now time.Time) *fragment {
	fr := o.byID[id]
	if fr == nil || fr.call != call {
		if o.hasEnded(id, call) {
			return nil
		}
		if fr != nil {
			o.end(id, fr.call)
		}
		if len(o.byID) >= openCalls {
			o.sweep(now)
		}
		if len(o.byID) >= openCalls {
			return nil
		}
		fr = &fragment{call: call}
		o.byID[id] = fr
	}
	fr.touched = now
	return fr
}

// hold replaces what is held, if the new text fits.
func (o *fragments) hold(fr *fragment, text string) {
	o.bytes -= len(fr.held)
	fr.held = ""
	if o.fits(fr, text) {
		fr.held = text
		o.bytes += len(text)
	}
}

// fits reports whether there is room for the text after what was written before.
func (o *fragments) fits(fr *fragment, text string) bool {
	if o.bytes+len(text) > totalBytes {
		o.sweep(fr.touched)
	}
	return !fr.full && len(fr.text)+len(text) <= fragmentBytes && o.bytes+len(text) <= totalBytes
}

// size is what counts of the fragment.
func (fr *fragment) size() int { return len(fr.text) + len(fr.held) }

// end forgets a call, and remembers that it has ended.
func (o *fragments) end(id session.ID, call string) {
	if !o.hasEnded(id, call) {
		o.ended[o.at] = endedCall{id, call}
		o.at = (o.at + 1) % len(o.ended)
	}
	if fr := o.byID[id]; fr != nil && fr.call == call {
		o.bytes -= fr.size()
		delete(o.byID, id)
	}
}

func (o *fragments) hasEnded(id session.ID, call string) bool {
	for i := range o.ended {
		if o.ended[i].call == call && o.ended[i].id == id {
			return true
		}
	}
	return false
}

// sweep lets go of what was left behind. It looks at all of them, so not too often.
func (o *fragments) sweep(now time.Time) {
	if now.Sub(o.swept) < staleAfter/10 {
		return
	}
	o.swept = now
	for id, fr := range o.byID {
		if now.Sub(fr.touched) > staleAfter {
			o.bytes -= fr.size()
			delete(o.byID, id)
		}
	}
}

// since is the part that the reader does not have, however much it is: a slow
// reader gets larger pieces, and no queue grows for it.
func (o *fragments) since(f *follower) (Frame, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fr := o.byID[f.feed.id]
	if fr == nil || fr.call == f.settled || session.IsTyped(fr.call) { // clients take an unknown call for an answer
		return Frame{}, false
	}
	if time.Since(fr.touched) > staleAfter {
		o.end(f.feed.id, fr.call)
		return Frame{}, false
	}
	if f.call != fr.call {
		f.call, f.offset = fr.call, 0
	}
	from, end := f.offset, whole(fr.text)
	if from >= end {
		return Frame{}, false
	}
	f.offset = end
	if fr.from != from || fr.to != end {
		fr.chunk, fr.from, fr.to = encodeDelta(fr.call, from, fr.text[from:end]), from, end
	}
	return fr.chunk, true
}

// whole is the length of the text without a character of which a part is missing yet.
func whole(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}

// encodeDelta makes the frame. The offset counts bytes of UTF-8; a client only
// needs to know that 0 begins anew.
func encodeDelta(call string, offset int, text []byte) Frame {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// Strings and a number always encode.
	_ = e.Encode(struct {
		Call   string `json:"call"`
		Offset int    `json:"offset"`
		Text   string `json:"text"`
	}{call, offset, string(text)})
	return Frame{Event: EventDelta, Data: bytes.TrimSuffix(b.Bytes(), []byte("\n"))}
}
