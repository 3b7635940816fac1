package llm

import (
	"bytes"
	"slices"
)

// Written keeps how an adapter wrote the beginning of a conversation's last request, so that
// the next request is written from there on. It belongs to one history, of which only the end
// grows: a history that changes otherwise gets a new one. It serves one request at a time.
type Written struct {
	wire     string
	tools    []Tool
	offered  []byte
	system   string
	count    int
	messages []byte
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

// Recall returns what Keep was given of this request: the tools, nil if they have changed, and
// the first count messages with all that stands before them. wire names the adapter and
// everything but the request that decides how it writes. The results must not be changed.
func (r *Request) Recall(wire string) (tools, messages []byte, count int) {
	w := r.Written
	if w == nil || w.wire != wire+r.Fitted {
		return nil, nil, 0
	}
	if slices.EqualFunc(w.tools, r.Tools, sameTool) {
		tools = w.offered
	}
	if w.continues(r) {
		messages, count = w.messages, w.count
	}
	return tools, messages, count
}

// Keep takes what was written of a request: its tools, and its first count messages with what
// stands before them, which begin with what Recall returned.
func (r *Request) Keep(wire string, tools, messages []byte, count int) {
	w := r.Written
	if w == nil {
		return
	}
	if w.wire != wire+r.Fitted {
		*w = Written{wire: wire + r.Fitted, accepted: w.accepted}
	}
	if w.offered == nil || !slices.EqualFunc(w.tools, r.Tools, sameTool) {
		w.tools, w.offered = r.Tools, bytes.Clone(tools)
	}
	if !w.continues(r) {
		w.messages = w.messages[:0]
	}
	w.messages = append(w.messages, messages[len(w.messages):]...)
	w.system, w.count = r.System, count
}

// continues reports whether the request has the messages that were written, and perhaps more.
func (w *Written) continues(r *Request) bool {
	return w.count > 0 && w.count <= len(r.Messages) && w.system == r.System
}

func sameTool(a, b Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}
