package native

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/tool"
)

// Version is that of the format. Kinds and fields are only added, which is no new version.
const Version = 1

// VersionHeader says in an answer which version of the format its events have.
const VersionHeader = "Deckhand-Event-Version"

// The names of the formats that a request may ask for.
const (
	Format = "deckhand"
	Legacy = "legacy"
)

// stamp is RFC 3339 in UTC with microseconds, like the times of the log.
const stamp = "2006-01-02T15:04:05.000000Z"

// envelope is an event on the wire.
type envelope struct {
	ID      int64           `json:"id"`
	Kind    session.Kind    `json:"kind"`
	Time    string          `json:"time"`
	Payload json.RawMessage `json:"payload"`
}

// imported is the payload of session.Imported on the wire.
type imported struct {
	Event json.RawMessage `json:"event,omitempty"`
	Cause int64           `json:"cause,omitempty"`
	// As are the events that say the same as Event in this format.
	As []json.RawMessage `json:"as"`
}

// IsContent reports whether calls can have this content in their display.
func IsContent(content string) bool {
	return content == string(tool.Plain) || slices.ContainsFunc(tool.All(), func(d tool.Descriptor) bool { return string(d.Display.Content) == content })
}

// Shown reports whether events of the kind leave the server in this format.
func Shown(k session.Kind) bool {
	known, is := kinds[k]
	return is && !known.internal
}

// toolCalled is the payload of session.ToolCalled on the wire.
type toolCalled struct {
	session.ToolCalled
	Display api.Display `json:"display"`
}

// toolReturned is the payload of session.ToolReturned on the wire. It has the display too,
// for clients that read results without their calls.
type toolReturned struct {
	session.ToolReturned
	Display api.Display `json:"display"`
}

// Display is how people see a call, as the tool declares it. Nothing in it is cut, so that
// a secret in it is masked as it is in the arguments.
func Display(name string, args json.RawMessage) api.Display {
	d, v := tool.Show(name, args)
	out := api.Display{Content: string(cmp.Or(d.Content, tool.Plain)), Title: v.Title, Main: d.Main, ReadOnly: d.ReadOnly || v.ReadOnly, Input: v.Input}
	if f := cmp.Or(v.File, d.File); f != nil {
		out.File = new(api.FileDisplay(*f))
	}
	return out
}

// Encode returns the event as one line of JSON. False means that the kind never leaves
// the server. Secrets are not masked.
func Encode(e session.Event) (line []byte, shown bool, err error) {
	k, known := kinds[e.Payload.Kind()]
	if !known {
		return nil, false, fmt.Errorf("event %d: the native format does not know the kind %q", e.Number, e.Payload.Kind())
	}
	if k.internal {
		return nil, false, nil
	}
	var wire any = k.public(e.Payload)
	if p, ok := wire.(session.Imported); ok {
		out := imported{Event: p.Event, Cause: p.Cause, As: []json.RawMessage{}}
		for _, means := range readImported(p) {
			one, _, err := Encode(session.Event{Number: e.Number, At: e.At, Payload: means})
			if err != nil {
				return nil, false, err
			}
			out.As = append(out.As, one)
		}
		wire = out
	}
	switch p := wire.(type) {
	case session.ToolCalled:
		wire = toolCalled{p, Display(p.Name, p.Args)}
	case session.ToolReturned:
		wire = toolReturned{p, Display(p.Name, p.Args)}
	}
	payload, err := compact(wire)
	if err != nil {
		return nil, false, fmt.Errorf("event %d: encode %s: %w", e.Number, e.Payload.Kind(), err)
	}
	line, err = compact(envelope{ID: e.Number, Kind: e.Payload.Kind(), Time: e.At.UTC().Format(stamp), Payload: payload})
	return line, err == nil, err
}

// compact writes JSON on one line. Letters that only HTML cares about stay as they are.
func compact(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Read returns the events of the log that an event on the wire stands for: itself, or those
// that say the same as one that was taken over. A kind of a newer server is none.
func Read(e api.Event) ([]session.Event, error) {
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	if err != nil {
		return nil, fmt.Errorf("event %d has the time %q, which is not RFC 3339", e.ID, e.Time)
	}
	k, known := kinds[session.Kind(e.Kind)]
	if !known || k.internal {
		return nil, nil
	}
	if session.Kind(e.Kind) != session.KindImported {
		p, err := session.Decode(session.Kind(e.Kind), e.Payload)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.ID, err)
		}
		return []session.Event{{Number: e.ID, At: at, Payload: p}}, nil
	}
	var p struct {
		As []api.Event `json:"as"`
	}
	if err := json.Unmarshal(e.Payload, &p); err != nil {
		return nil, fmt.Errorf("event %d does not decode: %w", e.ID, err)
	}
	var out []session.Event
	for _, inner := range p.As {
		if session.Kind(inner.Kind) == session.KindImported {
			continue // none stands for another
		}
		means, err := Read(inner)
		if err != nil {
			return nil, err
		}
		out = append(out, means...)
	}
	return out, nil
}

// public returns the payload without its private fields. The payload itself may be shared
// with other readers and stays as it is.
func (k kind) public(p session.Payload) session.Payload {
	if len(k.private) == 0 {
		return p
	}
	v := reflect.ValueOf(p)
	for _, path := range k.private {
		v = without(v, strings.Split(path, "."))
	}
	return v.Interface().(session.Payload)
}

// without copies a struct, or a pointer to one, and clears the field at the path.
func without(v reflect.Value, path []string) reflect.Value {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(without(v.Elem(), path))
		return out
	}
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for _, f := range fields(v.Type()) {
		if f.name != path[0] {
			continue
		}
		at := out.FieldByIndex(f.index)
		if len(path) > 1 {
			at.Set(without(at, path[1:]))
		} else {
			at.SetZero()
		}
	}
	return out
}

// field is a field of a struct as JSON knows it.
type field struct {
	name     string
	index    []int
	typ      reflect.Type
	optional bool
	tag      reflect.StructTag
}

// fields lists those of a struct; those of an embedded one are its own.
func fields(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		out = append(out, field{name: name, index: f.Index, typ: f.Type, optional: strings.Contains(options, "omit"), tag: f.Tag})
	}
	return out
}
