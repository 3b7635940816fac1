package gitview

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
)

var fixed = time.Unix(1_000_000_000, 0)

const id = "7898192261678912345678901234567890123456"

func TestParseStatus(t *testing.T) {
	in := "# branch.oid " + id + "\x00# branch.head some/branch\x00# stash 3\x00" +
		"1 .M N... 100644 100644 100755 " + id + " " + id + " a b\nc\x00" +
		"2 R. N... 100644 100644 100644 " + id + " " + id + " R100 new\x00old name\x00" +
		"2 C. N... 100644 100644 100644 " + id + " " + id + " C75 copy\x00old\x00" +
		"u UU N... 100644 100644 100644 100644 " + id + " " + id + " " + id + " both\x00" +
		"? un tracked\x00! ignored\x00"
	states := map[string]*state{}
	st, err := parseStatus(strings.NewReader(in), func(e entry) error { return note(states, e) })
	if err != nil || st.branch != "some/branch" || st.head != id {
		t.Errorf("got %+v, %v", st, err)
	}
	var got []string
	for name, s := range states {
		got = append(got, s.status()+" "+name)
	}
	slices.Sort(got)
	if want := []string{"A copy", "A new", "A un tracked", "D old name", "M a b\nc", "U both"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for in, want := range map[string]error{
		"1 .M N...\x00": errFormat, "x\x00": errFormat, "\x00": errFormat, "3 a b\x00": errFormat, "? cut": io.ErrUnexpectedEOF,
		"2 R. N... 1 2 3 4 5 R1 new\x00": io.ErrUnexpectedEOF, "2 R. N... 1 2 3 4 5 X1 new\x00old\x00": errFormat, "1 .M N... 1 2 3 4 5 \x00": errFormat,
	} {
		if _, err := parseStatus(strings.NewReader(in), func(entry) error { return nil }); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
	}
}

func TestParseSteps(t *testing.T) {
	var got []step
	in := ":100644 000000 " + id + " 0000 D\x00a\nb\x00:000000 100644 0000 " + id + " A\x00:x\x00"
	err := parseSteps(strings.NewReader(in), func(s step) error { got = append(got, s); return nil })
	if err != nil || !slices.Equal(got, []step{{"a\nb", "100644", absent, id}, {":x", absent, "100644", "0000"}}) {
		t.Errorf("got %+v, %v", got, err)
	}
	for in, want := range map[string]error{
		":1 2 3 4 M\x00": io.ErrUnexpectedEOF, ":1 2 3 4 M\x00x": io.ErrUnexpectedEOF, "x\x00y\x00": errFormat, ":1 2 3 4 R100\x00a\x00b\x00": errFormat, ":1 2 3 4 M\x00\x00": errFormat,
	} {
		if err := parseSteps(strings.NewReader(in), func(step) error { return nil }); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", in, err, want)
		}
	}
}

// Whatever git writes, nothing breaks, and every path is one that was written.
func FuzzParse(f *testing.F) {
	f.Add("# branch.oid x\x001 .M N... 1 2 3 4 5 p\x00? q\x00")
	f.Add("2 R. N... 1 2 3 4 5 R1 new\x00old\x00")
	f.Add(":1 2 3 4 M\x00path\x00")
	f.Fuzz(func(t *testing.T, in string) {
		check := func(path string) error {
			if path != "" && !strings.Contains(in, path) || strings.Contains(path, "\x00") {
				t.Fatalf("%q is not in %q", path, in)
			}
			return nil
		}
		states := map[string]*state{}
		_, _ = parseStatus(strings.NewReader(in), func(e entry) error { _ = note(states, e); return check(e.path) })
		_ = parseSteps(strings.NewReader(in), func(s step) error { _ = combine(states, s); return check(s.path) })
		for _, s := range states {
			_ = s.status()
		}
	})
}

// A list of paths comes back as it was, whatever is in them.
func FuzzNames(f *testing.F) {
	f.Add("a b", "\n\"")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == "" || b == "" || strings.Contains(a+b, "\x00") {
			t.Skip()
		}
		in := "? " + a + "\x001 .M N... 100644 100644 100644 " + id + " " + id + " " + b + "\x00"
		var got []string
		if _, err := parseStatus(strings.NewReader(in), func(e entry) error { got = append(got, e.path); return nil }); err != nil || !slices.Equal(got, []string{a, b}) {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}
