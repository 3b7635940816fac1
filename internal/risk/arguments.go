package risk

import (
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Arguments are a call's as the model wrote them.
type Arguments map[string]jsontext.Value

// Parse refuses what two readers could understand in two ways: a name that comes
// twice, and one that is another's but for the size of its letters.
func Parse(raw json.RawMessage) (Arguments, bool) {
	var a Arguments
	if len(raw) > maxCommand*8 || jsonv2.Unmarshal(raw, &a) != nil || a == nil {
		return nil, false
	}
	for name := range a {
		if name != strings.ToLower(name) {
			if _, twice := a[strings.ToLower(name)]; twice {
				return nil, false
			}
		}
	}
	return a, true
}

// Text is a string argument; ok is false when it is missing or something else.
func (a Arguments) Text(name string) (s string, ok bool) {
	v, there := a[name]
	if !there || v.Kind() != '"' || jsonv2.Unmarshal(v, &s) != nil {
		return "", false
	}
	return s, true
}

// Yes is a flag, which the tools take as a boolean or as its name.
func (a Arguments) Yes(name string) bool {
	v := a[name]
	if len(v) == 0 {
		return false
	}
	s, _ := a.Text(name)
	return v.Kind() == 't' || s == "true"
}

// Fixed is the rating of a tool whose calls are all alike.
func Fixed(r Rating, reason string) func(json.RawMessage) (Rating, string) {
	return func(json.RawMessage) (Rating, string) { return r, reason }
}

// ByArguments is the rating of a tool whose arguments say how dangerous a call is.
func ByArguments(rate func(Arguments) (Rating, string)) func(json.RawMessage) (Rating, string) {
	return func(raw json.RawMessage) (Rating, string) {
		a, ok := Parse(raw)
		if !ok {
			return Unknown, "Its arguments cannot be read."
		}
		return rate(a)
	}
}
