package openai

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/llm"
)

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

var schemas = llm.NewSchemas(parameters)

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
