package llm

import (
	"bytes"
	"slices"
)

// Written keeps how an adapter wrote the beginning of a conversation's last request, so that
// the next request is written from there on: see Body. It belongs to one history, of which only
// the end grows: a history that changes otherwise gets a new one. It serves one request at a time.
type Written struct {
	wire   string
	tools  []Tool
	system string
	// offered are the tools and messages the first count messages, as they are sent. Requests are
	// sent from here, perhaps still when the next one is written: bytes are only added.
	offered  []byte
	messages []byte
	count    int
	note     string
	accepted map[string]int
}

// Size is about how many bytes of memory it takes up.
func (w *Written) Size() int64 {
	if w == nil {
		return 0
	}
	return int64(len(w.messages) + len(w.offered))
}

// Accepted is how many messages at the beginning are known to need no change of a kind.
func (w *Written) Accepted(kind string) int {
	if w == nil {
		return 0
	}
	return w.accepted[kind]
}

// Accept notes that the first count messages need no change of a kind.
func (w *Written) Accept(kind string, count int) {
	if w == nil {
		return
	}
	if w.accepted == nil {
		w.accepted = map[string]int{}
	}
	w.accepted[kind] = count
}

// begin forgets what a request does not continue.
func (w *Written) begin(wire string, r *Request) {
	if w.wire != wire {
		*w = Written{wire: wire, accepted: w.accepted}
	}
	if !slices.EqualFunc(w.tools, r.Tools, sameTool) {
		w.tools, w.offered = r.Tools, nil
	}
	if w.count > len(r.Messages) || w.system != r.System {
		w.messages, w.count, w.note = nil, 0, ""
	}
	w.system = r.System
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
