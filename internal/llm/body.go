package llm

import (
	"encoding/json"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Body is the JSON of a request while an adapter writes it. A history is sent again with each
// request, so what Request.Written keeps of it is not written again, and not even copied.
type Body struct {
	// Note is what an adapter must know of the kept messages to write later ones: as it was set
	// for the request before, and "" at first.
	Note string

	req     *Request
	written *Written
	json    []byte
	// parts is what is sent before json[from:].
	parts [][]byte
	from  int
	// json[start:end] are the messages that are kept from now on, of which there are count with
	// those that were kept before.
	start, end, count int
}

// NewBody begins a request. wire names the adapter and everything but the request that decides
// how it writes tools and messages.
func NewBody(req *Request, wire string) *Body {
	b := &Body{req: req, written: req.Written}
	if b.written == nil {
		b.written = &Written{}
	}
	b.written.begin(wire+req.Fitted, req)
	b.Note, b.count = b.written.note, b.written.count
	const around = 128 // the names and braces of a message or a tool
	n := 2*around + len(req.System)
	for _, m := range req.Messages[b.count:] {
		n += around + len(m.Text) + len(m.Raw)
		for _, c := range m.Calls {
			n += around + len(c.Args)
		}
		for _, u := range m.Images {
			n += around + len(u)
		}
	}
	b.json = make([]byte, 0, n+n/8) // the rest is for what must be escaped
	return b
}

// Tools writes the tools as write does, which is not called if they were written lately.
func (b *Body) Tools(write func()) {
	w := b.written
	if len(b.req.Tools) == 0 {
		return
	}
	if w.offered == nil {
		start := len(b.json)
		w.offered = offer(w.wire, b.req.Tools, func() []byte {
			write()
			return b.json[start:]
		})
		b.json = b.json[:start]
	}
	b.insert(w.offered)
}

// Messages writes the messages that are kept and returns how many they are. The others follow as
// items of the same list.
func (b *Body) Messages() int {
	b.insert(b.written.messages)
	b.start, b.end = len(b.json), len(b.json)
	return b.count
}

// Keep says that the first count messages are written, and that later ones will not change how.
func (b *Body) Keep(count int) { b.end, b.count = len(b.json), count }

// Parts is what was written, to be sent one after the other. They must not be changed.
func (b *Body) Parts() [][]byte {
	if w := b.req.Written; w != nil {
		w.messages = append(w.messages, b.json[b.start:b.end]...)
		w.count, w.note = b.count, b.Note
	}
	return append(b.parts, b.json[b.from:])
}

// insert puts JSON that was written before at the end.
func (b *Body) insert(kept []byte) {
	if len(kept) > 0 {
		b.parts = append(b.parts, b.json[b.from:], kept)
		b.from = len(b.json)
	}
}

// Raw writes JSON as it is.
func (b *Body) Raw(s string) { b.json = append(b.json, s...) }

// Item begins the next thing in a list, or in an object, with JSON as it is.
func (b *Body) Item(s string) {
	before := b.json[b.from:]
	if len(before) == 0 {
		before = b.parts[len(b.parts)-1]
	}
	if last := before[len(before)-1]; last != '[' && last != '{' {
		b.Raw(",")
	}
	b.Raw(s)
}

// Encode writes a value as encoding/json does. It must be one that can be written.
func (b *Body) Encode(v any) {
	if json.NewEncoder((*encoded)(b)).Encode(v) == nil {
		b.json = b.json[:len(b.json)-1] // without the end of the line
	}
}

// encoded is what an encoder writes to.
type encoded Body

func (e *encoded) Write(p []byte) (int, error) {
	e.json = append(e.json, p...)
	return len(p), nil
}

// Quote writes a string. The only error is a byte that is not UTF-8, in whose
// place there is now a mark.
func (b *Body) Quote(s string) { b.json, _ = jsontext.AppendQuote(b.json, s) }

// Key writes the name of a field, whose value follows.
func (b *Body) Key(name string) {
	b.Item("")
	b.Quote(name)
	b.Raw(":")
}

// Field writes a field with a string in it.
func (b *Body) Field(name, value string) {
	b.Key(name)
	b.Quote(value)
}

// FieldIf writes a field that is left out when it is empty.
func (b *Body) FieldIf(name, value string) {
	if value != "" {
		b.Field(name, value)
	}
}

// Number writes a field with a number in it.
func (b *Body) Number(name string, value int64) {
	b.Key(name)
	b.json = strconv.AppendInt(b.json, value, 10)
}

// Value writes a field whose value is JSON already.
func (b *Body) Value(name string, v []byte) {
	b.Key(name)
	b.json = append(b.json, v...)
}

// Quoted writes a field with JSON inside of a string.
func (b *Body) Quoted(name string, v []byte) {
	b.Key(name)
	b.json, _ = jsontext.AppendQuote(b.json, v)
}
