package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"deckhand/internal/clip"
	"deckhand/internal/tool"
)

// riskArgument is what the model rates its own calls with.
const riskArgument = "security_risk"

// schemas remembers schemas that were taken apart.
type schemas struct {
	mu    sync.Mutex
	known map[string]*jsonschema.Resolved
}

// maxSchemas bounds them: tool servers may change theirs all the time.
const maxSchemas = 1000

// check says what is wrong with the arguments of a call, in words for the model.
func (s *schemas) check(spec tool.Spec, args json.RawMessage) error {
	var v any
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return fmt.Errorf("the arguments are not valid JSON")
	}
	object, ok := v.(map[string]any)
	if !ok {
		if text, isText := v.(string); isText && !json.Valid([]byte(text)) {
			return fmt.Errorf("the arguments are not valid JSON: %s", clip.Bytes(text, 200))
		}
		return fmt.Errorf("the arguments must be a JSON object")
	}
	schema, err := s.resolve(spec.Schema)
	if err != nil || schema == nil {
		return nil // an unreadable schema forbids nothing
	}
	if err := schema.Validate(plainNumbers(object)); err != nil {
		return fmt.Errorf("the arguments do not fit its schema: %s", innermost(err))
	}
	return nil
}

func (s *schemas) resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.known[string(raw)]; ok {
		return r, nil
	}
	if s.known == nil || len(s.known) >= maxSchemas {
		s.known = map[string]*jsonschema.Resolved{}
	}
	var schema jsonschema.Schema
	var resolved *jsonschema.Resolved
	err := json.Unmarshal(raw, &schema)
	if err == nil {
		resolved, err = schema.Resolve(nil)
	}
	s.known[string(raw)] = resolved // also the nil of one that cannot be read
	return resolved, err
}

// innermost is the end of a chain of "validating …: validating …: what is wrong".
func innermost(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, rest, ok := strings.Cut(text, ": ")
		if !ok {
			break
		}
		text = rest
	}
	return clip.Bytes(text, 500)
}

// plainNumbers turns numbers into what the validator knows.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = plainNumbers(x)
		}
	case []any:
		for i, x := range v {
			v[i] = plainNumbers(x)
		}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64()
		return f
	}
	return v
}

// own are the arguments that are the tool's: without the rating that was asked
// for beside them.
func own(spec tool.Spec, args json.RawMessage) json.RawMessage {
	if !bytes.Contains(args, []byte(riskArgument)) {
		return args
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil {
		return args
	}
	if hasProperty(spec.Schema, riskArgument) {
		var rated string
		_ = json.Unmarshal(object[riskArgument], &rated) // what is no text is no rating
		if _, ok := ratings[rated]; ok || object[riskArgument] == nil {
			return args
		}
	}
	delete(object, riskArgument)
	rest, err := json.Marshal(object)
	if err != nil {
		return args
	}
	return rest
}

func hasProperty(schema json.RawMessage, name string) bool {
	if !bytes.Contains(schema, []byte(name)) {
		return false
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(schema, &s)
	_, ok := s.Properties[name]
	return ok
}

// rated is a schema that also asks for the rating.
func rated(schema json.RawMessage) json.RawMessage {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || s == nil {
		s = map[string]json.RawMessage{"type": json.RawMessage(`"object"`)}
	}
	properties := map[string]json.RawMessage{}
	_ = json.Unmarshal(s["properties"], &properties)
	if properties == nil {
		properties = map[string]json.RawMessage{}
	}
	var required []string
	_ = json.Unmarshal(s["required"], &required)
	properties[riskArgument] = json.RawMessage(`{"type":"string","enum":["LOW","MEDIUM","HIGH"],"description":"How dangerous this call is, as the instructions define it."}`)
	s["properties"], _ = json.Marshal(properties)
	s["required"], _ = json.Marshal(append(required, riskArgument))
	out, err := json.Marshal(s)
	if err != nil {
		return schema
	}
	return out
}
