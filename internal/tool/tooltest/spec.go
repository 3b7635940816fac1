package tooltest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"deckhand/internal/tool"
)

// Spec checks what a model is told of a tool: its schema takes these calls, and
// refuses the others.
func Spec(t *testing.T, s tool.Spec, good, bad []string) {
	t.Helper()
	if s.Name == "" || len(s.Description) < 40 || strings.TrimSpace(s.Description) != s.Description {
		t.Errorf("a model learns too little from %q: %q", s.Name, s.Description)
	}
	var schema jsonschema.Schema
	decode(t, s.Schema, &schema)
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range schema.Properties {
		if p.Description == "" {
			t.Errorf("%s: the argument %s is not explained", s.Name, name)
		}
	}
	for _, args := range good {
		if err := resolved.Validate(value(t, args)); err != nil {
			t.Errorf("%s refuses %s: %v", s.Name, args, err)
		}
	}
	for _, args := range append(bad, `[]`, `{"unheard_of":1}`) {
		if resolved.Validate(value(t, args)) == nil {
			t.Errorf("%s takes %s", s.Name, args)
		}
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	decode(t, []byte(text), &v)
	return v
}

func decode(t *testing.T, text []byte, v any) {
	t.Helper()
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}
