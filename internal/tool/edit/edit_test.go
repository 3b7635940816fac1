package edit_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deckhand/internal/tool"
	"deckhand/internal/tool/edit"
	"deckhand/internal/tool/tooltest"
	"deckhand/internal/v0/form"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSpec(t *testing.T) {
	view := []string{`{"command":"view","path":"/a"}`, `{"command":"view","path":"/a","view_range":[1,-1],"security_risk":"LOW"}`}
	change := []string{
		`{"command":"create","path":"/a","file_text":""}`, `{"command":"str_replace","path":"/a","old_str":"a","new_str":"b"}`,
		`{"command":"insert","path":"/a","insert_line":0,"new_str":"b"}`, `{"command":"undo_edit","path":"/a"}`,
	}
	wrong := []string{`{"command":"view"}`, `{"path":"/a"}`, `{"command":"delete","path":"/a"}`, `{"command":"view","path":"/a","view_range":"1"}`}
	tooltest.Spec(t, edit.Tool{}.Spec(), append(change, view...), wrong)
	tooltest.Spec(t, edit.Viewer{}.Spec(), view, append(change, wrong...))
	if s := (edit.Tool{}).Spec(); s.ReadOnly || s.Harmless || s.Name != "str_replace_editor" {
		t.Errorf("got %+v", s)
	}
	if s := (edit.Viewer{}).Spec(); !s.ReadOnly || s.Name != "str_replace_editor" || strings.Contains(s.Description, "undo") {
		t.Errorf("got %+v", s)
	}
}

// details are what clients read.
func details(t *testing.T, r tool.Result) form.EditDetails {
	t.Helper()
	var d form.EditDetails
	if err := json.Unmarshal(r.Details, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func is(p *string, want string) bool { return p != nil && *p == want }

func TestEditing(t *testing.T) {
	b := tooltest.New(t)
	r := b.Works(edit.Tool{}, `{"command":"create","path":"ROOT/a/f.txt","file_text":"one\ntwo\n"}`)
	d := details(t, r)
	if b.Get("a/f.txt") != "one\ntwo\n" || d.Path != b.At("a/f.txt") || *d.PrevExist || d.OldContent != nil || !is(d.NewContent, "one\ntwo\n") ||
		!strings.Contains(*d.Diff, "--- /dev/null\n") || !strings.Contains(*d.Diff, "+one\n+two\n") {
		t.Errorf("got %s, %s", r.Text, r.Details)
	}
	r = b.Works(edit.Tool{}, `{"command":"str_replace","path":"ROOT/a/f.txt","old_str":"two","new_str":"2","security_risk":"LOW"}`)
	d = details(t, r)
	if b.Get("a/f.txt") != "one\n2\n" || !*d.PrevExist || !is(d.OldContent, "one\ntwo\n") || !is(d.NewContent, "one\n2\n") ||
		!strings.Contains(*d.Diff, "-two\n+2\n") || !strings.Contains(r.Text, "2\t2") {
		t.Errorf("got %s, %s", r.Text, r.Details)
	}
	r = b.Works(edit.Tool{}, `{"command":"insert","path":"ROOT/a/f.txt","insert_line":0,"new_str":"zero"}`)
	if d = details(t, r); !is(d.NewContent, "zero\none\n2\n") || b.Get("a/f.txt") != *d.NewContent {
		t.Errorf("got %s", r.Details)
	}
	b.Works(edit.Tool{}, `{"command":"undo_edit","path":"ROOT/a/f.txt"}`)
	if b.Get("a/f.txt") != "one\n2\n" {
		t.Errorf("got %q", b.Get("a/f.txt"))
	}
	for _, viewer := range []tool.Tool{edit.Tool{}, edit.Viewer{}} {
		r = b.Works(viewer, `{"command":"view","path":"ROOT/a/f.txt","view_range":[2,-1]}`)
		if d = details(t, r); strings.Contains(r.Text, "one") || !strings.Contains(r.Text, "2\t2") || d.Path != b.At("a/f.txt") || d.NewContent != nil || d.PrevExist != nil {
			t.Errorf("got %s, %s", r.Text, r.Details)
		}
		if r = b.Works(viewer, `{"command":"view","path":"ROOT"}`); !strings.Contains(r.Text, b.At("a/f.txt")) {
			t.Errorf("got %s", r.Text)
		}
	}
}

func TestMistakes(t *testing.T) {
	b := tooltest.New(t)
	b.Put("f", "a\na\n")
	b.Put("binary", "\x00\x01\x02")
	for args, want := range map[string]string{
		`nonsense`: "not valid JSON",
		`{"command":"str_replace","path":"ROOT/f","old_str":7}`:             "old_str must be a string",
		`{"command":"insert","path":"ROOT/f","insert_line":"1"}`:            "insert_line must be a whole number",
		`{"command":"str_replace","path":"ROOT/f","old_str":"a"}`:           "lines 1, 2",
		`{"command":"str_replace","path":"ROOT/f","old_str":"b"}`:           "does not appear",
		`{"command":"create","path":"ROOT/f","file_text":"x"}`:              "already",
		`{"command":"view","path":"f"}`:                                     "not absolute",
		`{"command":"view","path":"f.png"}`:                                 "not absolute",
		`{"command":"view","path":"ROOT/gone.png"}`:                         "does not exist",
		`{"command":"view","path":"ROOT/binary"}`:                           "binary",
		`{"command":"view","path":"ROOT/f","view_range":[9,1]}`:             "view_range",
		`{"command":"erase","path":"ROOT/f"}`:                               "no command",
		`{"path":"ROOT/f"}`:                                                 "no command",
		`{"command":"undo_edit","path":"ROOT/f"}`:                           "no edit",
		`{"command":"str_replace","path":"ROOT","old_str":"a"}`:             "folder",
		`{"command":"insert","path":"ROOT/f","insert_line":9,"new_str":""}`: "insert_line",
	} {
		if r := b.Fails(edit.Tool{}, args, want); !strings.HasPrefix(r.Text, "ERROR: ") {
			t.Errorf("%s: got %s", args, r.Text)
		}
	}
	for _, command := range []string{"create", "str_replace", "insert", "undo_edit"} {
		b.Fails(edit.Viewer{}, `{"command":"`+command+`","path":"ROOT/f","file_text":"x","old_str":"a\na","new_str":"x","insert_line":0}`, "only command is view")
	}
	if b.Get("f") != "a\na\n" {
		t.Errorf("a mistake changed the file: %q", b.Get("f"))
	}
}

// A call that is made again, with or without a runner that died in between, is
// the first one.
func TestOnce(t *testing.T) {
	b := tooltest.New(t)
	b.Put("f", "a\n")
	// A sandbox that is new cannot know what was done in the one before it.
	unheard := b.Call(`{"command":"insert","path":"ROOT/f","insert_line":0,"new_str":"y"}`)
	unheard.Again = true
	if r := b.Run(edit.Tool{}, unheard); !r.Unknown || b.Get("f") != "a\n" {
		t.Errorf("got %+v, %q", r, b.Get("f"))
	}
	call := b.Call(`{"command":"insert","path":"ROOT/f","insert_line":0,"new_str":"x"}`)
	first := b.Run(edit.Tool{}, call)
	call.Again = true
	again := b.Run(edit.Tool{}, call)
	b.Restart()
	after := b.Run(edit.Tool{}, call)
	if b.Get("f") != "x\na\n" || first.Text != again.Text || first.Text != after.Text || !bytes.Equal(first.Details, after.Details) {
		t.Errorf("got %q, %+v, %+v, %+v", b.Get("f"), first, again, after)
	}
	// A view that is made again sees the file as it is.
	view := b.Call(`{"command":"view","path":"ROOT/f"}`)
	b.Run(edit.Tool{}, view)
	b.Put("f", "later\n")
	view.Again = true
	if r := b.Run(edit.Tool{}, view); !strings.Contains(r.Text, "later") {
		t.Errorf("got %s", r.Text)
	}
}

func TestLargeAndOddFiles(t *testing.T) {
	b := tooltest.New(t)
	line := strings.Repeat("x", 99) + "\n"
	b.Put("large", "first\n"+strings.Repeat(line, 4000))
	r := b.Works(edit.Tool{}, `{"command":"str_replace","path":"ROOT/large","old_str":"first","new_str":"1st"}`)
	if d := details(t, r); d.OldContent != nil || d.NewContent != nil || d.Diff == nil || !strings.Contains(*d.Diff, "-first\n+1st\n") || !*d.PrevExist {
		t.Errorf("got %d bytes of details: %.300s", len(r.Details), r.Details)
	}
	b.Put("huge", "first\n"+strings.Repeat(line, 20_000))
	r = b.Works(edit.Tool{}, `{"command":"str_replace","path":"ROOT/huge","old_str":"first","new_str":"1st"}`)
	if d := details(t, r); d.NewContent != nil || d.Diff != nil || len(r.Details) > 1000 || !strings.HasPrefix(b.Get("huge"), "1st\n") {
		t.Errorf("got %d bytes of details: %.300s", len(r.Details), r.Details)
	}
	text, err := json.Marshal(strings.Repeat(line, 3000))
	b.OK(err)
	r = b.Works(edit.Tool{}, fmt.Sprintf(`{"command":"create","path":"ROOT/new","file_text":%s}`, text))
	if d := details(t, r); d.NewContent != nil || d.Diff != nil || len(r.Details) > 1000 {
		t.Errorf("a difference as large as the file is kept: %d bytes", len(r.Details))
	}
	if r = b.Works(edit.Tool{}, `{"command":"view","path":"ROOT/huge"}`); len(r.Text) > 20_000 || !strings.Contains(r.Text, "clipped") {
		t.Errorf("got %d bytes of text", len(r.Text))
	}
	b.Put("latin", "caf\xe9 a\n")
	b.Works(edit.Tool{}, `{"command":"str_replace","path":"ROOT/latin","old_str":"café a","new_str":"né"}`)
	if got := b.Get("latin"); got != "n\xe9\n" {
		t.Errorf("got %q", got)
	}
}

func TestImages(t *testing.T) {
	b := tooltest.New(t)
	picture := image.NewPaletted(image.Rect(0, 0, 3, 2), color.Palette{color.Black})
	var asPNG, asJPEG, asGIF bytes.Buffer
	b.OK(png.Encode(&asPNG, picture))
	b.OK(jpeg.Encode(&asJPEG, picture, nil))
	b.OK(gif.Encode(&asGIF, picture, nil))
	webp := "RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00"
	for name, file := range map[string]struct{ data, kind string }{
		"a.png": {asPNG.String(), "image/png"}, "b.JPG": {asJPEG.String(), "image/jpeg"}, "c.gif": {asGIF.String(), "image/gif"}, "d.webp": {webp, "image/webp"},
		"e.png": {asJPEG.String(), "image/jpeg"},
	} {
		b.Put(name, file.data)
		for _, viewer := range []tool.Tool{edit.Tool{}, edit.Viewer{}} {
			r := b.Works(viewer, `{"command":"view","path":"ROOT/`+name+`"}`)
			want := "data:" + file.kind + ";base64," + base64.StdEncoding.EncodeToString([]byte(file.data))
			if len(r.Images) != 1 || r.Images[0] != want || !strings.Contains(r.Text, file.kind) || details(t, r).Path != b.At(name) {
				t.Errorf("%s: got %s, %.80s, %s", name, r.Text, r.Images, r.Details)
			}
		}
	}
	b.OK(os.Symlink("a.png", b.At("link.png")))
	if r := b.Works(edit.Tool{}, `{"command":"view","path":"ROOT/link.png"}`); len(r.Images) != 1 {
		t.Errorf("got %s", r.Text)
	}
	b.Put("text.png", "not an image\n")
	if r := b.Works(edit.Tool{}, `{"command":"view","path":"ROOT/text.png"}`); len(r.Images) > 0 || !strings.Contains(r.Text, "not an image") {
		t.Errorf("got %+v", r)
	}
	b.OK(os.Mkdir(b.At("folder.png"), 0o755))
	b.Works(edit.Tool{}, `{"command":"view","path":"ROOT/folder.png"}`)
	b.Put("large.png", asPNG.String()+strings.Repeat("\x00", 5<<20))
	if r := b.Fails(edit.Tool{}, `{"command":"view","path":"ROOT/large.png"}`, "too large"); len(r.Images) > 0 {
		t.Error("a large image is shown")
	}
}
