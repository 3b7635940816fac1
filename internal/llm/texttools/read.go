package texttools

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"deckhand/internal/clip"
	"deckhand/internal/llm"
)

// read makes a call of its text. What cannot be read becomes a call whose
// arguments are a text that says why, for the model to do better.
func (f found) read(schemas map[string]schema) llm.Call {
	name, body := f.open()
	call := llm.Call{ID: "call_" + rand.Text(), Name: name}
	values, err := arguments(body, schemas[name])
	if err == nil {
		call.Args, err = json.Marshal(values)
	}
	if err != nil {
		call.Args, _ = json.Marshal(fmt.Sprintf("the call could not be read: %v. It was:\n%s", err, strings.ToValidUTF8(f.text, "\uFFFD")))
	}
	return call
}

// open splits a call into the tool's name and what stands between the tags. The
// closing tag may be missing: the model may have stopped too early.
func (f found) open() (name, body string) {
	tag, body, _ := strings.Cut(strings.TrimPrefix(f.text, openCall), ">")
	return cmp.Or(unquote(tag), "unnamed"), strings.TrimSuffix(strings.TrimSpace(body), closeCall)
}

// unquote takes the quotes from the value of an attribute.
func unquote(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }

// arguments reads what stands inside of a call: arguments in tags, or all of
// them as one JSON object, which some models cannot be talked out of.
func arguments(body string, s schema) (map[string]any, error) {
	values := map[string]any{}
	rest := strings.TrimSpace(body)
	if strings.HasPrefix(rest, "{") {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(rest), &object); err != nil {
			return nil, fmt.Errorf("its arguments are not JSON: %w", err)
		}
		for name, v := range object {
			values[name] = v
		}
		return values, nil
	}
	for rest != "" {
		after, ok := strings.CutPrefix(rest, openArg)
		if !ok {
			return nil, fmt.Errorf("%q stands where an argument or the end was expected", clip.Bytes(rest, maxQuoted))
		}
		tag, after, ok := strings.Cut(after, ">")
		attr, quoted, named := strings.Cut(tag, "=")
		name := unquote(quoted)
		if !ok || !named || strings.TrimSpace(attr) != "name" || name == "" {
			return nil, errors.New("an argument has no name")
		}
		end := valueEnd(after)
		if end < 0 {
			return nil, fmt.Errorf("the argument %q is not closed with %s", clip.Bytes(name, maxQuoted), closeArg)
		}
		values[name] = s.value(name, unwrap(after[:end]))
		rest = strings.TrimSpace(after[end+len(closeArg):])
	}
	return values, nil
}

// valueEnd finds where a value ends: at a closing tag after which comes another
// argument or nothing. Any other one is a part of the value.
func valueEnd(s string) int {
	for from := 0; ; {
		i := strings.Index(s[from:], closeArg)
		if i < 0 {
			return -1
		}
		next := strings.TrimSpace(s[from+i+len(closeArg):])
		if next == "" || strings.HasPrefix(next, openArg) {
			return from + i
		}
		from += i + len(closeArg)
	}
}

// maxQuoted is how much of a wrong call an error repeats, in bytes.
const maxQuoted = 60

// unwrap takes off the line breaks that put a value on lines of its own.
func unwrap(s string) string {
	if s, ok := strings.CutPrefix(s, "\n"); ok {
		return strings.TrimSuffix(s, "\n")
	}
	return s
}

// schema is the part of a JSON schema that says how values are written.
type schema struct {
	Types       types             `json:"type"`
	Description string            `json:"description"`
	Enum        []any             `json:"enum"`
	AnyOf       []schema          `json:"anyOf"`
	OneOf       []schema          `json:"oneOf"`
	Required    []string          `json:"required"`
	Properties  map[string]schema `json:"properties"`

	raw json.RawMessage
}

// types are one type or several.
type types []string

func (t *types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = types{one}
		return nil
	}
	var all []string
	_ = json.Unmarshal(b, &all) // an unknown schema allows everything
	*t = all
	return nil
}

func (s *schema) UnmarshalJSON(b []byte) error {
	type plain schema
	var p plain
	_ = json.Unmarshal(b, &p) // true and false are schemas too
	*s = schema(p)
	s.raw = append(json.RawMessage(nil), b...)
	return nil
}

// schemas are those of the tools, by their names.
func schemas(tools []llm.Tool) map[string]schema {
	out := map[string]schema{}
	for _, t := range tools {
		var s schema
		_ = json.Unmarshal(t.Schema, &s)
		out[t.Name] = s
	}
	return out
}

// text reports whether a value may be a text.
func (s schema) text() bool {
	for _, t := range s.Types {
		if t == "string" {
			return true
		}
	}
	for _, e := range s.Enum {
		if _, ok := e.(string); ok {
			return true
		}
	}
	among := append(s.AnyOf[:len(s.AnyOf):len(s.AnyOf)], s.OneOf...)
	for _, a := range among {
		if a.text() {
			return true
		}
	}
	return len(s.Types)+len(s.Enum)+len(among) == 0
}

// value is a written value as the schema wants it: as it stands where a text is
// allowed, and JSON otherwise. What is no JSON stays a text, and the tool says
// what it thinks of it.
func (s schema) value(name, written string) any {
	if p, known := s.Properties[name]; !known || p.text() {
		return strings.ToValidUTF8(written, "\uFFFD")
	}
	for _, w := range []string{strings.TrimSpace(written), strings.ToLower(strings.TrimSpace(written))} { // True is meant too
		if json.Valid([]byte(w)) {
			return json.RawMessage(w)
		}
	}
	return strings.ToValidUTF8(written, "\uFFFD")
}
