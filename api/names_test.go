package api

import (
	"bytes"
	"testing"
	"unicode/utf8"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"":                  "",
		"a b\n\"'.txt":      "a b\n\"'.txt",
		"für/日本.txt":        "für/日本.txt",
		"100%.txt":          "100%.txt",
		"a%20b %2e%2E/%":    "a%20b %2e%2E/%",
		"caf\xe9.txt":       "caf%E9.txt",
		"caf%E9.txt":        "caf%25E9.txt",
		"caf%e9.txt":        "caf%25e9.txt",
		"%25":               "%2525",
		"%2525":             "%252525",
		"%\xe9":             "%%E9",
		"%2\x95":            "%2%95",
		"\xff\xfe":          "%FF%FE",
		"\xed\xa0\x80":      "%ED%A0%80",
		"\xf0\x9f":          "%F0%9F",
		"\ufffd":            "\ufffd",
		"\x80" + "tail/a":   "%80tail/a",
		"\xc3\xa9\xc3/\xa9": "é%C3/%A9",
	} {
		got := EncodeName([]byte(name))
		if got != want {
			t.Errorf("%q is written %q, want %q", name, got, want)
		}
		if back := DecodeName(got); string(back) != name {
			t.Errorf("%q comes back as %q", name, back)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add([]byte("caf\xe9 %25 %E9 %\xe9"))
	f.Fuzz(func(t *testing.T, name []byte) {
		text := EncodeName(name)
		if !utf8.ValidString(text) {
			t.Errorf("%q is written %q", name, text)
		}
		if back := DecodeName(text); !bytes.Equal(back, name) {
			t.Errorf("%q comes back as %q", name, back)
		}
	})
}
