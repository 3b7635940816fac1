package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("one\r\n\n"+strings.Repeat("x", 101)+"\n"+strings.Repeat("y", 100)+"\nlast"), 16)
	for _, want := range []string{"one", "", "!", strings.Repeat("y", 100), "last"} {
		line, err := readLine(r, 100)
		if want == "!" {
			if !errors.Is(err, errLong) {
				t.Errorf("a long line is %q, %v", line, err)
			}
			continue
		}
		if err != nil || string(line) != want {
			t.Errorf("%q, %v instead of %q", line, err, want)
		}
	}
	if _, err := readLine(r, 100); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccc"))
	f.Add(bytes.Repeat([]byte("x"), 100))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 40
		r := bufio.NewReaderSize(bytes.NewReader(b), 16)
		for _, want := range bytes.SplitAfter(b, []byte("\n")) {
			line, err := readLine(r, limit)
			switch {
			case len(want) == 0: // nothing after the last end of a line
				if !errors.Is(err, io.EOF) {
					t.Errorf("%q, %v at the end", line, err)
				}
			case len(want) > limit+1:
				if err == nil {
					t.Errorf("%d bytes were read", len(line))
				}
			case err != nil || !bytes.Equal(line, bytes.TrimRight(want, "\r\n")):
				t.Errorf("%q, %v instead of %q", line, err, want)
			}
		}
	})
}

// FuzzParse: whatever a server writes is either of the protocol or noise.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"x"}]`))
	f.Add([]byte(`[null]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, ok := parse(b)
		if ok != (len(all) > 0) {
			t.Errorf("%v, %v", all, ok)
		}
		for _, m := range all {
			if m.Version != "2.0" || string(m.ID) == "null" {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestTail(t *testing.T) {
	var whole string
	last := tail{size: 10}
	for _, s := range []string{"", "abc", "defghij", "k", "0123456789", "a very long one indeed", "x"} {
		whole += s
		if n, err := last.Write([]byte(s)); n != len(s) || err != nil {
			t.Error(n, err)
		}
		if want := whole[max(0, len(whole)-10):]; last.String() != want {
			t.Errorf("%q instead of %q", last.String(), want)
		}
	}
	_, _ = last.Write([]byte("\xff\xfe"))
	if !strings.HasSuffix(last.String(), "\uFFFD") {
		t.Errorf("%q", last.String())
	}
}
