// Package wire reads and writes the packets of the Socket.IO protocol, revision
// 5: a line of text with the packet's kind, namespace, number and content, and
// after it as many binary messages as the line announces.
package wire

import (
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// Type is the kind of a packet. On the wire an event or an acknowledgement with
// attachments has a number of its own; here it is the same kind.
type Type byte

// The kinds of packets, as they are numbered on the wire.
const (
	Connect Type = iota
	Disconnect
	Event
	Ack
	ConnectError
	binaryEvent
	binaryAck
)

// Main is the namespace that is meant when a packet names none.
const Main = "/"

// Packet is one packet, whole.
type Packet struct {
	Type      Type
	Namespace string // begins with a slash
	// ID pairs an event with its acknowledgement. It means nothing without HasID.
	ID          uint64
	HasID       bool
	Name        string            // of an event
	Args        []json.RawMessage // of an event or an acknowledgement
	Data        json.RawMessage   // what a Connect or a ConnectError says; nil if nothing
	Attachments [][]byte          // of an event or an acknowledgement
}

// Size is how much memory the content of the packet needs, about.
func (p *Packet) Size() int {
	size := len(p.Name) + len(p.Data)
	for _, a := range p.Args {
		size += len(a)
	}
	for _, a := range p.Attachments {
		size += len(a)
	}
	return size
}

// Text is the packet's line. The attachments travel after it, as they are.
func (p *Packet) Text() []byte {
	b := make([]byte, 0, p.Size()+len(p.Namespace)+32)
	switch {
	case len(p.Attachments) > 0 && p.Type == Event:
		b = append(b, '0'+byte(binaryEvent))
	case len(p.Attachments) > 0:
		b = append(b, '0'+byte(binaryAck))
	default:
		b = append(b, '0'+byte(p.Type))
	}
	if n := len(p.Attachments); n > 0 {
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, '-')
	}
	if p.Namespace != Main {
		b = append(b, p.Namespace...)
		b = append(b, ',')
	}
	if p.HasID {
		b = strconv.AppendUint(b, p.ID, 10)
	}
	if p.Type != Event && p.Type != Ack {
		return append(b, p.Data...)
	}
	b = append(b, '[')
	if p.Type == Event {
		b = appendString(b, p.Name)
	}
	for i, a := range p.Args {
		if i > 0 || p.Type == Event {
			b = append(b, ',')
		}
		b = append(b, a...)
	}
	return append(b, ']')
}

// appendString writes a JSON string.
func appendString(b []byte, s string) []byte {
	text, _ := json.Marshal(s) // a string cannot fail
	return append(b, text...)
}

// Values turns Go values into what travels in Args and Attachments. A
// json.RawMessage is written as it is, a []byte becomes an attachment, and
// anything else is what encoding/json makes of it.
func Values(values []any) (args []json.RawMessage, attachments [][]byte, err error) {
	args = make([]json.RawMessage, 0, len(values))
	for _, v := range values {
		switch v := v.(type) {
		case json.RawMessage:
			if v == nil {
				v = json.RawMessage("null") // as encoding/json has it
			}
			// It was not written here, and a client that cannot read it would go.
			if !json.Valid(v) || !utf8.Valid(v) {
				return nil, nil, errors.New("a raw argument is not JSON")
			}
			args = append(args, v)
		case []byte:
			args = append(args, placeholder(len(attachments)))
			attachments = append(attachments, v)
		default:
			text, err := json.Marshal(v)
			if err != nil {
				return nil, nil, err
			}
			args = append(args, text)
		}
	}
	return args, attachments, nil
}

// placeholder stands in the text where attachment n belongs.
func placeholder(n int) json.RawMessage {
	b := strconv.AppendInt([]byte(`{"_placeholder":true,"num":`), int64(n), 10)
	return append(b, '}')
}

// Placeholder reads a placeholder: the number of the attachment that belongs
// where arg stands.
func Placeholder(arg json.RawMessage) (n int, ok bool) {
	var p struct {
		Is  bool `json:"_placeholder"`
		Num *int `json:"num"`
	}
	if json.Unmarshal(arg, &p) != nil || !p.Is || p.Num == nil || *p.Num < 0 {
		return 0, false
	}
	return *p.Num, true
}
