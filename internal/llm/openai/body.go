package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

// body is the JSON of a request while it is written. A history is sent again
// with each request, so it is written in one pass and into one piece of memory,
// without a second form of it in between.
type body []byte

// newBody makes room for a request, of which some was written before.
func newBody(req llm.Request, tools, messages []byte, count int) body {
	const around = 128 // the names and braces of a message or a tool
	n := 2*around + len(req.System) + len(tools) + len(messages)
	for _, m := range req.Messages[count:] {
		n += around + len(m.Text) + len(m.Raw)
		for _, c := range m.Calls {
			n += around + len(c.Args)
		}
		for _, u := range m.Images {
			n += around + len(u)
		}
	}
	if tools == nil {
		for _, t := range req.Tools {
			n += around + len(t.Description) + len(t.Schema)
		}
	}
	return make(body, 0, n+n/8) // the rest is for what must be escaped
}

// raw writes JSON as it is.
func (b *body) raw(s string) { *b = append(*b, s...) }

// item begins the next thing in a list, or in an object, with JSON as it is.
func (b *body) item(s string) {
	if last := (*b)[len(*b)-1]; last != '[' && last != '{' {
		*b = append(*b, ',')
	}
	*b = append(*b, s...)
}

// quote writes a string. The only error is a byte that is not UTF-8, in whose
// place there is now a mark.
func (b *body) quote(s string) { *b, _ = jsontext.AppendQuote(*b, s) }

// key writes the name of a field, whose value follows.
func (b *body) key(name string) {
	b.item("")
	b.quote(name)
	b.raw(":")
}

// field writes a field with a string in it.
func (b *body) field(name, value string) {
	b.key(name)
	b.quote(value)
}

// fieldIf writes a field that is left out when it is empty.
func (b *body) fieldIf(name, value string) {
	if value != "" {
		b.field(name, value)
	}
}

// number writes a field with a number in it.
func (b *body) number(name string, value int64) {
	b.key(name)
	*b = strconv.AppendInt(*b, value, 10)
}

// value writes a field whose value is JSON already.
func (b *body) value(name string, v []byte) {
	b.key(name)
	*b = append(*b, v...)
}

// arguments writes the arguments of a call: JSON inside of a string.
func (b *body) arguments(args json.RawMessage) {
	b.key("arguments")
	*b, _ = jsontext.AppendQuote(*b, sent(args))
}

// sent makes arguments what every server accepts, which is an object.
func sent(args json.RawMessage) json.RawMessage {
	switch {
	case isObject(args):
		return args
	case len(args) == 0:
		return json.RawMessage("{}")
	case !json.Valid(args):
		args, _ = json.Marshal(string(args))
	}
	return json.RawMessage(`{"not_a_json_object":` + string(args) + `}`)
}

func isObject(b []byte) bool {
	v := jsontext.Value(b)
	return v.Kind() == '{' && v.IsValid(lax)
}

// written caches the encoded schemas of tools: all requests send the same few.
var written = schemas{sent: map[string][]byte{}}

// schemas remembers parameters by content.
type schemas struct {
	mu   sync.RWMutex
	sent map[string][]byte
	size int // bytes of both sides
}

// maxSchemas bounds the memory: users bring tools of their own. What is full
// begins anew.
const maxSchemas = 4 << 20

// parameters returns a schema as it is sent. It must not be changed.
func (s *schemas) parameters(schema json.RawMessage) []byte {
	s.mu.RLock()
	out, ok := s.sent[string(schema)]
	s.mu.RUnlock()
	if ok {
		return out
	}
	out = parameters(schema)
	size := len(schema) + len(out)
	if size > maxSchemas/8 {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.sent[string(schema)]; ok { // another request was faster
		return out
	}
	if s.size+size > maxSchemas {
		clear(s.sent)
		s.size = 0
	}
	s.sent[string(schema)] = out
	s.size += size
	return out
}

// parameters is a tool's schema. Providers want an object even for a tool
// without parameters.
func parameters(schema json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(schema, &m) != nil || m == nil {
		m = map[string]json.RawMessage{}
	}
	for name, usual := range map[string]string{"type": `"object"`, "properties": "{}"} {
		if v := m[name]; v == nil || bytes.Equal(v, []byte("null")) {
			m[name] = json.RawMessage(usual)
		}
	}
	out, _ := json.Marshal(m) // what was read can be written
	return out
}
