package api

import (
	"bytes"
	"encoding/json"
)

// Opt is a JSON field with three states that mean three different things:
// omitted (the zero Opt), null, and a value. Plain pointers cannot tell the
// first two apart, and a settings update must.
//
// Tag such fields `json:"name,omitzero"` so that an omitted one stays omitted
// when it is sent on.
type Opt[T any] struct {
	// Set is true when the field was present, as null or as a value.
	Set bool
	// Null is true when the field was present and null.
	Null bool
	// Value is meaningful only when Set is true and Null is false.
	Value T
}

// Some is a field with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{Set: true, Value: v} }

// Null is a field that is present and null.
func Null[T any]() Opt[T] { return Opt[T]{Set: true, Null: true} }

// IsZero reports an omitted field; encoders consult it for omitzero.
func (o Opt[T]) IsZero() bool { return !o.Set }

// Get returns the value and whether there is one (neither omitted nor null).
func (o Opt[T]) Get() (T, bool) { return o.Value, o.Set && !o.Null }

// MarshalJSON writes null for both null and omitted; omitzero keeps the latter out.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.Set || o.Null {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON is called only for a field that is present.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{Set: true}
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		o.Null = true
		return nil
	}
	if s, ok := any(&o.Value).(*string); ok && plainString(b) { // by far the most frequent case
		*s = string(b[1 : len(b)-1])
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// plainString reports a JSON string that stands for exactly its bytes.
func plainString(b []byte) bool {
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return false
	}
	for _, c := range b[1 : len(b)-1] {
		if c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			return false
		}
	}
	return true
}
