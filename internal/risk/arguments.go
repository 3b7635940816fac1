package risk

import (
	"encoding/json"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// arguments are a call's as the model wrote them.
type arguments map[string]jsontext.Value

// parse refuses what two readers could understand in two ways: a name that comes
// twice, and one that is another's but for the size of its letters.
func parse(raw json.RawMessage) (arguments, bool) {
	var a arguments
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

// text is a string argument; ok is false when it is missing or something else.
func (a arguments) text(name string) (s string, ok bool) {
	v, there := a[name]
	if !there || v.Kind() != '"' || jsonv2.Unmarshal(v, &s) != nil {
		return "", false
	}
	return s, true
}

// yes is a flag, which the tools take as a boolean or as its name.
func (a arguments) yes(name string) bool {
	v := a[name]
	if len(v) == 0 {
		return false
	}
	s, _ := a.text(name)
	return v.Kind() == 't' || s == "true"
}
