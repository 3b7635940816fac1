package sqlite

import (
	"encoding/binary"
	"errors"

	"deckhand/internal/session"
)

// The body of a row holds the events of one batch, one behind the other: the
// kind, the time after the row's, and the JSON, each preceded by its length.

// packed is one event as it lies in a row.
type packed struct {
	kind  session.Kind
	delay int64 // microseconds after the row's time
	body  []byte
}

func pack(dst []byte, kind session.Kind, delay int64, body []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(kind)))
	dst = append(dst, kind...)
	dst = binary.AppendVarint(dst, delay)
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	return append(dst, body...)
}

var errPacked = errors.New("it is cut off or overwritten")

// unpack reverses pack for a whole row. The bodies are parts of b.
func unpack(b []byte) ([]packed, error) {
	var out []packed
	for len(b) > 0 {
		var p packed
		kind, rest, ok := cutPiece(b)
		if !ok {
			return out, errPacked
		}
		delay, n := binary.Varint(rest)
		if n <= 0 {
			return out, errPacked
		}
		p.kind, p.delay = session.Kind(kind), delay
		if p.body, b, ok = cutPiece(rest[n:]); !ok {
			return out, errPacked
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
