package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"deckhand/internal/jsonbound"
)

// Bounds of what is read. Those that depend on the server are in Limits.
const (
	maxValues    = 50_000    // in the JSON of one packet
	maxDepth     = 128       // of arrays and objects in each other
	maxArgs      = 256       // of one event
	maxNamespace = 256       // bytes of its name
	maxID        = 1<<53 - 1 // JavaScript counts no further
)

// reserved are the names that a client's own library uses for what happens to
// the connection. No packet may pretend to be one of them.
var reserved = []string{"connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"}

// Reserved reports a name that no event may have.
func Reserved(name string) bool { return slices.Contains(reserved, name) }

// Limits bound what one packet may make the reader hold.
type Limits struct {
	Attachments int   // of one packet
	Bytes       int64 // of all its attachments together
}

// Reader puts packets together from the messages of one connection.
type Reader struct {
	limits  Limits
	partial *Packet // waits for attachments
	missing int
	bytes   int64
}

// NewReader makes a reader for a new connection.
func NewReader(l Limits) *Reader { return &Reader{limits: l} }

// Add takes the next message. The packet is nil until it is complete. After an error the reader
// cannot be used: the start of the next packet is unknown. The packet keeps parts of a binary
// message, and nothing of a text.
func (r *Reader) Add(data []byte, binary bool) (*Packet, error) {
	switch {
	case binary && r.partial == nil:
		return nil, errors.New("an attachment of no packet")
	case binary:
		return r.attach(data)
	case r.partial != nil:
		return nil, errors.New("a packet amid the attachments of another")
	}
	p, n, err := decode(data, r.limits.Attachments)
	if err != nil {
		return nil, err
	}
	if n > 0 {
		r.partial, r.missing, r.bytes = p, n, 0
		return nil, nil
	}
	return p, nil
}

// attach adds an attachment to the packet that waits for it.
func (r *Reader) attach(data []byte) (*Packet, error) {
	if r.bytes += int64(len(data)); r.bytes > r.limits.Bytes {
		return nil, errors.New("attachments that are too large")
	}
	p := r.partial
	p.Attachments = append(p.Attachments, data)
	if r.missing--; r.missing > 0 {
		return nil, nil
	}
	r.partial = nil
	return p, nil
}

// decode reads a packet's line, and how many attachments follow it.
func decode(text []byte, maxAttachments int) (p *Packet, attachments int, err error) {
	if len(text) == 0 {
		return nil, 0, errors.New("an empty packet")
	}
	if !utf8.Valid(text) {
		return nil, 0, errors.New("a packet that is not UTF-8")
	}
	p = &Packet{Type: Type(text[0] - '0'), Namespace: Main}
	rest := text[1:]
	switch p.Type {
	case Connect, Disconnect, Event, Ack, ConnectError:
	case binaryEvent, binaryAck:
		p.Type -= binaryEvent - Event
		n, after, ok := number(rest)
		if !ok || len(after) == 0 || after[0] != '-' {
			return nil, 0, errors.New("a packet that does not say how many attachments it has")
		}
		if n > uint64(maxAttachments) {
			return nil, 0, fmt.Errorf("a packet with more than %d attachments", maxAttachments)
		}
		attachments, rest = int(n), after[1:]
	default:
		return nil, 0, errors.New("a packet of unknown type")
	}
	if rest, err = p.readNamespace(rest); err != nil {
		return nil, 0, err
	}
	if len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' {
		if p.ID, rest, p.HasID = number(rest); !p.HasID {
			return nil, 0, errors.New("a packet whose id is too large")
		}
	}
	if err := p.readContent(rest); err != nil {
		return nil, 0, err
	}
	return p, attachments, nil
}

// readNamespace takes the namespace from the text, if it names one. What follows
// a question mark in it is an older protocol's and means nothing now.
func (p *Packet) readNamespace(text []byte) (rest []byte, err error) {
	if len(text) == 0 || text[0] != '/' {
		return text, nil
	}
	name, rest, _ := bytes.Cut(text, []byte{','})
	name, _, _ = bytes.Cut(name, []byte{'?'})
	// The name is sent back. A control character in it could end a message early.
	if len(name) > maxNamespace || bytes.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("invalid namespace")
	}
	p.Namespace = string(name)
	return rest, nil
}

// number reads decimal digits.
func number(text []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		if n = n*10 + uint64(text[i]-'0'); n > maxID {
			return 0, nil, false
		}
	}
	return n, text[i:], i > 0
}

// readContent reads the JSON that ends a packet, and checks that it suits the
// packet's kind.
func (p *Packet) readContent(text []byte) error {
	if err := bounded(text); err != nil {
		return err
	}
	switch p.Type {
	case Disconnect:
		if len(text) > 0 {
			return errors.New("a disconnect with content")
		}
		return nil
	case Connect, ConnectError:
		if len(text) == 0 {
			return nil
		}
		if text[0] != '{' || !json.Valid(text) {
			return errors.New("a packet whose content is not an object")
		}
		p.Data = bytes.Clone(text)
		return nil
	}
	if len(text) == 0 || text[0] != '[' {
		return errors.New("a packet whose content is not a list")
	}
	if p.Type == Ack && !p.HasID {
		return errors.New("an acknowledgement of nothing")
	}
	if err := json.Unmarshal(text, &p.Args); err != nil {
		return errors.New("a packet that is not JSON")
	}
	if p.Type == Ack {
		return nil
	}
	if len(p.Args) == 0 || p.Args[0][0] != '"' || json.Unmarshal(p.Args[0], &p.Name) != nil {
		return errors.New("an event without a name")
	}
	if Reserved(p.Name) {
		return errors.New("an event with a reserved name")
	}
	p.Args = p.Args[1:]
	return nil
}

// bounded looks at JSON before anything is made of it. Whether it is JSON at all is
// found out later.
func bounded(text []byte) error {
	_, err := jsonbound.Check(text, jsonbound.Limits{Values: maxValues, Depth: maxDepth, Elements: maxArgs + 1}) // and its name
	switch {
	case errors.Is(err, jsonbound.ErrValues):
		return errors.New("a packet with too many values")
	case errors.Is(err, jsonbound.ErrDepth):
		return errors.New("a packet that is nested too deeply")
	case errors.Is(err, jsonbound.ErrElements):
		return errors.New("a packet with too many arguments")
	}
	return nil
}
