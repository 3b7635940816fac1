package jsonbound

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		text   string
		most   Limits
		values int
		err    error
	}{
		{"", Limits{Values: 1, Depth: 1, Elements: 1}, 0, nil},
		{" \t\r\n", Limits{Values: 1}, 0, nil},
		{`{"a":1,"b":[true,null,-1.5e+3],"c":{}}`, Limits{Values: 10, Depth: 2, Elements: 3}, 10, nil},
		{`{"a":1,"b":[true,null,-1.5e+3],"c":{}}`, Limits{Values: 9}, 10, ErrValues},
		{`{"a":1,"b":[1,2,3,4]}`, Limits{Elements: 1}, 3, ErrElements},
		{`[[[]]]`, Limits{Depth: 3}, 3, nil},
		{`[[[]]]`, Limits{Depth: 2}, 2, ErrDepth},
		{`[{"a":"[[[[,,,,\"]"},"\\","\\\"",""]`, Limits{Depth: 2, Elements: 4}, 7, nil},
		{`["` + long + `","data:image/png;base64,` + long + `"]`, Limits{Values: 3}, 3, nil},
		{`["` + strings.Repeat(`\"`, 1<<20) + `"]`, Limits{Values: 2}, 2, nil},
		{`["never ends`, Limits{Values: 2}, 2, nil},
		{`1 2 3`, Limits{Values: 2}, 3, ErrValues},
	} {
		if values, err := Check([]byte(c.text), c.most); values != c.values || !errors.Is(err, c.err) {
			t.Errorf("%.60s: %d values, %v", c.text, values, err)
		}
	}
	many := []byte("[" + strings.Repeat("{},", 1000) + "{}]")
	if n := testing.AllocsPerRun(10, func() { _, _ = Check(many, Limits{Values: 5000}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzCheck compares the count with that of a decoder, which has read at most as many values before a mistake.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\"",{}],"b":null}`, `[`, `"\\`, `1 2`, `{"a" 1}`, `tru`, `[[],[[]]]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		counted, err := Check(text, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(text))
		read, depth := 0, 0
		for read == 0 || depth > 0 { // one value is decoded, whatever follows
			token, err := d.Token()
			if err != nil {
				break
			}
			switch token {
			case json.Delim('['), json.Delim('{'):
				depth++
				read++
			case json.Delim(']'), json.Delim('}'):
				depth--
			default:
				read++
			}
		}
		if read > counted || json.Valid(text) && read != counted {
			t.Errorf("%q: %d values were read, %d counted", text, read, counted)
		}
	})
}
