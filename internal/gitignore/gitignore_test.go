package gitignore

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHides(t *testing.T) {
	for _, c := range []struct{ text, hidden, shown string }{
		{"", "", "a|a/b|d/"},
		{"# a\n\n   \n", "", "a|#|d/"},
		{"\\#a\n\\!b", "#a|!b|d/#a", "a|b"},
		{"a", "a|a/|x/a|x/y/a/|a/b/c|x/a/c", "b|ab|ba|A"},
		{"/a", "a|a/|a/b", "x/a"},
		{"a/b", "a/b|a/b/|a/b/c", "x/a/b|b|a"},
		{"/a/b", "a/b", "x/a/b"},
		{"a/", "a/|x/a/|a/b", "a|x/a"},
		{"*.log", "a.log|x/b.log|.log", "a.log2|log"},
		{"*.log\n!keep.log", "a.log", "keep.log|x/keep.log"},
		{"!keep.log\n*.log", "keep.log", "x"},
		{"d/\n!d/keep", "d/|d/keep", "keep"},
		{"d/*\n!d/keep", "d/a|d/x/", "d/|d/keep"},
		{"**/a", "a|x/a|x/y/a", "b"},
		{"a/**", "a/b|a/b/c", "a/|a|x/a/b"},
		{"a/**/b", "a/b|a/x/b|a/x/y/b|a/b/c", "b|x/a/b"},
		{"**", "a|a/b|d/", ""},
		{"a**b", "ab|axb|axxb|x/ab", "a/b"},
		{"**/a/**", "a/b|x/a/b|x/y/a/b/c", "a|a/"},
		{"?", "a|b|x/a|a/", "ab|xy"},
		{"a?c", "abc|a/x/abc", "ac|a/c|aüc"},
		{"[ab]c", "ac|bc", "cc|c"},
		{"[!ab]c", "cc|xc", "ac|bc"},
		{"[^ab]c", "cc", "ac"},
		{"[a-c]x", "ax|bx|cx", "dx|-x"},
		{"[]]x", "]x", "x"},
		{"[!]]x", "ax", "]x"},
		{"[a-]x", "ax|-x", "bx"},
		{"[\\]]x", "]x", "\\x"},
		{"[[:digit:]]x", "1x", "ax|:x"},
		{"[a[:upper:]-]", "a|B|-", "b"},
		{"[[:nope:]]x", "", "nx|:x"},
		{"[ab", "", "a|b|[ab"},
		{"a\\*", "a*", "ab|a\\b"},
		{"a\\", "", "a|a\\"},
		{"a\\ ", "a ", "a"},
		{"a  ", "a", "a  "},
		{"a b", "a b|x/a b", "a|b|ab"},
		{"a\r\nb\r\n", "a|b", "a\r"},
		{"\ufeffa", "a", "b"},
		{"/", "", "a|d/"},
		{"/*", "a|d/|d/x", ""},
		{"/*\n!/d/", "a", "d/|d/x"},
		{"a//b", "", "a/b"},
		{"caf\xe9", "caf\xe9", "café"},
		{strings.Repeat("*a", 60) + "b", "", strings.Repeat("a", 200)},
		{strings.Repeat("**/a/", 60) + "b", "", strings.Repeat("a/", 200) + "c"},
	} {
		l := Parse(c.text)
		for want, paths := range map[bool]string{true: c.hidden, false: c.shown} {
			for path := range strings.SplitSeq(paths, "|") {
				if path == "" {
					continue
				}
				name, dir := strings.CutSuffix(path, "/")
				if got := l.Hides(name, dir); got != want {
					t.Errorf("%q hides %q (folder %t): %t, want %t", c.text, name, dir, got, want)
				}
			}
		}
	}
	var none *List
	if none.Hides("a", false) {
		t.Error("no list hides something")
	}
	long := strings.Repeat("x\n", MaxPatterns) + "late\n"
	if Parse(long).Hides("late", false) {
		t.Error("there is no end to the patterns")
	}
}

// tree is what git and we are asked about.
var tree = []string{"a", "b", "ab", "a.b", "A", "c", "#a", "!a", "a*", "d/a", "d/b", "d/ab", "d/e/a", "d/e/b", "d/e/f/ab", "e/d/a", "e/a.b", "e/-", "e/]", "e/[", "e/ a", "e/a ", "x/1", "x/\xe9"}

// odd are unusual patterns: ** that does not stand between slashes, which by
// its manual git takes for one star and by a short cut in its code sometimes for
// two, and a slash that is escaped.
var odd = regexp.MustCompile(`[^/\n]\*\*|\*\*[^/\n]|\\/`)

// Git itself is the judge: whatever pattern is drawn, it hides what git hides.
func TestAsGitDoes(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range tree {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(git, "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	piece := rapid.SampledFrom([]string{"a", "b", "d", "e", "f", "x", "A", "/", "/", "*", "**", "**/", "/**", "?", "[ab]", "[!a]", "[a-d]", "[[:lower:]]", "]", "-", "\\", "\\a", " ", ".", "!", "#", "\xe9", "1"})
	line := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "line"), "") })
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 1, 4).Draw(t, "lines"), "\n")
		if odd.MatchString(text) {
			t.Skip("odd")
		}
		if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(git, "-C", dir, "-c", "core.excludesFile=", "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
		cmd.Stdin = strings.NewReader(strings.Join(tree, "\x00") + "\x00")
		out, err := cmd.Output()
		if exit := (*exec.ExitError)(nil); err != nil && (!asExit(err, &exit) || exit.ExitCode() != 1) {
			t.Fatal(err)
		}
		hidden := map[string]bool{}
		for name := range bytes.SplitSeq(out, []byte{0}) {
			hidden[string(name)] = true
		}
		l := Parse(text)
		for _, f := range tree {
			if got := l.Hides(f, false); got != hidden[f] {
				t.Fatalf("%q: %q is hidden: %t, and for git %t", text, f, got, hidden[f])
			}
		}
	})
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*to = e
	return ok
}

func FuzzHides(f *testing.F) {
	f.Add("a/**/b\n!*.c\n[a-", "a/x/b", true)
	f.Add("\\", "", false)
	f.Fuzz(func(t *testing.T, text, path string, dir bool) {
		l := Parse(text)
		if l.Hides(path, dir) && !l.Hides(path+"/x", false) {
			// Nothing comes back from below what is hidden as a folder.
			if l.Hides(path, true) {
				t.Errorf("%q hides %q and not what is in it", text, path)
			}
		}
	})
}
