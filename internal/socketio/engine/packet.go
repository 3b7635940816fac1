package engine

import (
	"bytes"
	"encoding/base64"
	"io"
	"iter"
	"unicode/utf8"
)

// The kinds of packets, as they are written.
const (
	kindOpen    = '0'
	kindClose   = '1'
	kindPing    = '2'
	kindPong    = '3'
	kindMessage = '4'
	kindUpgrade = '5'
	kindNoop    = '6'

	// kindBinary marks a binary message in a polling body, where it is base64.
	kindBinary = 'b'
)

// separator stands between the packets of a polling body.
const separator = 0x1e

// packet is one packet of the protocol. A message's data is the message.
type packet struct {
	kind   byte
	binary bool // only a message's
	data   []byte
}

// packetError is what is wrong with a packet of the client. It does not repeat
// the data, which may be a secret.
type packetError string

func (e packetError) Error() string { return "the client sent " + string(e) }

const (
	errEmpty      = packetError("a packet without a kind")
	errKind       = packetError("a packet of an unknown kind")
	errUTF8       = packetError("a text packet that is not UTF-8")
	errBase64     = packetError("a binary packet that is not base64")
	errUnexpected = packetError("a packet that was not its to send")
)

// parseText reads a packet as it is in a text frame.
func parseText(b []byte) (packet, error) {
	switch {
	case len(b) == 0:
		return packet{}, errEmpty
	case b[0] < kindOpen || b[0] > kindNoop:
		return packet{}, errKind
	case !utf8.Valid(b[1:]):
		return packet{}, errUTF8
	}
	return packet{kind: b[0], data: b[1:]}, nil
}

// parseRecord reads a packet as it is in a polling body.
func parseRecord(b []byte) (packet, error) {
	if len(b) == 0 || b[0] != kindBinary {
		return parseText(b)
	}
	data, err := base64.StdEncoding.AppendDecode(nil, b[1:])
	if err != nil {
		return packet{}, errBase64
	}
	return packet{kind: kindMessage, binary: true, data: data}, nil
}

// parsePayload reads a polling body packet by packet, so that a body of many
// small ones does not take many times its size. It ends after the first error.
func parsePayload(body []byte) iter.Seq2[packet, error] {
	return func(yield func(packet, error) bool) {
		for more := true; more; {
			var record []byte
			record, body, more = bytes.Cut(body, []byte{separator})
			p, err := parseRecord(record)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// recordLen is how long the packet is in a polling body.
func (p packet) recordLen() int {
	if p.binary {
		return 1 + base64.StdEncoding.EncodedLen(len(p.data))
	}
	return 1 + len(p.data)
}

// payloadLen is how long a polling body of these packets is.
func payloadLen(packets []packet) int {
	n := max(0, len(packets)-1)
	for _, p := range packets {
		n += p.recordLen()
	}
	return n
}

// writePayload writes a polling body. It makes no copy of the whole.
func writePayload(w io.Writer, packets []packet) error {
	head := []byte{separator, 0}
	for i, p := range packets {
		head[1] = p.kind
		if p.binary {
			head[1] = kindBinary
		}
		skip := 0
		if i == 0 {
			skip = 1 // nothing is before the first
		}
		if _, err := w.Write(head[skip:]); err != nil {
			return err
		}
		if err := p.writeData(w); err != nil {
			return err
		}
	}
	return nil
}

func (p packet) writeData(w io.Writer) error {
	if !p.binary {
		_, err := w.Write(p.data)
		return err
	}
	enc := base64.NewEncoder(base64.StdEncoding, w)
	if _, err := enc.Write(p.data); err != nil {
		return err
	}
	return enc.Close()
}
