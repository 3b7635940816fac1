package v0

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// bulky are the extras that a trajectory omits: browser state is large, and neither reading nor
// replaying needs it.
var bulky = map[string]bool{
	"dom_object": true, "axtree_object": true, "active_page_index": true, "last_browser_action": true, "last_browser_action_error": true,
	"focused_element_bid": true, "extra_element_properties": true, "screenshot": true, "set_of_marks": true,
}

// HiddenCall returns the number of the call whose hidden result the event is. Neither belongs in
// a trajectory. The result comes after its call, so an export reads the log twice.
func HiddenCall(e session.Event) (number int64, hidden bool) {
	if p, ok := e.Payload.(session.Imported); ok {
		return hiddenImport(e.Number, p)
	}
	r, ok := e.Payload.(session.ToolReturned)
	if !ok || !form.Details[form.RunDetails](r.Details).Hidden {
		return 0, false
	}
	return r.Cause, true
}

// Export translates one event for a trajectory; nil means that it has no place there.
func Export(id session.ID, e session.Event) ([]byte, error) {
	f, err := Encode(id, e)
	if err != nil || f.Kind != Event {
		return nil, err
	}
	// A quotation mark inside a text is escaped, so this finds the key and nothing else.
	if k := e.Payload.Kind(); k != session.KindToolReturned && k != session.KindImported || !bytes.Contains(f.JSON, []byte(`"dom_object":`)) {
		return f.JSON, nil
	}
	return withoutBulk(f.JSON)
}

// withoutBulk leaves out some extras, and keeps everything else in its order.
func withoutBulk(event []byte) ([]byte, error) {
	return rewrite(event, func(name string, value jsontext.Value) (jsontext.Value, error) {
		if name != "extras" {
			return value, nil
		}
		return rewrite(value, func(name string, value jsontext.Value) (jsontext.Value, error) {
			if bulky[name] {
				return nil, nil
			}
			return value, nil
		})
	})
}

// rewrite makes an object with other values for its members; nil leaves one out.
func rewrite(object []byte, change func(name string, value jsontext.Value) (jsontext.Value, error)) ([]byte, error) {
	in := jsontext.NewDecoder(bytes.NewReader(object))
	if _, err := in.ReadToken(); err != nil {
		return nil, err
	}
	w := newWriter(len(object))
	w.Open("", '{')
	for in.PeekKind() == '"' {
		var name string
		if err := json.UnmarshalDecode(in, &name); err != nil {
			return nil, err
		}
		value, err := in.ReadValue()
		if err != nil {
			return nil, err
		}
		if value, err = change(name, value); err != nil {
			return nil, err
		}
		if value != nil {
			w.name(name)
			w.B = append(w.B, value...)
		}
	}
	w.Shut('}')
	return w.B, nil
}
