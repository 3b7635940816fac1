package session

import "fmt"

// CompactAsked records the user's request to condense the history, with instructions for the summary. A Condensed event completes the request, or
// a Noted event with the ID NoteCompactFailed has the reason why it failed.
type CompactAsked struct {
	Instructions string `json:"instructions,omitempty"`
}

// NoteCompactFailed is the ID of the notice that compacting failed.
const NoteCompactFailed = "STATUS$COMPACT_FAILED"

// AskCompact records the request. It starts a stopped session.
func (s State) AskCompact(c CompactAsked) ([]Payload, error) {
	out, err := s.Start()
	if err == nil && (s.Compact != nil || s.Replaying()) {
		err = fmt.Errorf("%w: the conversation is already being compacted, or a recording is being replayed", ErrRefused)
	}
	return append(out, c), err
}
