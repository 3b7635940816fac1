package session

import "fmt"

// CompactAsked says that the user wants the history to be condensed now, with instructions for the summary. A Condensed event carries it out, or a
// Noted event with the ID NoteCompactFailed says why it was not.
type CompactAsked struct {
	Instructions string `json:"instructions,omitempty"`
}

// NoteCompactFailed is the ID of that notice.
const NoteCompactFailed = "STATUS$COMPACT_FAILED"

// AskCompact records the request. It starts a stopped session.
func (s State) AskCompact(c CompactAsked) ([]Payload, error) {
	out, err := s.Start()
	if err == nil && (s.Compact != nil || s.Replaying()) {
		err = fmt.Errorf("%w: the conversation is already being compacted, or a recording is being replayed", ErrRefused)
	}
	return append(out, c), err
}
