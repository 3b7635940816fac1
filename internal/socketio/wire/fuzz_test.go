package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzReader feeds a reader a line and attachments. What it takes must come out
// of it again when it is written and read once more.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`0`, `0/a,{"t":1}`, `1/a`, `2["x",1,[2,{"a":null}]]`, `2/a,12["x"]`, `32[]`, `4{"message":"m"}`,
		`52-/a,3["x",{"_placeholder":true,"num":0}]`, `61-1[{"_placeholder":true,"num":0}]`, `50-["x"]`,
		`2["🚢","\ud83d\udea2","\ud800"]`, `2["\\\"[",{"]":"}"}]`, `0/a?b,`, `5`, `51`, `2[[[[[`,
	} {
		f.Add([]byte(seed), []byte("attachment"))
	}
	f.Fuzz(func(t *testing.T, text, attachment []byte) {
		p := feed(t, text, attachment)
		if p == nil {
			return
		}
		if len(p.Attachments) > limits.Attachments || len(p.Args) > maxArgs || len(p.Namespace) > maxNamespace || p.Namespace[0] != '/' {
			t.Fatalf("beyond the bounds: %+v", p)
		}
		if Reserved(p.Name) {
			t.Fatalf("a reserved name: %q", p.Name)
		}
		line := p.Text()
		if bytes.IndexByte(line, 0x1e) >= 0 {
			t.Fatalf("the line %q would not arrive", line)
		}
		if again := feed(t, line, attachment); !reflect.DeepEqual(p, again) {
			t.Fatalf("%+v became %+v by %q", p, again, line)
		}
	})
}

// feed reads a packet with as many attachments as it wants.
func feed(t *testing.T, text, attachment []byte) *Packet {
	t.Helper()
	r := NewReader(limits)
	p, err := r.Add(text, false)
	for n := 0; p == nil && err == nil; n++ {
		if n > limits.Attachments {
			t.Fatal("it never has enough")
		}
		p, err = r.Add(attachment, true)
	}
	if err != nil {
		return nil
	}
	return p
}

// FuzzText writes packets that a handler could make and reads them.
func FuzzText(f *testing.F) {
	f.Add(uint64(0), "x", "text", []byte("raw"), []byte(`{"a":[1]}`))
	f.Add(uint64(7), "日本", "\x00\x1e\"\\<>&\u2028", []byte{}, []byte(`null`))
	f.Fuzz(func(t *testing.T, id uint64, name, text string, attachment, value []byte) {
		args, attachments, err := Values([]any{text, attachment, json.RawMessage(value)})
		if err != nil {
			return
		}
		line := (&Packet{Type: Event, Namespace: "/a", ID: id, HasID: true, Name: name, Args: args, Attachments: attachments}).Text()
		if bytes.IndexByte(line, 0x1e) >= 0 {
			t.Fatalf("%q would be cut on its way", line)
		}
		p := feed(t, line, attachment)
		if p == nil {
			if id <= maxID && !Reserved(name) && len(value) < maxDepth && len(attachment) < 1<<20 {
				t.Fatalf("%q is not read", line)
			}
			return
		}
		var said string
		if err := json.Unmarshal(p.Args[0], &said); err != nil || utf8.ValidString(text) && said != text {
			t.Fatalf("%q became %q, %v", text, said, err)
		}
		if p.ID != id || len(p.Args) != 3 || !bytes.Equal(p.Args[2], bytes.TrimSpace(value)) || !bytes.Equal(p.Attachments[0], attachment) {
			t.Fatalf("%q became %+v", line, p)
		}
	})
}
