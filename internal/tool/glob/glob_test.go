package glob_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/tool/glob"
	"deckhand/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpec(t *testing.T) {
	tooltest.Spec(t, glob.Tool{}.Spec(), []string{`{"pattern":"*"}`, `{"pattern":"*","path":"/a"}`}, []string{`{}`, `{"pattern":1}`})
	if s := (glob.Tool{}).Spec(); !s.ReadOnly || s.Harmless || s.Name != "glob" {
		t.Errorf("got %+v", s)
	}
}

func TestGlob(t *testing.T) {
	b := tooltest.New(t)
	now := time.Now()
	for i, f := range []string{"a.go", "sub/b.go", "sub/c.txt", "odd\nname", "caf\xe9", "out/d.go"} {
		b.OK(os.Chtimes(b.Put(f, ""), now, now.Add(time.Duration(i)*time.Second)))
	}
	b.Put(".gitignore", "out/\n")
	for args, want := range map[string]string{
		`{"pattern":"*.go"}`:                 "ROOT/sub/b.go\nROOT/a.go",
		`{"pattern":"ROOT/*.go"}`:            "ROOT/a.go",
		`{"pattern":"*","path":"sub"}`:       "ROOT/sub/c.txt\nROOT/sub/b.go",
		`{"pattern":"*","path":"ROOT/out/"}`: "ROOT/out/d.go",
		`{"pattern":"odd*"}`:                 `"ROOT/odd\nname"`,
		`{"pattern":"caf?"}`:                 `"ROOT/caf\xe9"`,
		`{"pattern":"sub/"}`:                 "ROOT/sub",
		`{"pattern":"*.rs","path":"sub"}`:    `Nothing in ROOT/sub matches "*.rs".`,
	} {
		r := b.Works(glob.Tool{}, args)
		if got := strings.ReplaceAll(r.Text, b.Root, "ROOT"); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", args, got, want)
		}
	}
	for args, want := range map[string]string{
		`7`:                              "JSON object",
		`{"pattern":7}`:                  "pattern must be a string",
		`{}`:                             "empty",
		`{"pattern":"{a"}`:               "brackets",
		`{"pattern":"*","path":"/gone"}`: "does not exist",
		`{"pattern":"*","path":"a.go"}`:  "is a file",
	} {
		b.Fails(glob.Tool{}, args, want)
	}
	for i := range 230 {
		b.Put(fmt.Sprintf("many/%0200d", i), "")
	}
	r := b.Works(glob.Tool{}, `{"pattern":"many/*"}`)
	if len(r.Text) > 31_000 || !strings.Contains(r.Text, "of 230, those that were changed last") {
		t.Errorf("got %d bytes: …%s", len(r.Text), r.Text[len(r.Text)-300:])
	}
}
