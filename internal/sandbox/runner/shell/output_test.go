package shell

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/shell/bashstate"
	"deckhand/internal/sandbox/runner/shell/whole"
)

func TestOutputIsText(t *testing.T) {
	b := open(t)
	b.gives(`printf 'a\377\376b\000c\r\n\ttab\033[1m'`, 0, "a\uFFFDb\x00c\r\n\ttab\x1b[1m")
	b.gives(`printf '\342\202'`, 0, "\uFFFD") // the beginning of a character, and then the end
	b.gives(`printf '\254'`, 0, "\uFFFD")
	if r := b.run("head -c 3000 /dev/urandom"); !utf8.ValidString(r.Output) || r.Bytes != 3000 {
		t.Errorf("noise gave %d bytes, valid %v", r.Bytes, utf8.ValidString(r.Output))
	}
}

// A character that is only half there when the wait ends is in the next result.
func TestTornCharacter(t *testing.T) {
	b := open(t)
	r := b.begin(sandbox.Command{Text: `printf 'x\342\202'; read line; printf '\254\n'`}, "x")
	if r.Output != "x" && r.Output != "" {
		t.Errorf("the first part is %q", r.Output)
	}
	r = b.do(sandbox.Command{Input: true, Hard: hung}, nil)
	if r.Output != "€\n" || r.Exit != 0 {
		t.Errorf("the second part is %+v", r)
	}
}

func TestLongOutput(t *testing.T) {
	b := open(t)
	for name, c := range map[string]struct {
		text  string
		unit  string
		count int
		cut   bool
	}{
		"as much as is shown":          {"head -c 30000 /dev/zero | tr '\\0' x", "x", 30_000, false},
		"one more":                     {"head -c 30001 /dev/zero | tr '\\0' x", "x", 30_001, true},
		"as much in large characters":  {"s=$(printf '😀%.0s' {1..100}); for i in {1..300}; do printf %s $s; done", "😀", 30_000, false},
		"more than is held in memory":  {"s=$(printf '😀%.0s' {1..100}); for i in {1..1000}; do printf %s $s; done", "😀", 100_000, true},
		"a little more than is held":   {"head -c 120009 /dev/zero | tr '\\0' x", "x", 120_009, true},
		"more of it than can be shown": {"head -c 100000 /dev/zero | tr '\\0' '\\377'", "\xff", 100_000, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			r := b.run(c.text)
			want := strings.Repeat(c.unit, c.count)
			if r.Exit != 0 || r.Bytes != int64(len(want)) || !utf8.ValidString(r.Output) {
				t.Fatalf("exit %d, %d bytes, valid %v", r.Exit, r.Bytes, utf8.ValidString(r.Output))
			}
			if !c.cut {
				if r.Output != want || r.Whole != "" {
					t.Errorf("%d characters, whole in %q", utf8.RuneCountInString(r.Output), r.Whole)
				}
				return
			}
			side := strings.ToValidUTF8(strings.Repeat(c.unit, half), "\uFFFD")
			if r.Output != side+"\n"+cut+"\n"+side {
				t.Errorf("%d characters: %.20q", utf8.RuneCountInString(r.Output), r.Output)
			}
			whole, err := os.ReadFile(r.Whole)
			if err != nil || string(whole) != want {
				t.Errorf("the file has %d bytes, error %v", len(whole), err)
			}
			// The sandbox reads it under the name it is given.
			b.gives("wc -c <"+r.Whole, 0, fmt.Sprintf("%d\n", len(want)))
		})
	}
}

// in is the same box for a subtest.
func (b *box) in(t *testing.T) *box {
	c := &box{Sandbox: b.Sandbox, t: t, shells: b.shells, config: b.config, workspace: b.workspace}
	c.ids.Store(int64(len(t.Name())) * 1_000_000)
	for _, r := range t.Name() {
		c.ids.Add(int64(r) * 1000)
	}
	return c
}

// Output without end fills neither memory nor disk, and blocks no call.
func TestHugeOutput(t *testing.T) {
	b := open(t)
	const size = int64(whole.Max + 1<<20)
	r := b.run(fmt.Sprintf("echo first; yes 0123456789 | head -c %d; echo last", size))
	if r.Bytes != size+11 || !strings.HasPrefix(r.Output, "first\n") || !strings.HasSuffix(r.Output, "last\n") {
		t.Errorf("%d bytes, %.10q … %q", r.Bytes, r.Output, r.Output[max(0, len(r.Output)-10):])
	}
	info, err := os.Stat(r.Whole)
	if err != nil || info.Size() != whole.Max {
		t.Errorf("the file: %v, %v", info, err)
	}
	if !strings.Contains(r.Output, "only its first 64 MiB") {
		t.Error("the result does not say that the file is not whole")
	}
}

// A caller that does not read must not hold up the command.
func TestSlowCaller(t *testing.T) {
	b := open(t)
	release := make(chan struct{})
	done := make(chan sandbox.Result, 1)
	began := make(chan struct{})
	var live bytes.Buffer
	go func() {
		done <- b.do(sandbox.Command{ID: "slow", Text: "yes | head -c 5000000; echo end; touch done"}, func(p []byte) {
			if live.Len() == 0 {
				close(began)
				<-release
			}
			live.Write(p)
		})
	}()
	<-began
	// It ends although its first caller reads nothing: a second one sees it.
	if r := b.do(sandbox.Command{ID: "slow", Again: true}, nil); r.Exit != 0 || !strings.HasSuffix(r.Output, "end\n") {
		t.Errorf("the second caller got %+v", r.Exit)
	}
	close(release)
	r := <-done
	if r.Bytes != 5_000_004 || !bytes.Contains(live.Bytes(), []byte(gap)) || !bytes.HasSuffix(live.Bytes(), []byte("end\n")) {
		t.Errorf("the slow one got %d bytes live, of %d", live.Len(), r.Bytes)
	}
}

func TestLiveOutput(t *testing.T) {
	b := open(t)
	var live []string
	var sent sync.WaitGroup
	r := b.do(sandbox.Command{Text: "echo one; read line; echo two"}, func(p []byte) {
		live = append(live, string(p))
		if len(live) == 1 {
			sent.Go(func() { b.do(sandbox.Command{Input: true, Text: "go"}, nil) })
		}
	})
	sent.Wait()
	if got := strings.Join(live, ""); r.Exit != 0 || got != "one\ntwo\n" || len(live) < 2 {
		t.Errorf("live was %q, result %+v", live, r)
	}
}

// A long text is run in the time that its length takes, whatever is in it. Each quote used to be looked at with all that
// follow.
func TestLongTextOfQuotes(t *testing.T) {
	b := open(t)
	quotes := strings.Repeat(`'"\!$`, 100_000)
	b.gives("cat <<'E' | md5sum\n"+quotes+"\nE", 0, fmt.Sprintf("%x  -\n", md5.Sum([]byte(quotes+"\n"))))
	takes := func(line string) time.Duration {
		r := b.do(sandbox.Command{Text: ": <<'E'\n" + line + "\nE", Hard: hung}, nil)
		if r.Exit != 0 {
			t.Errorf("%+v", r)
		}
		return r.Ended.Sub(r.Started)
	}
	const length = 900_000
	floor := takes(strings.Repeat("x", length))
	if took := takes(strings.Repeat("'", length)); took > 30*floor { // it was a hundred times as long
		t.Errorf("%d quotes took %v, as many letters %v", length, took, floor)
	}
}

// What looks like a mark and is none is output.
func TestFalseMarks(t *testing.T) {
	b := open(t)
	for _, s := range []string{
		"\x1b]5379;0123456789abcdef;e;1;0\a", "\x1b]5379;", "\x1b", "\x1b]0;title\a", "\x1b]5379;;e;2;0\a",
	} {
		b.gives(fmt.Sprintf("printf %%s %s; (exit 3)", bashstate.Quote(s)), 3, s)
	}
	r := b.run(`declare -f __dh_m; exit=4; (exit $exit)`) // the word itself, but no mark
	if r.Exit != 4 || !strings.Contains(r.Output, "5379;") {
		t.Errorf("showing what tells of the end gave %+v", r)
	}
	b.gives("echo fine", 0, "fine\n")
}

func TestWholeThatCannotBeKept(t *testing.T) {
	b := open(t)
	b.shells.keep.Close() // as good as a full disk
	r := b.run("head -c 200000 /dev/zero | tr '\\0' x")
	if r.Exit != 0 || r.Whole != "" || !strings.Contains(r.Output, "could not be kept") || r.Bytes != 200_000 {
		t.Errorf("gave %d, %q, %d bytes", r.Exit, r.Whole, r.Bytes)
	}
}

func TestBadRequests(t *testing.T) {
	b := open(t)
	for name, c := range map[string]sandbox.Command{
		"no id": {Text: ":"}, "zero": {ID: "z", Text: "a\x00b"}, "name": {ID: "n", Shell: strings.Repeat("x", 1000), Text: ":"},
		"long": {ID: "l", Text: strings.Repeat("x", maxText+1)},
	} {
		_, err := b.Exec(t.Context(), c, nil)
		e, ok := err.(*rpc.Error)
		if !ok || e.Code == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
