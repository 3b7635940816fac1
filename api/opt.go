package api

import (
	"bytes"
	"encoding/json"
)

// Opt is a JSON field with three states: omitted (the zero Opt), null, and a value. A
// pointer cannot distinguish the first two, but a settings update must.
//
// Tag such fields `json:"name,omitzero"`, so that an omitted field stays omitted when it
// is encoded.
type Opt[T any] struct {
	// Set is true when the field was present, as null or as a value.
	Set bool
	// Null is true when the field was present and null.
	Null bool
	// Value is meaningful only when Set is true and Null is false.
	Value T
}

// Some returns a field with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{Set: true, Value: v} }

// Null returns a field that is present and null.
func Null[T any]() Opt[T] { return Opt[T]{Set: true, Null: true} }

// IsZero reports whether the field is omitted; encoders use it for omitzero.
func (o Opt[T]) IsZero() bool { return !o.Set }

// Get returns the value and whether there is one (neither omitted nor null).
func (o Opt[T]) Get() (T, bool) { return o.Value, o.Set && !o.Null }

// MarshalJSON writes null for a null or omitted field; omitzero drops the latter.
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

// plainString reports whether a JSON string contains no escapes.
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
