package form

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Recorded is an action of a recording.
type Recorded struct {
	Args Arguments
	// Timeout stands beside the args; empty if there is none.
	Timeout jsontext.Value
}

// FieldError says which part of a recorded action cannot be understood. It quotes no value.
type FieldError struct{ Field, Message string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Message }

// LeftOut is why nothing is called for a recorded action, in a sentence for people.
type LeftOut string

func (e LeftOut) Error() string { return string(e) }

// Str is an argument that must be there and be a string.
func (a Recorded) Str(name string) (string, error) {
	if KindOf(a.Args[name]) != '"' {
		return "", &FieldError{"args." + name, "Must be a string."}
	}
	return Details[string](a.Args[name]), nil
}

// Copy writes an argument that must be a string, under the name that it has today.
func (a Recorded) Copy(w *Writer, from, to string) error {
	s, err := a.Str(from)
	w.Str(to, s)
	return err
}

// Limit writes the timeout, if there is one.
func (a Recorded) Limit(w *Writer) error {
	switch a.Timeout.Kind() {
	case 0, 'n':
		return nil
	case '0':
		var f float64
		if json.Unmarshal(a.Timeout, &f) == nil && f >= 0 {
			w.Float("timeout", f)
			return nil
		}
	}
	return &FieldError{"timeout", "A number of seconds is expected."}
}

// Copies is Action.Read for a call whose one argument is a string.
func Copies(from, to string) func(*Writer, Recorded) error {
	return func(w *Writer, a Recorded) error { return a.Copy(w, from, to) }
}
