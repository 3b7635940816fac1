package packed

import (
	"encoding/binary"
	"errors"

	"deckhand/internal/session"
)

// The body of a row holds the events of one batch, one behind the other: the
// kind, the time after the row's, and the JSON, each preceded by its length.

// Event is one event as it lies in a row.
type Event struct {
	Kind  session.Kind
	Delay int64 // microseconds after the row's time
	Body  []byte
}

// Append adds an event to a row.
func Append(dst []byte, kind session.Kind, delay int64, body []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(kind)))
	dst = append(dst, kind...)
	dst = binary.AppendVarint(dst, delay)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

// ErrCut is the error of a blob that does not end where it says it does.
var ErrCut = errors.New("it is cut off or overwritten")

// Events reverses Append for a whole row. With an error come the events before the damage.
func Events(b []byte) ([]Event, error) {
	b, err := Open(b)
	if err != nil {
		return nil, err
	}
	var out []Event
	for len(b) > 0 {
		var p Event
		kind, rest, ok := cutPiece(b)
		if !ok {
			return out, ErrCut
		}
		delay, n := binary.Varint(rest)
		if n <= 0 {
			return out, ErrCut
		}
		p.Kind, p.Delay = session.Kind(kind), delay
		if p.Body, b, ok = cutPiece(rest[n:]); !ok {
			return out, ErrCut
		}
		out = append(out, p)
	}
	return out, nil
}

// cutPiece takes what is preceded by its length from the front.
func cutPiece(b []byte) (piece, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}
