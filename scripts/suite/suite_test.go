package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// said is what go test -json says of two packages, one of which fails.
const said = `{"Action":"run","Package":"deckhand/a","Test":"TestGood"}
{"Action":"pass","Package":"deckhand/a","Test":"TestGood","Elapsed":0.5}
{"Action":"output","Package":"deckhand/a","Test":"TestAway","Output":"    a_test.go:7: SKIPPED: no engine\n"}
{"Action":"skip","Package":"deckhand/a","Test":"TestAway","Elapsed":0}
{"Action":"output","Package":"deckhand/a","Output":"suite-cpu 1.5s\n"}
{"Action":"pass","Package":"deckhand/a","Elapsed":0.6}
{"Action":"output","Package":"deckhand/b","Test":"TestBad/one","Output":"    b_test.go:9: it broke\n"}
{"Action":"fail","Package":"deckhand/b","Test":"TestBad/one","Elapsed":2}
{"Action":"fail","Package":"deckhand/b","Test":"TestBad","Elapsed":2}
{"Action":"fail","Package":"deckhand/b","Elapsed":2.1}
`

func TestReport(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newReport(&out, 2)
	if err := r.read(strings.NewReader(said)); err != nil {
		t.Fatal(err)
	}
	bad := name{"deckhand/b", "TestBad/one"}
	if got := r.failed(); !slices.Equal(got, []name{bad}) {
		t.Errorf("failed: %v", got)
	}
	r.summary(time.Minute)
	for _, want := range []string{"it broke", "skipped 1: SKIPPED: no engine", "0.6s  CPU     1.5s  a", "2.0s  b TestBad/one", "FAILED b TestBad/one", "\n1 passed, 2 failed, 1 skipped\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, &out)
		}
	}
}

// A failure that passes by itself does not fail the run, and is named.
func TestAgain(t *testing.T) {
	t.Parallel()
	for _, passes := range []bool{true, false} {
		var out bytes.Buffer
		r := newReport(&out, 2)
		if err := r.read(strings.NewReader(said)); err != nil {
			t.Fatal(err)
		}
		var asked []string
		r.again(func(second *report, flags, packages []string) error {
			asked = append(slices.Clone(flags), packages...)
			if passes {
				return second.read(strings.NewReader(`{"Action":"pass","Package":"deckhand/b","Test":"TestBad/one"}` + "\n" + `{"Action":"pass","Package":"deckhand/b"}`))
			}
			return second.read(strings.NewReader(`{"Action":"fail","Package":"deckhand/b","Test":"TestBad/one"}` + "\n" + `{"Action":"fail","Package":"deckhand/b"}`))
		}, []string{"-race"}, r.failed())
		want := []string{"-race", "-count=1", "-p=1", "-parallel=1", "-run", "^TestBad$/^one$", "deckhand/b"}
		if !slices.Equal(asked, want) {
			t.Errorf("go test was asked %q", asked)
		}
		if got := len(r.failed()) == 0; got != passes {
			t.Errorf("passes by itself: %v; the run passes: %v", passes, got)
		}
		r.summary(time.Minute)
		if got := strings.Contains(out.String(), "FLAKY b TestBad/one"); got != passes {
			t.Errorf("passes by itself: %v; named as flaky: %v", passes, got)
		}
	}
}

// A package that ends without a verdict on a test has failed as a whole, and
// running it again does not change that.
func TestPackageFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	r := newReport(&out, 1)
	if err := r.read(strings.NewReader(`{"Action":"output","Package":"deckhand/c","Test":"TestHang","Output":"panic: test timed out\n"}` + "\n" + `{"Action":"fail","Package":"deckhand/c","Elapsed":9}`)); err != nil {
		t.Fatal(err)
	}
	r.again(func(*report, []string, []string) error { t.Error("it was run again"); return nil }, nil, r.failed())
	if got := r.failed(); !slices.Equal(got, []name{{"deckhand/c", ""}}) || !strings.Contains(out.String(), "panic: test timed out") {
		t.Errorf("failed: %v\n%s", got, &out)
	}
}

func TestTouched(t *testing.T) {
	t.Parallel()
	all := map[string]pkg{}
	for _, p := range []pkg{
		{ImportPath: "deckhand/internal/a"},
		{ImportPath: "deckhand/internal/b", Deps: []string{"deckhand/internal/a"}},
		{ImportPath: "deckhand/internal/c", XTestImports: []string{"deckhand/internal/b"}},
		{ImportPath: "deckhand/internal/d"},
	} {
		all[p.ImportPath] = p
	}
	for file, want := range map[string]string{
		"internal/a/a.go":           "a b c",
		"internal/a/testdata/x.txt": "a b c",
		"internal/b/b_test.go":      "b c",
		"internal/d/d.go":           "d",
		"README.md":                 "",
		"go.sum":                    "a b c d",
	} {
		touched, everything := touchedBy([]string{file}, all)
		var got []string
		for _, p := range []string{"a", "b", "c", "d"} {
			if everything || reaches("deckhand/internal/"+p, all, touched) {
				got = append(got, p)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s touches %v, want %s", file, got, want)
		}
	}
}

// What tests leave in their folder and beside it is found.
func TestRemaining(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	if left := remaining(temp, map[string]bool{"container 1": true}, map[string]bool{"container 1": true}); len(left) != 0 {
		t.Errorf("nothing was left, and found: %v", left)
	}
	if err := os.Mkdir(filepath.Join(temp, "TestX"), 0o700); err != nil {
		t.Fatal(err)
	}
	if left := remaining(temp, nil, map[string]bool{"container 2": true}); len(left) != 2 || left[0] != "container 2" || !strings.HasSuffix(left[1], "/TestX") {
		t.Errorf("found: %v", left)
	}
}

// A control group counts as left behind when nothing is in it.
func TestPopulated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		processes string
		below     bool
		want      bool
	}{
		"empty":         {},
		"processes":     {processes: "12\n", want: true},
		"a group in it": {below: true, want: true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(c.processes), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.below {
			if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got := populated(dir); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whatever remains fails the run and is named.
func TestLeftoversFailTheRun(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	if err := os.Mkdir(filepath.Join(temp, "TestX"), 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if reportLeftovers(&out, remaining(temp, nil, nil), true) || !strings.Contains(out.String(), "LEFT BEHIND folder "+temp) {
		t.Errorf("the run may pass: %s", out.String())
	}
	group := []string{"control group /sys/fs/cgroup/deckhand/x"}
	if reportLeftovers(&out, group, false) || !reportLeftovers(&out, group, true) {
		t.Error("a control group is judged without a look at others")
	}
	if !reportLeftovers(&out, nil, false) {
		t.Error("a run that leaves nothing fails")
	}
}
