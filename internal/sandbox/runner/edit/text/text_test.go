package text

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		bytes, text string
		encoding    Encoding
	}{
		{"", "", UTF8}, {"plain\r\n", "plain\r\n", UTF8}, {"gr\u00fc\u00df \U0001F600", "gr\u00fc\u00df \U0001F600", UTF8}, {"\x1b[0m", "\x1b[0m", UTF8},
		{"\xEF\xBB\xBFmarked", "marked", UTF8Mark}, {"\xEF\xBB\xBF", "", UTF8Mark},
		{"\xFF\xFEa\x00\n\x00", "a\n", UTF16LE}, {"\xFE\xFF\x00a\xd8\x3d\xde\x00", "a\U0001F600", UTF16BE},
		{"caf\xe9 \x93quoted\x94", "caf\u00e9 \u0093quoted\u0094", Latin1},
		{"\xFF\xFEab\xe9", "\u00ff\u00feab\u00e9", Latin1}, // an odd number of bytes is no UTF-16
	} {
		got, e, err := Decode([]byte(c.bytes))
		if err != nil || got != c.text || e != c.encoding {
			t.Errorf("%q: got %q, %v, %v", c.bytes, got, e, err)
		}
		back, err := e.Encode(got)
		if err != nil || string(back) != c.bytes {
			t.Errorf("%q: written back as %q, %v", c.bytes, back, err)
		}
	}
	for _, b := range []string{
		"\x7fELF\x02\x01\x01\x00", "text\x00", "\x89PNG\r\n\x1a\n", "\xe9\x01", "\xFF\xFE\x00\x00a\x00\x00\x00", "\xFF\xFE\x00\xd8", "\xEF\xBB\xBFa\x00",
	} {
		if got, e, err := Decode([]byte(b)); !errors.Is(err, ErrBinary) {
			t.Errorf("%q: got %q, %v, %v", b, got, e, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	if _, err := Latin1.Encode("5 \u20ac"); err == nil {
		t.Error("a character was lost")
	}
}

// What can be read can be written back as it was.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "a", "\xFF\xFEa\x00", "\xFE\xFF\xd8\x00", "\xEF\xBB\xBF\xff", "\xe9", "\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, e, err := Decode(b)
		if err != nil {
			return
		}
		if !utf8.ValidString(s) {
			t.Fatalf("%q is %q", b, s)
		}
		if back, err := e.Encode(s); err != nil || !bytes.Equal(back, b) {
			t.Fatalf("%q is written back as %q, %v", b, back, err)
		}
	})
}
