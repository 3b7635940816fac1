package packed

import (
	"encoding/binary"
	"errors"

	"deckhand/internal/session"
)

// The body of a row holds the events of one batch, one behind the other: the
// kind, the time after the row's, and the JSON, each preceded by its length. Then
// follows the mark of the hash chain, unless the row is older than the chain.

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
	events, _, err := parse(b)
	return events, err
}

// parse reads a row that is not compressed. mark is nil if it has none.
func parse(b []byte) (out []Event, mark []byte, err error) {
	for len(b) > 0 {
		var p Event
		kind, rest, ok := cutPiece(b)
		if !ok {
			return out, nil, ErrCut
		}
		if len(kind) == 0 && len(out) > 0 && len(b) == markSize {
			return out, rest, nil
		}
		delay, n := binary.Varint(rest)
		if n <= 0 {
			return out, nil, ErrCut
		}
		p.Kind, p.Delay = session.Kind(kind), delay
		if p.Body, b, ok = cutPiece(rest[n:]); !ok {
			return out, nil, ErrCut
		}
		out = append(out, p)
	}
	return out, nil, nil
}

// cutPiece takes what is preceded by its length from the front.
func cutPiece(b []byte) (piece, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}
