package search

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

// desk is a workspace to search in. Each file that is put there is newer than
// those before it.
type desk struct {
	*testing.T
	*Search
	root string
	now  time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, root: filepath.Join(root, "ws"), now: time.Unix(1_700_000_000, 0)}
	d.ok(os.Mkdir(d.root, 0o755))
	d.ok(os.Mkdir(filepath.Join(root, "state"), 0o755))
	d.Search = New(Config{Workspace: d.root, Private: []string{filepath.Join(root, "state")}})
	return d
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) put(name, text string) {
	d.Helper()
	full := filepath.Join(d.root, name)
	d.ok(os.MkdirAll(filepath.Dir(full), 0o755))
	d.ok(os.WriteFile(full, []byte(text), 0o644))
	d.now = d.now.Add(time.Second)
	d.ok(os.Chtimes(full, d.now, d.now))
}

func (d *desk) glob(pattern, path string) []string {
	d.Helper()
	r, err := d.Glob(d.Context(), sandbox.GlobParams{Pattern: pattern, Path: path})
	d.ok(err)
	if r.Total < len(r.Paths) {
		d.Errorf("%d of %d", len(r.Paths), r.Total)
	}
	var out []string
	for _, p := range r.Paths {
		out = append(out, d.rel(p))
	}
	return out
}

func (d *desk) rel(p []byte) string { return strings.TrimPrefix(string(p), d.root+"/") }

// grep gives what is found as FILE:LINE:TEXT, with - in place of : for lines around.
func (d *desk) grep(p sandbox.GrepParams) ([]string, sandbox.GrepResult) {
	d.Helper()
	r, err := d.Grep(d.Context(), p)
	d.ok(err)
	var out []string
	for _, f := range r.Files {
		for _, l := range f.Lines {
			sep := "-"
			if l.Match {
				sep = ":"
			}
			out = append(out, fmt.Sprintf("%s%s%d%s%s", d.rel(f.Path), sep, l.Number, sep, l.Text))
		}
	}
	return out, r
}

func (d *desk) want(what string, got []string, want ...string) {
	d.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		d.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestGlobFinds(t *testing.T) {
	d := newDesk(t)
	for _, f := range []string{"a.go", "b.ts", "src/c.go", "src/deep/d.go", "src/deep/e.tsx", ".github/ci.yml", "docs/x.md", "name with blank.txt", "odd[1].txt", "caf\xe9.txt", "ünï.txt"} {
		d.put(f, "")
	}
	d.ok(os.Symlink("a.go", filepath.Join(d.root, "link.go")))
	d.ok(os.Symlink("/", filepath.Join(d.root, "loop")))
	old := unix.Timespec{Sec: 1_600_000_000}
	d.ok(unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(d.root, "link.go"), []unix.Timespec{old, old}, unix.AT_SYMLINK_NOFOLLOW))
	for _, c := range []struct {
		pattern, path string
		want          string
	}{
		{"*.go", "", "src/deep/d.go|src/c.go|a.go|link.go"},
		{"./*.go", "", "a.go|link.go"},
		{"**/*.go", "", "src/deep/d.go|src/c.go|a.go|link.go"},
		{"src/*.go", "", "src/c.go"},
		{"src/**", "", "src/deep/e.tsx|src/deep/d.go|src/c.go"},
		{"src/**/*.go", "", "src/deep/d.go|src/c.go"},
		{"**/deep/*", "", "src/deep/e.tsx|src/deep/d.go"},
		{"*.{ts,tsx}", "", "src/deep/e.tsx|b.ts"},
		{"{src/**,docs}/*.{go,md}", "", "docs/x.md|src/deep/d.go"},
		{"[ab].*", "", "b.ts|a.go"},
		{"[!a].go", "", "src/deep/d.go|src/c.go"},
		{"[a-c].??", "", "src/c.go|b.ts|a.go"},
		{"*.yml", "", ".github/ci.yml"},
		{"*blank*", "", "name with blank.txt"},
		{`odd\[1\].txt`, "", "odd[1].txt"},
		{"odd[[]1].txt", "", "odd[1].txt"},
		{"caf?.txt", "", "caf\xe9.txt"},
		{"ünï.*", "", "ünï.txt"},
		{"*.go", "src", "src/deep/d.go|src/c.go"},
		{"*.go", "ROOT/src/deep", "src/deep/d.go"},
		{"ROOT/src/*.go", "ignored", "src/c.go"},
		{"ROOT/a.go", "", "a.go"},
		{"deep/", "", "src/deep"},
		{"*/", "docs", ""},
		{"*.rs", "", ""},
		{"*.GO", "", ""},
		{"a+go", "", ""},
		{"loop/**", "", ""},
	} {
		got := d.glob(strings.ReplaceAll(c.pattern, "ROOT", d.root), strings.ReplaceAll(c.path, "ROOT", d.root))
		d.want(c.pattern+" in "+c.path, got, strings.Split(c.want, "|")...)
	}
}

func TestIgnored(t *testing.T) {
	d := newDesk(t)
	d.put(".gitignore", "*.log\n/build/\nnode_modules/\n")
	d.put("a.log", "needle")
	d.put("build/b", "needle")
	d.put("sub/build/c", "needle")
	d.put("node_modules/dep/index.js", "needle")
	d.put("node_modules/dep/x.log", "needle")
	d.put("sub/.gitignore", "secret*\n")
	d.put("sub/secret.txt", "needle")
	d.put("other/secret.txt", "needle")
	d.put(".git/config", "needle")
	d.want("everything", d.glob("*", ""), "other/secret.txt", "sub/.gitignore", "sub/build/c", ".gitignore")
	got, _ := d.grep(sandbox.GrepParams{Pattern: "needle"})
	d.want("needle", got, "other/secret.txt:1:needle", "sub/build/c:1:needle")
	// Who names an ignored place means it; other rules still hold there.
	d.want("inside", d.glob("*", "node_modules/dep"), "node_modules/dep/x.log", "node_modules/dep/index.js")
	d.want("sub", d.glob("*", "sub"), "sub/.gitignore", "sub/build/c")
	d.want("sub/build", d.glob("*", "sub/build"), "sub/build/c")
	got, _ = d.grep(sandbox.GrepParams{Pattern: "needle", Path: "a.log"})
	d.want("a file", got, "a.log:1:needle")
	got, _ = d.grep(sandbox.GrepParams{Pattern: "needle", Path: ".git"})
	d.want(".git", got, ".git/config:1:needle")
}

func TestGrepFinds(t *testing.T) {
	d := newDesk(t)
	d.put("old.txt", "one needle\ntwo\nthree NEEDLE\r\nfour\nfive\nsix needle needle\n")
	d.put("new.go", "x\nfunc needle() {}\n")
	d.put("last", "no end needle")
	d.put("latin.txt", "caf\xe9 au lait\n")
	d.put("wide.txt", "\xff\xfew\x00i\x00d\x00e\x00\n\x00")
	d.put("binary", "needle\x00")
	d.put("late binary", strings.Repeat("x\n", 8<<10)+"needle\x00")
	d.put("empty", "")
	d.ok(os.Symlink("/etc", filepath.Join(d.root, "etc")))
	d.ok(os.Symlink("old.txt", filepath.Join(d.root, "link.txt")))
	d.ok(syscall.Mkfifo(filepath.Join(d.root, "pipe"), 0o644))
	for _, c := range []struct {
		p    sandbox.GrepParams
		want string
	}{
		{sandbox.GrepParams{Pattern: "needle"}, "last:1:no end needle|new.go:2:func needle() {}|old.txt:1:one needle|old.txt:6:six needle needle"},
		{sandbox.GrepParams{Pattern: "needle", IgnoreCase: true, Path: "old.txt"}, "old.txt:1:one needle|old.txt:3:three NEEDLE|old.txt:6:six needle needle"},
		{sandbox.GrepParams{Pattern: "needle", Include: "*.go"}, "new.go:2:func needle() {}"},
		{sandbox.GrepParams{Pattern: "needle$", Include: "*.{go,txt}"}, "old.txt:1:one needle|old.txt:6:six needle needle"},
		{sandbox.GrepParams{Pattern: "NEEDLE$"}, "old.txt:3:three NEEDLE"},
		{sandbox.GrepParams{Pattern: `^f\w+$`}, "old.txt:4:four|old.txt:5:five"},
		{sandbox.GrepParams{Pattern: "three", Context: 1}, "old.txt-2-two|old.txt:3:three NEEDLE|old.txt-4-four"},
		{sandbox.GrepParams{Pattern: "one|three|four", Context: 1}, "old.txt:1:one needle|old.txt-2-two|old.txt:3:three NEEDLE|old.txt:4:four|old.txt-5-five"},
		{sandbox.GrepParams{Pattern: "one|six", Context: 99, Path: "old.txt"}, "old.txt:1:one needle|old.txt-2-two|old.txt-3-three NEEDLE|old.txt-4-four|old.txt-5-five|old.txt:6:six needle needle"},
		{sandbox.GrepParams{Pattern: "café"}, "latin.txt:1:café au lait"},
		{sandbox.GrepParams{Pattern: "wide"}, "wide.txt:1:wide"},
		{sandbox.GrepParams{Pattern: `two\nthree`}, ""},
		{sandbox.GrepParams{Pattern: "nowhere"}, ""},
		{sandbox.GrepParams{Pattern: "root", Path: "pipe"}, ""},
		{sandbox.GrepParams{Pattern: "needle", Path: "link.txt"}, "link.txt:1:one needle|link.txt:6:six needle needle"},
	} {
		got, r := d.grep(c.p)
		d.want(fmt.Sprint(c.p), got, strings.Split(c.want, "|")...)
		if r.More || r.Unfinished || r.Large > 0 {
			t.Errorf("%v: got %+v", c.p, r)
		}
	}
}

func TestGrepIsBounded(t *testing.T) {
	d := newDesk(t)
	d.put("large", strings.Repeat("x\n", maxFile/2)+"needle\n")
	for i := range 10 {
		d.put(fmt.Sprint("f", i), strings.Repeat("needle\n", 100))
	}
	got, r := d.grep(sandbox.GrepParams{Pattern: "needle"})
	if len(got) != maxLines || len(r.Files) != maxLines/maxInFile || r.Files[0].Matches != 100 || r.Matches != 500 || !r.More {
		t.Errorf("%d lines, %d files, %+v", len(got), len(r.Files), r.Files[0].Matches)
	}
	if _, r = d.grep(sandbox.GrepParams{Pattern: "nowhere"}); r.Large != 1 || r.More {
		t.Errorf("got %+v", r)
	}
	long := strings.Repeat("ä", 5000)
	d.put("long", long+"needle"+long+"\n"+strings.Repeat("z", maxLine)+"beyond\nneedle"+long)
	got, _ = d.grep(sandbox.GrepParams{Pattern: "needle", Path: "long"})
	if len(got) != 2 || len(got[0]) > 2*maxShown || !strings.HasPrefix(got[0], "long:1:…ä") || !strings.Contains(got[0], "needle") || !strings.HasSuffix(got[0], "ä…") || !strings.HasPrefix(got[1], "long:3:needleä") {
		t.Errorf("got %q", got)
	}
	got, _ = d.grep(sandbox.GrepParams{Pattern: "beyond", Path: "long"})
	d.want("beyond the searched part of a line", got)

	d.limits.entries = 5
	if _, r = d.grep(sandbox.GrepParams{Pattern: "nowhere"}); !r.Unfinished {
		t.Error("there is no end to the files")
	}
	d.limits = limits{entries: 100}
	if _, r = d.grep(sandbox.GrepParams{Pattern: "nowhere"}); !r.Unfinished {
		t.Error("there is no end to the time")
	}
	d.limits = usual
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Grep(ctx, sandbox.GrepParams{Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := d.Glob(ctx, sandbox.GlobParams{Pattern: "x"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestGlobIsBounded(t *testing.T) {
	d := newDesk(t)
	for i := range maxPaths + 7 {
		d.put(fmt.Sprintf("d/f%03d", i), "")
	}
	r, err := d.Glob(t.Context(), sandbox.GlobParams{Pattern: "f*"})
	d.ok(err)
	if len(r.Paths) != maxPaths || r.Total != maxPaths+7 || r.Unfinished || d.rel(r.Paths[0]) != "d/f206" {
		t.Errorf("%d of %d, first %s", len(r.Paths), r.Total, r.Paths[0])
	}
	d.limits.entries = 50
	if r, err = d.Glob(t.Context(), sandbox.GlobParams{Pattern: "f*"}); err != nil || !r.Unfinished {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestMistakes(t *testing.T) {
	d := newDesk(t)
	d.put("f", "x")
	state := filepath.Join(filepath.Dir(d.root), "state")
	d.ok(os.WriteFile(filepath.Join(state, "f"), []byte("hidden"), 0o644))
	d.ok(os.Symlink(state, filepath.Join(d.root, "in")))
	long := strings.Repeat("x", maxPattern+1)
	for want, p := range map[string]sandbox.GrepParams{
		"pattern is empty":       {},
		"missing closing ) at":   {Pattern: "f("},
		"look-around":            {Pattern: "(?=x)"},
		"back-references":        {Pattern: `(a)\1`},
		"too complicated":        {Pattern: "(x{100}){10}(x{100}){10}(x{100}){10}(x{100}){10}(x{100}){10}"},
		"1001 characters":        {Pattern: long},
		"does not exist":         {Pattern: "x", Path: "gone/er"},
		"NUL":                    {Pattern: "x", Path: "a\x00"},
		"glob pattern has 1001":  {Pattern: "x", Include: long},
		"look at its brackets":   {Pattern: "x", Include: "*.{go"},
		"belongs to the sandbox": {Pattern: "hidden", Path: "in"},
		"sandbox itself":         {Pattern: "hidden", Path: state + "/f"},
		"cannot be searched":     {Pattern: "x", Path: strings.Repeat("a", 300)},
	} {
		if _, err := d.Grep(t.Context(), p); !errors.Is(err, rpc.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80v: got %v, want %q", p, err, want)
		}
	}
	for want, p := range map[string]sandbox.GlobParams{
		"empty":                {},
		"is a file":            {Pattern: "*", Path: "f"},
		"does not exist":       {Pattern: "*", Path: "/no/such"},
		"look at its brackets": {Pattern: "[z-a]"},
		"itself":               {Pattern: state + "/*"},
	} {
		if _, err := d.Glob(t.Context(), p); !errors.Is(err, rpc.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", p, err, want)
		}
	}
	// What is private is not come by either.
	r, err := d.Grep(t.Context(), sandbox.GrepParams{Pattern: "hidden", Path: filepath.Dir(d.root)})
	if err != nil || len(r.Files) > 0 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// Whatever a pattern is, it is refused or decided in time, and one without
// special characters fits itself.
func FuzzGlob(f *testing.F) {
	for _, seed := range []string{"*.go", "**/a/**", "{a,b{c,d}}", "[!a-z]", "[]", "[", `\`, `\*`, "a**b/**", "{", "}", ",", "caf\xe9", "[[:alpha:]]", "[a&&b]", "{**/,}x"} {
		f.Add(seed, "a/b.go")
	}
	f.Fuzz(func(t *testing.T, pattern, path string) {
		re, err := compile(pattern, true)
		if err != nil {
			if !errors.Is(err, rpc.ErrInvalid) {
				t.Errorf("%q: %v", pattern, err)
			}
			return
		}
		re.MatchString(path)
		plain := strings.TrimPrefix(strings.TrimPrefix(pattern, "."), "/")
		if !strings.ContainsAny(pattern, special+"]") && !strings.HasPrefix(pattern, ".") && !re.MatchString(plain) {
			t.Errorf("%q does not fit itself", pattern)
		}
	})
}

// Excerpts are short and whole characters, wherever the match is.
func FuzzExcerpt(f *testing.F) {
	f.Add(strings.Repeat("ä", 400), 300, 310)
	f.Add("short", 0, 2)
	f.Fuzz(func(t *testing.T, s string, from, to int) {
		s = strings.ToValidUTF8(s, "")
		if from < 0 || to < from || to > len(s) {
			t.Skip("no match")
		}
		got := excerpt(s, from, to)
		if len(got) > maxShown+6 || strings.ToValidUTF8(got, "") != got {
			t.Errorf("got %q", got)
		}
	})
}
