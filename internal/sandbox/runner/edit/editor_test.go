package edit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/runner/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is an editor and a folder to work in.
type desk struct {
	*testing.T
	*Editor
	dir, state string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{T: t, dir: t.TempDir(), state: t.TempDir()}
	d.restart()
	return d
}

// restart is what a new runner finds.
func (d *desk) restart() {
	d.Helper()
	store, err := results.Open(filepath.Join(d.state, "results"))
	d.ok(err)
	d.ok(store.SetKey(make([]byte, results.KeySize))) // every runner of a sandbox is given the same
	d.Editor = New(Config{Results: store, Dir: filepath.Join(d.state, "undo"), Workspace: "/workspace", Private: []string{filepath.Join(d.state, "results")}})
}

func (d *desk) ok(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) at(name string) string { return filepath.Join(d.dir, name) }

func (d *desk) put(name, text string) string {
	d.Helper()
	d.ok(os.MkdirAll(filepath.Dir(d.at(name)), 0o755))
	d.ok(os.WriteFile(d.at(name), []byte(text), 0o644))
	return d.at(name)
}

func (d *desk) get(name string) string {
	d.Helper()
	b, err := os.ReadFile(d.at(name))
	d.ok(err)
	return string(b)
}

// Above the disk limit nothing is changed, but what was changed before is told again.
func TestNoEditsAboveTheLimit(t *testing.T) {
	d := newDesk(t)
	file := d.put("a", "old\n")
	first := d.do(`{"id":"1","command":"str_replace","path":%q,"old_str":"old","new_str":"new"}`, file)
	if again := d.do(`{"id":"1","again":true,"shrink":true,"command":"str_replace","path":%q,"old_str":"old","new_str":"new"}`, file); first.Failed || again != first {
		t.Errorf("%+v, then %+v", first, again)
	}
	for i, command := range []string{`"create","file_text":"x"`, `"str_replace","old_str":"new","new_str":""`, `"insert","insert_line":0,"new_str":"x"`, `"undo_edit"`} {
		if r := d.do(`{"id":"s%d","shrink":true,"command":%s,"path":%q}`, i, command, file); !r.Failed || r.Text != "ERROR: "+sandbox.Full {
			t.Errorf("%s gave %+v", command, r)
		}
	}
	if r := d.do(`{"shrink":true,"command":"view","path":%q}`, file); r.Failed || d.get("a") != "new\n" {
		t.Errorf("%+v, and the file has %q", r, d.get("a"))
	}
}

// params reads them from JSON, as they come.
func (d *desk) params(format string, args ...any) sandbox.EditParams {
	d.Helper()
	var p sandbox.EditParams
	d.ok(json.Unmarshal(fmt.Appendf(nil, format, args...), &p))
	return p
}

func (d *desk) do(format string, args ...any) sandbox.EditResult {
	d.Helper()
	r, err := d.Edit(d.Context(), d.params(format, args...))
	d.ok(err)
	if r.Failed != strings.HasPrefix(r.Text, "ERROR: ") {
		d.Errorf("failed is %v: %s", r.Failed, r.Text)
	}
	return r
}

// works is do for what must work.
func (d *desk) works(format string, args ...any) sandbox.EditResult {
	d.Helper()
	r := d.do(format, args...)
	if r.Failed {
		d.Fatal(r.Text)
	}
	return r
}

func TestViewFile(t *testing.T) {
	d := newDesk(t)
	f := d.put("f", "one\n\ttwo\nthree\nfour")
	head := "Here's the result of running `cat -n` on " + f + ":\n"
	for params, want := range map[string]string{
		`"x":0`:                head + "     1\tone\n     2\t\ttwo\n     3\tthree\n     4\tfour\n",
		`"view_range":[2,3]`:   head + "     2\t\ttwo\n     3\tthree\n",
		`"view_range":[3,-1]`:  head + "     3\tthree\n     4\tfour\n",
		`"view_range":[4,4]`:   head + "     4\tfour\n",
		`"view_range":[4,99]`:  head + "     4\tfour\n(The file ends at line 4.)\n",
		`"view_range":[]`:      head + "     1\tone\n     2\t\ttwo\n     3\tthree\n     4\tfour\n",
		`"view_range":[0,2]`:   "ERROR: Invalid view_range [0 2]: the file has 4 lines, so the first must be between 1 and 4.",
		`"view_range":[5,-1]`:  "ERROR: Invalid view_range [5 -1]: the file has 4 lines, so the first must be between 1 and 4.",
		`"view_range":[3,2]`:   "ERROR: Invalid view_range [3 2]: the last line must not be before the first, or -1 for the end of the file.",
		`"view_range":[1]`:     "ERROR: Invalid view_range [1]: it takes two line numbers, the first and the last, or -1 as the last for the end of the file.",
		`"view_range":[1,2,3]`: "ERROR: Invalid view_range [1 2 3]: it takes two line numbers, the first and the last, or -1 as the last for the end of the file.",
	} {
		if got := d.do(`{"command":"view","path":%q,%s}`, f, params).Text; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", params, got, want)
		}
	}
	if got := d.works(`{"command":"view","path":%q}`, d.put("empty", "")).Text; !strings.Contains(got, "empty") {
		t.Errorf("got %s", got)
	}
	if got := d.works(`{"command":"view","path":%q,"view_range":[1,-1]}`, d.put("crlf", "a\r\nb\r\n")).Text; !strings.HasSuffix(got, ":\n     1\ta\n     2\tb\n") {
		t.Errorf("got %q", got)
	}
	if got := d.works(`{"command":"view","path":"/proc/stat"}`).Text; !strings.Contains(got, "     1\t") {
		t.Errorf("a file that says it is empty: %s", got)
	}
}

func TestViewClips(t *testing.T) {
	d := newDesk(t)
	for name, text := range map[string]string{
		"lines": strings.Repeat("line of \u00fcberlang text\n", 5000), "one": strings.Repeat("\u00fc", 200_000), "late": strings.Repeat("x", 15_985) + "\nb\nc\n",
	} {
		got := d.works(`{"command":"view","path":%q}`, d.put(name, text)).Text
		_, body, _ := strings.Cut(got, "\n")
		body, note, ok := strings.Cut(body, "<response clipped>")
		if n := len([]rune(body)); !ok || n > maxShown || n < maxShown-100 || !strings.Contains(note, "view_range") {
			t.Errorf("%s: %d characters shown, %q", name, n, note)
		}
	}
	if got := d.works(`{"command":"view","path":%q}`, d.put("fits", strings.Repeat("x", 15_992))).Text; strings.Contains(got, "clipped") {
		t.Error("it fits and was clipped")
	}
}

func TestViewFolder(t *testing.T) {
	d := newDesk(t)
	for _, f := range []string{"b/deep/deeper", "b/file", "a", ".hidden/x", ".h", "b/.h", "odd\nname"} {
		d.put(f, "")
	}
	d.ok(os.Symlink("/etc", d.at("link")))
	want := fmt.Sprintf("Here's the files and directories up to 2 levels deep in %[1]s, excluding hidden items:\n%[1]s/\n%[1]s/a\n%[1]s/b/\n"+
		"%[1]s/b/deep/\n%[1]s/b/file\n%[1]s/link -> /etc\n%[2]q\n\n2 hidden files/directories in this directory are excluded. Use `ls -la %[1]s` to see them.\n", d.dir, d.at("odd\nname"))
	if got := d.works(`{"command":"view","path":%q}`, d.dir).Text; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := d.do(`{"command":"view","path":%q,"view_range":[1,2]}`, d.dir).Text; !strings.HasPrefix(got, "ERROR: The parameter view_range") {
		t.Errorf("got %s", got)
	}
	for i := range 1000 {
		d.put(fmt.Sprintf("many/%030d", i), "")
	}
	got := d.works(`{"command":"view","path":%q}`, d.at("many")).Text
	if !strings.Contains(got, "<response clipped>") || len(got) > maxShown+1000 {
		t.Errorf("%d characters shown", len(got))
	}
}

func TestMistakes(t *testing.T) {
	d := newDesk(t)
	f := d.put("f", "a\nb\na\n")
	bin := d.put("bin", "a\x00b")
	big := d.put("big", "")
	d.ok(os.Truncate(big, maxFile+1))
	pipe := d.at("pipe")
	d.ok(syscall.Mkfifo(pipe, 0o666))
	before := d.get("f")
	for params, want := range map[string]string{
		`"command":"delete","path":"/x"`:                                              `There is no command "delete"`,
		`"command":"view"`:                                                            "path is missing",
		`"command":"view","path":"src/main.go"`:                                       "Maybe you meant /workspace/src/main.go?",
		`"command":"view","path":"/a\u0000b"`:                                         "NUL",
		`"command":"view","path":"` + f + `/x"`:                                       "does not exist",
		`"command":"view","path":"` + d.at("no") + `"`:                                "does not exist",
		`"command":"view","path":"` + bin + `"`:                                       "binary",
		`"command":"view","path":"` + big + `"`:                                       "10.0 MB of at most 10 MB",
		`"command":"view","path":"` + pipe + `"`:                                      "not a regular file",
		`"command":"view","path":"` + d.state + `/undo/x"`:                            "belongs to the sandbox",
		`"command":"view","path":"` + d.state + `/results"`:                           "belongs to the sandbox",
		`"command":"create","path":"` + f + `","file_text":"x"`:                       "There is a file at",
		`"command":"create","path":"` + pipe + `","file_text":"x"`:                    "There is a file at",
		`"command":"create","path":"` + d.dir + `","file_text":"x"`:                   "is a folder",
		`"command":"create","path":"` + d.at("n") + `"`:                               "needs the parameter file_text",
		`"command":"create","path":"/n","file_text":"a\u0000"`:                        "NUL",
		`"command":"create","path":"` + f + `/n","file_text":"x"`:                     "does not exist",
		`"command":"str_replace","path":"` + f + `"`:                                  "needs the parameter old_str",
		`"command":"str_replace","path":"` + f + `","old_str":""`:                     "cannot be empty",
		`"command":"str_replace","path":"` + f + `","old_str":"z"`:                    "does not appear verbatim",
		`"command":"str_replace","path":"` + f + `","old_str":" a "`:                  "line 1 differs from it in blanks only",
		`"command":"str_replace","path":"` + f + `","old_str":"a"`:                    "on lines 1, 3.",
		`"command":"str_replace","path":"` + f + `","old_str":"b","new_str":"b"`:      "the same",
		`"command":"str_replace","path":"` + f + `","old_str":"b","new_str":"\u0000"`: "NUL",
		`"command":"str_replace","path":"` + d.dir + `","old_str":"b"`:                "only view works on folders",
		`"command":"str_replace","path":"` + bin + `","old_str":"b"`:                  "binary",
		`"command":"str_replace","path":"` + pipe + `","old_str":"b"`:                 "not a regular file",
		`"command":"insert","path":"` + f + `","insert_line":1`:                       "needs the parameter new_str",
		`"command":"insert","path":"` + f + `","new_str":"x"`:                         "needs the parameter insert_line",
		`"command":"insert","path":"` + f + `","new_str":"x","insert_line":4`:         "between 0 and 3",
		`"command":"insert","path":"` + f + `","new_str":"x","insert_line":-1`:        "between 0 and 3",
		`"command":"undo_edit","path":"` + f + `"`:                                    "no edit",
		`"command":"undo_edit","path":"` + d.at("no") + `"`:                           "no edit",
	} {
		if r := d.do("{%s}", params); !r.Failed || !strings.Contains(r.Text, want) || r.Old != "" || r.New != "" {
			t.Errorf("%s: got %q", params, r.Text)
		}
	}
	if d.get("f") != before {
		t.Errorf("the file is %q", d.get("f"))
	}
	if entries, err := os.ReadDir(d.dir); err != nil || len(entries) != 4 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestPrivateThroughLinks(t *testing.T) {
	d := newDesk(t)
	d.works(`{"id":"1","command":"create","path":%q,"file_text":"x"}`, d.at("f"))
	d.ok(os.Symlink(d.state, d.at("link")))
	d.ok(os.Symlink("link/results", d.at("link2")))
	for _, p := range []string{"link/results", "link2", "link2/boot", "link/undo/../results/boot"} {
		if r := d.do(`{"command":"view","path":%q}`, d.at(p)); !strings.Contains(r.Text, "belongs to the sandbox") {
			t.Errorf("%s: got %s", p, r.Text)
		}
	}
}

func TestCreate(t *testing.T) {
	d := newDesk(t)
	r := d.works(`{"command":"create","path":%q,"file_text":"h\u00e4\r\nx"}`, d.at("new/folder/f"))
	if d.get("new/folder/f") != "h\u00e4\r\nx" || r.New != "h\u00e4\r\nx" || r.Old != "" || r.PrevExist || !strings.HasPrefix(r.Text, "File created successfully at: /") {
		t.Errorf("got %+v", r)
	}
	r = d.works(`{"command":"create","path":%q,"file_text":"%s"}`, d.at("large"), strings.Repeat("x", maxKept+1))
	if !r.Large || r.New != "" {
		t.Error("a large file was kept in the result")
	}
	if r := d.do(`{"command":"create","path":%q,"file_text":"%s"}`, d.at("huge"), strings.Repeat("x", maxFile+1)); !strings.Contains(r.Text, "too large") {
		t.Errorf("got %.100s", r.Text)
	}
}

func TestReplace(t *testing.T) {
	d := newDesk(t)
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d.\n", i+1)
	}
	f := d.put("f", text.String())
	d.ok(os.Chmod(f, 0o755))
	r := d.works(`{"command":"str_replace","path":%q,"old_str":"line 10.\nline 11.","new_str":"ten\neleven\nmore"}`, f)
	want := "The file " + f + " has been edited. Here's the result of running `cat -n` on a snippet of " + f + ":\n" +
		"     6\tline 6.\n     7\tline 7.\n     8\tline 8.\n     9\tline 9.\n    10\tten\n    11\televen\n    12\tmore\n    13\tline 12.\n" +
		"    14\tline 13.\n    15\tline 14.\n    16\tline 15.\nCheck that"
	if !strings.HasPrefix(r.Text, want) {
		t.Errorf("got\n%s\nwant\n%s", r.Text, want)
	}
	after := strings.Replace(text.String(), "line 10.\nline 11.", "ten\neleven\nmore", 1)
	if d.get("f") != after || r.Old != text.String() || r.New != after || !r.PrevExist {
		t.Errorf("got %q, %+v", d.get("f"), r)
	}
	if info, err := os.Stat(f); err != nil || info.Mode() != 0o755 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	for i := range 20 { // to nothing, from the end
		d.works(`{"command":"str_replace","path":%q,"old_str":%q}`, f, strings.SplitAfter(after, "\n")[20-i])
	}
	if d.get("f") != "" && countLines(d.get("f")) != 1 {
		t.Errorf("left: %q", d.get("f"))
	}
	d.put("overlap", "aaa")
	if r := d.do(`{"command":"str_replace","path":%q,"old_str":"aa"}`, d.at("overlap")); !r.Failed {
		t.Error("two places that overlap are one")
	}
	d.put("many", strings.Repeat("x\n", 100))
	if r := d.do(`{"command":"str_replace","path":%q,"old_str":"x"}`, d.at("many")); !strings.Contains(r.Text, "18, 19, 20, and more") {
		t.Errorf("got %s", r.Text)
	}
	d.put("newlines", "a\n\n\nb\n\n\n")
	if r := d.do(`{"command":"str_replace","path":%q,"old_str":"\n\n"}`, d.at("newlines")); !strings.Contains(r.Text, "on lines 1, 2, 4, 5.") {
		t.Errorf("got %s", r.Text)
	}
}

// A link is not followed to a file that is changed: the path that was approved says nothing about it. The workspace itself
// may be behind a link.
func TestChangesThroughLinks(t *testing.T) {
	d := newDesk(t)
	d.put("real", "old")
	d.ok(os.MkdirAll(d.at("sub/hooks"), 0o755))
	d.ok(os.Symlink(d.at("real"), d.at("link")))
	d.ok(os.Symlink("sub/hooks", d.at("folder")))
	for _, c := range []string{
		`{"command":"str_replace","path":"%s/link","old_str":"old","new_str":"new"}`,
		`{"command":"insert","path":"%s/link","insert_line":0,"new_str":"new"}`,
		`{"command":"undo_edit","path":"%s/link"}`,
		`{"command":"create","path":"%s/folder/pre-commit","file_text":"new"}`,
		`{"command":"create","path":"%s/folder/../pre-commit","file_text":"new"}`,
	} {
		if r := d.do(c, d.dir); !r.Failed || !strings.Contains(r.Text, "behind a link and means "+d.dir+"/") {
			t.Errorf("%s: %s", c, r.Text)
		}
	}
	if made, _ := os.ReadDir(d.at("sub/hooks")); len(made) > 0 || d.get("real") != "old" {
		t.Errorf("%v, real is %q", made, d.get("real"))
	}
	if r := d.do(`{"command":"view","path":%q}`, d.at("link")); r.Failed || !strings.Contains(r.Text, "old") {
		t.Errorf("viewed: %s", r.Text)
	}
	elsewhere := filepath.Join(t.TempDir(), "workspace")
	d.ok(os.Symlink(d.dir, elsewhere))
	d.config.Workspace = elsewhere
	d.works(`{"command":"str_replace","path":%q,"old_str":"old","new_str":"new"}`, elsewhere+"/real")
	if d.get("real") != "new" {
		t.Errorf("real is %q", d.get("real"))
	}
}

func TestInsert(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct {
		text string
		line int
		add  string
		want string
	}{
		{"a\nb\n", 0, "x", "x\na\nb\n"}, {"a\nb\n", 1, "x\n", "a\nx\nb\n"}, {"a\nb\n", 2, "x\ny", "a\nb\nx\ny\n"}, {"a\nb", 2, "x", "a\nb\nx"},
		{"a\nb", 2, "x\n", "a\nb\nx\n"}, {"a\nb", 1, "x", "a\nx\nb"}, {"", 0, "x", "x\n"}, {"a\n", 1, "", "a\n\n"},
		{"a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n"}, {"a\r\nb", 2, "x", "a\r\nb\r\nx"}, {"\n\n", 1, "x", "\nx\n\n"},
	} {
		d.put("f", c.text)
		r := d.works(`{"command":"insert","path":%q,"insert_line":%d,"new_str":%q}`, d.at("f"), c.line, c.add)
		if got := d.get("f"); got != c.want || r.New != c.want || r.Old != c.text {
			t.Errorf("%q, %d, %q: got %q, want %q", c.text, c.line, c.add, got, c.want)
		}
		if !strings.Contains(r.Text, fmt.Sprintf("%6d\t%s\n", c.line+1, strings.Split(c.add, "\n")[0])) {
			t.Errorf("shown: %s", r.Text)
		}
	}
}

func TestEncodingAndLineEndsStay(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ before, old, with, after string }{
		{"a\r\nb\r\nc\r\n", `a\nb`, `x\ny\nz`, "x\r\ny\r\nz\r\nc\r\n"},
		{"a\r\nb\r\nc\r\n", `a\r\nb\r\n`, `x\r\n`, "x\r\nc\r\n"},
		{"a\r\nb\nc\n", `b\nc`, `x\ny`, "a\r\nx\ny\n"}, // mixed: what is not touched stays
		{"a\nb\r\nc\r\nd", `c\nd`, `x\ny`, "a\nb\r\nx\r\ny"},
		{"a\nb", `\nb`, `\r\nc`, "a\r\nc"},
		{"a\r\n\r\nb", `\n\nb`, `\nb`, "a\r\nb"},
		{"\xEF\xBB\xBFa", "a", `\u00fc`, "\xEF\xBB\xBF\u00fc"},
		{"\xFF\xFEa\x00\r\x00\n\x00b\x00", `a\n`, `\u20ac\n`, "\xFF\xFE\xac\x20\r\x00\n\x00b\x00"},
		{"\xFE\xFF\x00a\x00b", "b", "c", "\xFE\xFF\x00a\x00c"},
		{"caf\xe9 a", " a", `\u00fc`, "caf\xe9\xfc"},
		{"caf\xe9", `\u00e9`, "e", "cafe"},
	} {
		f := d.put("f", c.before)
		d.works(`{"command":"str_replace","path":%q,"old_str":"%s","new_str":"%s"}`, f, c.old, c.with)
		if got := d.get("f"); got != c.after {
			t.Errorf("%q, %s, %s: got %q, want %q", c.before, c.old, c.with, got, c.after)
		}
		d.works(`{"command":"undo_edit","path":%q}`, f)
		if got := d.get("f"); got != c.before {
			t.Errorf("undone to %q, want %q", got, c.before)
		}
	}
	f := d.put("f", "caf\xe9 a")
	for with, want := range map[string]string{`\u20ac`: "Latin-1", `\u0001`: "not be readable"} {
		if r := d.do(`{"command":"str_replace","path":%q,"old_str":" a","new_str":"%s"}`, f, with); !strings.Contains(r.Text, want) || d.get("f") != "caf\xe9 a" {
			t.Errorf("got %s", r.Text)
		}
	}
}

func TestUndo(t *testing.T) {
	d := newDesk(t)
	f := d.put("f", "0")
	for i := range 15 {
		d.works(`{"command":"str_replace","path":%q,"old_str":"%d","new_str":"%d"}`, f, i, i+1)
		d.works(`{"command":"create","path":%q,"file_text":"%d"}`, d.at(fmt.Sprint("other", i)), i)
	}
	d.restart()
	for i := range versions {
		r := d.works(`{"command":"undo_edit","path":%q}`, f)
		want := fmt.Sprint(14 - i)
		if d.get("f") != want || r.New != want || r.Old != fmt.Sprint(15-i) || !r.PrevExist || !strings.HasPrefix(r.Text, "Last edit to "+f+" undone") {
			t.Errorf("got %q, %+v", d.get("f"), r)
		}
	}
	if r := d.do(`{"command":"undo_edit","path":%q}`, f); !strings.Contains(r.Text, "no edit") {
		t.Errorf("got %s", r.Text)
	}
	// A file that was deleted comes back; one that was made anew has no past.
	d.works(`{"command":"insert","path":%q,"insert_line":0,"new_str":"x"}`, f)
	d.ok(os.Remove(f))
	if r := d.works(`{"command":"undo_edit","path":%q}`, f); d.get("f") != "5" || r.PrevExist || r.New != "5" {
		t.Errorf("got %q, %+v", d.get("f"), r)
	}
	d.works(`{"command":"insert","path":%q,"insert_line":0,"new_str":"x"}`, f)
	d.ok(os.Remove(f))
	d.works(`{"command":"create","path":%q,"file_text":"new"}`, f)
	if r := d.do(`{"command":"undo_edit","path":%q}`, f); !r.Failed || d.get("f") != "new" {
		t.Errorf("got %s", r.Text)
	}
	// A version that was kept by a runner that died before it wrote the file.
	d.works(`{"command":"str_replace","path":%q,"old_str":"new","new_str":"newer"}`, f)
	if _, err := d.history.push(f, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	if d.works(`{"command":"undo_edit","path":%q}`, f); d.get("f") != "new" {
		t.Errorf("got %q", d.get("f"))
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := &history{dir: t.TempDir()}
	large := make([]byte, 9<<20)
	for i := range 35 {
		if _, err := h.push(fmt.Sprint(i/5), large); err != nil {
			t.Fatal(err)
		}
	}
	if h.total > maxHistory || h.total < maxHistory-int64(len(large)) {
		t.Errorf("%d bytes", h.total)
	}
	if _, _, err := h.last("0", nil, true); err == nil {
		t.Error("the oldest is still there")
	}
	if b, _, err := h.last("6", nil, true); err != nil || len(b) != len(large) {
		t.Error(err)
	}
}

func TestOnce(t *testing.T) {
	d := newDesk(t)
	f := d.put("f", "a\n")
	add := `{"id":"1","command":"insert","path":%q,"insert_line":0,"new_str":"x"}`
	first := d.works(add, f)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if r, err := d.Edit(t.Context(), d.params(add, f)); err != nil || r != first {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	wg.Wait()
	d.restart()
	if again := d.works(strings.Replace(add, `{`, `{"again":true,`, 1), f); again != first || d.get("f") != "x\na\n" {
		t.Errorf("got %+v, %q", again, d.get("f"))
	}
	d.ok(d.config.Results.Ack("1"))
	if d.works(add, f); d.get("f") != "x\nx\na\n" {
		t.Errorf("what was forgotten is new: %q", d.get("f"))
	}
	// A mistake is remembered as well.
	no := d.do(`{"id":"2","command":"create","path":%q,"file_text":"x"}`, f)
	d.ok(os.Remove(f))
	if again := d.do(`{"id":"2","command":"create","path":%q,"file_text":"x"}`, f); again != no || !no.Failed {
		t.Errorf("got %+v", again)
	}
	// Begun by a runner that died.
	if _, _, _, err := d.config.Results.Begin("3", false); err != nil {
		t.Fatal(err)
	}
	d.restart()
	if r := d.do(`{"id":"3","command":"create","path":%q,"file_text":"x"}`, f); !r.Lost || !r.Failed {
		t.Errorf("got %+v", r)
	}
	if _, err := os.Lstat(f); err == nil {
		t.Error("what was lost was done again")
	}
}

// Edits of one file by many see each other, and none is lost.
func TestEditsWaitForEachOther(t *testing.T) {
	d := newDesk(t)
	f := d.put("f", "")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r, err := d.Edit(t.Context(), d.params(`{"id":"%d","command":"insert","path":%q,"insert_line":0,"new_str":"line"}`, i, f))
			if err != nil || r.Failed {
				t.Errorf("got %v, %v", r, err)
			}
		})
	}
	wg.Wait()
	if got := d.get("f"); got != strings.Repeat("line\n", 20) {
		t.Errorf("got %q", got)
	}
	if len(d.paths) != 0 {
		t.Errorf("%d locks were kept", len(d.paths))
	}
}
