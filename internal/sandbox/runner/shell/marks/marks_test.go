package marks

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// pieces scans b in pieces whose lengths the cuts tell, and writes down all that
// comes out.
func pieces(word string, b, cuts []byte) (log string, held []byte) {
	s := New(word, nil)
	var out bytes.Buffer
	var text []byte
	flush := func() {
		if len(text) > 0 {
			fmt.Fprintf(&out, "%q ", text)
			text = nil
		}
	}
	for len(b) > 0 {
		n := len(b)
		if len(cuts) > 0 {
			n, cuts = min(n, int(cuts[0])%7+1), cuts[1:]
		}
		piece := bytes.Clone(b[:n])
		s.Scan(piece, func(p []byte) { text = append(text, p...) }, func(m Mark) {
			flush()
			fmt.Fprintf(&out, "%c%d/%d ", m.Kind, m.Number, m.Status)
		})
		for i := range piece { // the reader uses its buffer again
			piece[i] = '?'
		}
		b = b[n:]
	}
	held = s.Rest()
	text = append(text, held...)
	flush()
	return out.String(), held
}

func TestScanner(t *testing.T) {
	const w = "word"
	mark := func(rest string) string { return "\x1b]5379;" + w + ";" + rest }
	for in, want := range map[string]string{
		"plain":                                     `"plain" `,
		mark("e;1;0\a"):                             `e1/0 `,
		"a" + mark("b;12\a") + "b":                  `"a" b12/0 "b" `,
		mark("p;3;130\a") + mark("e;3;255\a"):       `p3/130 e3/255 `,
		"\x1b" + mark("e;1;0\a"):                    `"\x1b" e1/0 `,
		"\x1b]5379;wor" + mark("e;1;0\a"):           `"\x1b]5379;wor" e1/0 `,
		mark("e;1;") + mark("e;1;0\a"):              `"\x1b]5379;word;e;1;" e1/0 `,
		mark("e;?;0;\a"):                            `e-1/0 `,
		mark("x;1;0\a"):                             ``,
		mark("e;1\a"):                               ``,
		mark("b;1;0\a"):                             ``,
		mark("e;-1;0\a"):                            ``,
		mark("e;1;99999999\a"):                      ``,
		mark("e;99999999999999999999999999;0\a"):    ``,
		mark("e;1;0 and it never ends but goes on"): `"\x1b]5379;word;e;1;0 and it never ends but goes on" `,
		"\x1b]5379;other;e;1;0\a":                   `"\x1b]5379;other;e;1;0\a" `,
		mark("e;1;"):                                `"\x1b]5379;word;e;1;" `,
	} {
		for size := range 8 {
			if got, _ := pieces(w, []byte(in), bytes.Repeat([]byte{byte(size)}, len(in)*min(size, 1))); got != want {
				t.Errorf("%q in pieces of %d gave %s, wanted %s", in, size+1, got, want)
			}
		}
	}
}

// What "set -v" shows of our lines is left out, however it is torn.
func TestOurLinesAreHidden(t *testing.T) {
	in := []byte("a{ b{ __dh_q; }\n\x1b]5379;word;e;1;0\ac{ __dh_x\n{ __dh_q; }\n\x1b]{ __dh_q; }\n{ __dh")
	for size := 1; size <= len(in); size++ {
		s := New("word", [][]byte{[]byte("{ __dh_q; __dh_t; }\n"), []byte("{ __dh_q; }\n")})
		s.Hides = true
		var out []byte
		marks := 0
		for piece := range slices.Chunk(in, size) {
			s.Scan(bytes.Clone(piece), func(b []byte) { out = append(out, b...) }, func(Mark) { marks++ })
		}
		if out = append(out, s.Rest()...); string(out) != "a{ bc{ __dh_x\n\x1b]{ __dh" || marks != 1 {
			t.Errorf("in pieces of %d: %q, %d marks", size, out, marks)
		}
	}
}

// However a stream is torn, the same comes out, and nothing is held for long.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("a\x1b]5379;word;e;1;0\ab\x1b]5379;word;b;2\a"), []byte{1, 2, 3})
	f.Add([]byte("\x1b]5379;wo\x1b]5379;word;e;1;\x1b]5379;word;p;1;2\a\x1b"), []byte{0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b, cuts []byte) {
		for _, in := range [][]byte{b, bytes.ReplaceAll(b, []byte("M"), []byte("\x1b]5379;word;e;7;8\a"))} {
			whole, _ := pieces("word", in, nil)
			torn, held := pieces("word", in, cuts)
			if whole != torn {
				t.Errorf("%q whole gives %s, torn %s", in, whole, torn)
			}
			if len(held) > len("\x1b]5379;word;")+maxMark {
				t.Errorf("%d bytes are held back", len(held))
			}
		}
	})
}
