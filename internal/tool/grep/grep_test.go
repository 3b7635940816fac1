package grep_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/tool/grep"
	"deckhand/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpec(t *testing.T) {
	tooltest.Spec(t, grep.Tool{}.Spec(),
		[]string{`{"pattern":"x"}`, `{"pattern":"x","path":"/a","include":"*.go","case_sensitive":false,"context":2}`},
		[]string{`{}`, `{"pattern":1}`, `{"pattern":"x","context":11}`, `{"pattern":"x","case_sensitive":"no"}`})
	if s := (grep.Tool{}).Spec(); !s.ReadOnly || s.Harmless || s.Name != "grep" {
		t.Errorf("got %+v", s)
	}
}

func TestGrep(t *testing.T) {
	b := tooltest.New(t)
	now := time.Now()
	for i, f := range []struct{ name, text string }{
		{"a.go", "package a\n\nfunc Old() {}\n// Old is old.\n"}, {"sub/b.go", "func old() {}\n"}, {"odd\nname", "OLD\n"}, {"c.bin", "old\x00"}, {"d.log", "old"}, {".gitignore", "*.log\n"},
	} {
		b.OK(os.Chtimes(b.Put(f.name, f.text), now, now.Add(time.Duration(i)*time.Second)))
	}
	for args, want := range map[string]string{
		`{"pattern":"Old"}`:                                  "2 matching lines in 1 file:\n\nROOT/a.go\n  3: func Old() {}\n  4: // Old is old.",
		`{"pattern":"old","case_sensitive":true}`:            "2 matching lines in 2 files:\n\nROOT/sub/b.go\n  1: func old() {}\n\nROOT/a.go\n  4: // Old is old.",
		`{"pattern":"^old$","case_sensitive":false}`:         "1 matching line in 1 file:\n\n\"ROOT/odd\\nname\"\n  1: OLD",
		`{"pattern":"package|is","path":"a.go","context":0}`: "2 matching lines in 1 file:\n\nROOT/a.go\n  1: package a\n  4: // Old is old.",
		`{"pattern":"package|is","path":"ROOT","context":1}`: "2 matching lines in 1 file:\n\nROOT/a.go\n  1: package a\n  2- \n  3- func Old() {}\n  4: // Old is old.",
		`{"pattern":"old","include":"*.rs"}`:                 `No line matches "old" in ROOT in files that match "*.rs".`,
		`{"pattern":"nowhere","path":"sub"}`:                 `No line matches "nowhere" in ROOT/sub.`,
	} {
		r := b.Works(grep.Tool{}, args)
		if got := strings.ReplaceAll(r.Text, b.Root, "ROOT"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", args, got, want)
		}
	}
	b.Put("e", "match\n2\n3\n4\n5\nmatch\n")
	if r := b.Works(grep.Tool{}, `{"pattern":"match","path":"e","context":1}`); !strings.HasSuffix(r.Text, "  1: match\n  2- 2\n  ...\n  5- 5\n  6: match") {
		t.Errorf("got\n%s", r.Text)
	}
	for args, want := range map[string]string{
		`nonsense`:                         "not valid JSON",
		`{"pattern":["x"]}`:                "pattern must be a string",
		`{}`:                               "pattern is empty",
		`{"pattern":"f("}`:                 "missing closing )",
		`{"pattern":"(?<!x)y"}`:            "look-around",
		`{"pattern":"x","include":"{a"}`:   "brackets",
		`{"pattern":"x","path":"/gone"}`:   "/gone does not exist",
		`{"pattern":"x","path":"../gone"}`: "does not exist",
	} {
		b.Fails(grep.Tool{}, args, want)
	}
}

func TestMuch(t *testing.T) {
	b := tooltest.New(t)
	line := strings.Repeat("needle ", 40) + "\n"
	for i := range 20 {
		b.Put(fmt.Sprintf("f%02d", i), strings.Repeat(line, 50))
	}
	r := b.Works(grep.Tool{}, `{"pattern":"needle"}`)
	if len(r.Text) > 31_000 || !strings.Contains(r.Text, "[10 more lines in this file not shown.]") || !strings.Contains(r.Text, "too much to show") || !strings.Contains(r.Text, "may be more matches") {
		t.Errorf("got %d bytes: …%s", len(r.Text), r.Text[max(0, len(r.Text)-600):])
	}
	b.Put("large", strings.Repeat("x", 11<<20))
	if r = b.Works(grep.Tool{}, `{"pattern":"nowhere"}`); !strings.Contains(r.Text, "[1 file left out as too large.]") {
		t.Errorf("got %s", r.Text)
	}
}
