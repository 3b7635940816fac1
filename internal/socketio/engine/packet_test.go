package engine

import (
	"bytes"
	"errors"
	"testing"
)

func TestParsePayload(t *testing.T) {
	for body, want := range map[string]struct {
		packets []packet
		err     error
	}{
		"4hello":           {packets: []packet{{kind: '4', data: []byte("hello")}}},
		"4":                {packets: []packet{{kind: '4'}}},
		"2\x1e3\x1e6":      {packets: []packet{{kind: '2'}, {kind: '3'}, {kind: '6'}}},
		"4a\x1ebAQIDBA==":  {packets: []packet{{kind: '4', data: []byte("a")}, {kind: '4', binary: true, data: []byte{1, 2, 3, 4}}}},
		"4€":               {packets: []packet{{kind: '4', data: []byte("€")}}},
		"4b":               {packets: []packet{{kind: '4', data: []byte("b")}}},
		"":                 {err: errEmpty},
		"\x1e":             {err: errEmpty},
		"4a\x1e\x1e4b":     {packets: []packet{{kind: '4', data: []byte("a")}}, err: errEmpty},
		"abc":              {err: errKind},
		"7":                {err: errKind},
		"4a\x1e/\x1e4lost": {packets: []packet{{kind: '4', data: []byte("a")}}, err: errKind},
		"bAQID\x1eb%%":     {packets: []packet{{kind: '4', binary: true, data: []byte{1, 2, 3}}}, err: errBase64},
		"bAQ":              {err: errBase64},
		"4\xc3":            {err: errUTF8},
	} {
		var got []packet
		var end error
		for p, err := range parsePayload([]byte(body)) {
			if end = err; err == nil {
				got = append(got, p)
			}
		}
		if !errors.Is(end, want.err) || !samePackets(got, want.packets) {
			t.Errorf("%q: %v %v, wanted %v %v", body, got, end, want.packets, want.err)
		}
	}
}

func samePackets(a, b []packet) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].kind != b[i].kind || a[i].binary != b[i].binary || !bytes.Equal(a[i].data, b[i].data) {
			return false
		}
	}
	return true
}

// FuzzPayload takes polling bodies. What can be read can be written, has the
// length that was promised and is read as the same again.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{"4hello", "4a\x1ebAQIDBA==\x1e2", "", "\x1e", "b", "bAQ=\x1e4", "4\xff", "0{}\x1e1\x1e5"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var got []packet
		for p, err := range parsePayload(body) {
			if err != nil {
				return
			}
			got = append(got, p)
		}
		var b bytes.Buffer
		if err := writePayload(&b, got); err != nil {
			t.Fatal(err)
		}
		if b.Len() != payloadLen(got) {
			t.Errorf("%d bytes were written, %d promised", b.Len(), payloadLen(got))
		}
		var again []packet
		for p, err := range parsePayload(b.Bytes()) {
			if err != nil {
				t.Fatal(err)
			}
			again = append(again, p)
		}
		if !samePackets(got, again) {
			t.Errorf("%q became %q", body, b.Bytes())
		}
	})
}

// FuzzText takes text frames.
func FuzzText(f *testing.F) {
	for _, seed := range []string{"4hello", "", "2probe", "5", "b", "\xff", "4\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		p, err := parseText(frame)
		if err != nil {
			return
		}
		if p.binary || p.kind < kindOpen || p.kind > kindNoop || !bytes.Equal(append([]byte{p.kind}, p.data...), frame) {
			t.Errorf("%q became %+v", frame, p)
		}
	})
}
