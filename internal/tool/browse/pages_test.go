package browse_test

import (
	"bytes"
	"encoding/base64"
	"image/jpeg"
	"image/png"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/sandbox"
)

// pageTests share a session. Each begins with the page that it wants.
var pageTests = []struct {
	name string
	run  func(t *testing.T, r *rig)
}{
	{"Navigate", navigate},
	{"History", history},
	{"Read", read},
	{"Mouse", mouse},
	{"Form", fillForm},
	{"Keys", keys},
	{"Mistakes", mistakes},
	{"Tabs", tabs},
	{"Dialogs", dialogs},
	{"Download", download},
	{"Upload", upload},
	{"Drag", drag},
	{"Frames", frames},
	{"ErrorPages", errorPages},
	{"Screenshot", screenshot},
	{"Large", large},
}

func navigate(t *testing.T, r *rig) {
	res, d := r.run(t, "goto('SITE/')")
	has(t, res.Text, "[Current URL: "+r.site+"/]", "[Title: Home]", "heading 'Welcome'", "StaticText 'home'", "button 'Off', disabled")
	// How long a page is depends on the fonts of the machine.
	if !regexp.MustCompile(`Out of sight: 0 pixels above, [1-9]\d{3} below`).MatchString(res.Text) {
		t.Errorf("the text does not say what is out of sight:\n%s", res.Text)
	}
	if res.Failed || d.Error || d.URL != r.site+"/" || d.LastBrowserAction != "goto('"+r.site+"/')" || d.LastBrowserActionError != "" {
		t.Errorf("%+v", d)
	}
	if len(d.OpenPagesURLs) != 1 || d.OpenPagesURLs[0] != d.URL || d.ActivePageIndex != 0 {
		t.Errorf("open pages: %q, %d", d.OpenPagesURLs, d.ActivePageIndex)
	}
	if len(res.Images) != 1 || res.Images[0] != d.Screenshot {
		t.Fatalf("%d pictures", len(res.Images))
	}
	data, ok := strings.CutPrefix(d.Screenshot, "data:image/jpeg;base64,")
	b, err := base64.StdEncoding.DecodeString(data)
	if !ok || err != nil {
		t.Fatal("the picture is no data URL", err)
	}
	picture, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil || picture.Bounds().Dx() != 1280 || picture.Bounds().Dy() != 720 {
		t.Errorf("the picture has the size %v, %v", picture.Bounds(), err)
	}
	// An element keeps its number.
	link := bid(t, res.Text, "link 'The form'")
	if again := bid(t, r.ok(t, "noop(1)"), "link 'The form'"); again != link {
		t.Errorf("the link was %s and is %s", link, again)
	}
	has(t, r.ok(t, "click('"+link+"')"), "form.html]", "[Title: Form]")
	has(t, r.ok(t, "goto('"+strings.TrimPrefix(r.site, "http://")+"/')"), "[Title: Home]")
}

func history(t *testing.T, r *rig) {
	r.ok(t, "new_tab()\ngoto('SITE/')\ngoto('SITE/form.html')")
	has(t, r.ok(t, "go_back()"), "[Title: Home]")
	has(t, r.ok(t, "go_forward()"), "[Title: Form]")
	has(t, r.ok(t, "reload()"), "[Title: Form]")
	if res, _ := r.run(t, "go_forward()"); !res.Failed {
		t.Error("there is something after the last page")
	}
	r.ok(t, "tab_close()")
}

func read(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/')\nget_text()")
	has(t, text, "This is the home page.", "The end")
	text = r.ok(t, "get_text('"+bid(t, text, "heading 'Welcome'")+"')")
	has(t, text, "--- Page text ---\nWelcome\n--- End ---")
	has(t, r.ok(t, "scroll(0, 500)"), "500 pixels above")
}

func mouse(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/')")
	has(t, r.ok(t, "click('"+bid(t, text, "generic, clickable")+"')"), "log: div'")
	button := bid(t, text, "button 'Mouse'")
	has(t, r.ok(t, "hover('"+button+"')"), "log: div over'")
	text = r.ok(t, "dblclick("+button+")\nclick('"+button+"', button='right')")
	has(t, text, "log: div over double menu'")
}

func fillForm(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/form.html')")
	name, color := bid(t, text, "textbox 'Name'"), bid(t, text, "listbox 'Color'")
	text = r.ok(t, "fill('"+name+"', 'Ada \"L\" <b>')\nselect_option('"+color+"', ['Blue', 'g'])\n"+
		"fill('"+bid(t, text, "Date 'Day'")+"', '2024-02-29')\nclick('"+bid(t, text, "checkbox 'Agree'")+"')\n"+
		"fill('"+bid(t, text, "textbox 'Secret'")+"', 'hunter2')\nfill('"+bid(t, text, "textbox 'Notes'")+`', 'one\ntwo')`)
	has(t, text, `value='Ada "L" <b>'`, "option 'Blue', selected", "option 'Green', selected", "checkbox 'Agree', clickable, checked", "value='one two'")
	if strings.Contains(text, "hunter2") {
		t.Error("a password can be read")
	}
	if text := r.ok(t, "clear('"+name+"')"); strings.Contains(text, "Ada") {
		t.Errorf("it was not cleared:\n%s", text)
	}
	text = r.ok(t, "fill('"+name+"', 'Ada')\npress('"+name+"', 'Enter')")
	has(t, text, "[Title: Answer]", "heading 'Hello Ada, you like b+g'")
}

func keys(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/form.html')")
	name := bid(t, text, "textbox 'Name'")
	res, d := r.run(t, "focus('"+name+"')")
	has(t, res.Text, "[Focused element: "+name+"]")
	if d.FocusedElement != name {
		t.Errorf("%q has the keyboard", d.FocusedElement)
	}
	has(t, r.ok(t, "press('"+name+"', 'Control+a')\npress('"+name+"', 'x')\npress('"+name+"', 'Shift+Y')"), "value='xY'")
	has(t, r.ok(t, "press('"+name+"', 'Backspace')"), "value='x'")
}

func mistakes(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/form.html')")
	name, color := bid(t, text, "textbox 'Name'"), bid(t, text, "listbox 'Color'")
	for code, why := range map[string]string{
		"click('999999')":            "no element [999999]",
		"click('home')":              "not an element's number",
		"fill('" + color + "', 'x')": "use select_option",
		"fill('" + bid(t, text, "Date 'Day'") + "', 'soon')":         "does not fit",
		"fill('" + bid(t, text, "checkbox 'Agree'") + "', 'x')":      "use click",
		"select_option('" + color + "', 'Mauve')":                    "there is no option",
		"select_option('" + name + "', 'Mauve')":                     "not a list",
		"press('" + name + "', 'Hyperdrive')":                        "no key",
		"click('" + name + "', button='fourth')":                     "no button",
		"upload_file('" + bid(t, text, "button 'File'") + "', 'no')": "no",
		"goto('javascript:alert(1)')":                                "begin with",
		"tab_focus(7)":                                               "no such tab",
		"noop(1e9)":                                                  "milliseconds",
		"handle_dialog('maybe')":                                     "'accept' or 'dismiss'",
	} {
		res, d := r.run(t, code+"\ngoto('SITE/')")
		if !res.Failed || !d.Error || !strings.Contains(d.LastBrowserActionError, why) {
			t.Errorf("%s: %v, %q", code, res.Failed, d.LastBrowserActionError)
		}
		has(t, res.Text, "[Error: ", "(1 more were not done)", "[Title: Form]")
	}
}

func tabs(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/')")
	res, d := r.run(t, "click('"+bid(t, text, "link 'In a new tab'")+"')")
	has(t, res.Text, "opened a new tab", "[Title: Answer]", "Hello popup", "[Tab 0: "+r.site+"/ Home]", "[Tab 1 (active): ")
	if d.ActivePageIndex != 1 || len(d.OpenPagesURLs) != 2 || d.OpenPagesURLs[0] != r.site+"/" {
		t.Errorf("%d of %q", d.ActivePageIndex, d.OpenPagesURLs)
	}
	has(t, r.ok(t, "tab_focus(0)"), "[Title: Home]")
	has(t, r.ok(t, "tab_focus(1)\ntab_close()"), "[Title: Home]")
	has(t, r.ok(t, "tab_close()"), "[Current URL: about:blank]") // there is always one
}

func dialogs(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/dialogs.html')")
	alert, confirm, prompt := bid(t, text, "button 'Alert'"), bid(t, text, "button 'Confirm'"), bid(t, text, "button 'Prompt'")
	has(t, r.ok(t, "click('"+alert+"')"), `"Mind the gap"`, "'alerted'")
	has(t, r.ok(t, "click('"+confirm+"')"), `"Really?". It was dismissed.`, "'confirmed false'")
	has(t, r.ok(t, "handle_dialog('accept')\nclick('"+confirm+"')"), "It was accepted.", "'confirmed true'")
	has(t, r.ok(t, "handle_dialog('accept', 'you')\nclick('"+prompt+"')"), "'prompted you'")
	has(t, r.ok(t, "click('"+prompt+"')"), "'prompted null'") // the last answer was for its call
}

func download(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/')")
	where := sandbox.Workspace + "/downloads/report.csv"
	has(t, r.ok(t, "click('"+bid(t, text, "link 'The report'")+"')"), "The file "+where+" was downloaded (8 bytes).", "[Title: Home]")
	if got := r.sh(t, "cat "+where); got != "a,b\n1,2" {
		t.Errorf("it is %q", got)
	}
	has(t, r.ok(t, "goto('SITE/file')"), "report.csv was downloaded")
}

func upload(t *testing.T, r *rig) {
	r.sh(t, "echo content >up.txt")
	text := r.ok(t, "goto('SITE/form.html')")
	field := bid(t, text, "button 'File'")
	text = r.ok(t, "upload_file('"+field+"', 'up.txt')")
	has(t, text, "up.txt")
	has(t, r.ok(t, "click('"+bid(t, text, "button 'Upload'")+"')"), "received up.txt: content")
}

func drag(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/drag.html')")
	has(t, r.ok(t, "drag_and_drop('"+bid(t, text, "button 'card'")+"', '"+bid(t, text, "button 'basket'")+"')"), "'dropped card'")
	has(t, r.ok(t, "drag_and_drop('"+bid(t, text, "button 'handle'")+"', '"+bid(t, text, "button 'end'")+"')"), "'moved'")
}

func frames(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/other')")
	has(t, text, "Iframe 'inner'", "RootWebArea 'Inner'")
	has(t, r.ok(t, "click('"+bid(t, text, "button 'Inside'")+"')"), "button 'was clicked'")
}

func errorPages(t *testing.T, r *rig) {
	res, _ := r.run(t, "goto('SITE/none')")
	if res.Failed {
		t.Error("a page that says 404 is a page")
	}
	has(t, res.Text, "[HTTP status: 404]", "404 page not found")
	res, d := r.run(t, "goto('http://127.0.0.1:1/')")
	if !res.Failed || !d.Error {
		t.Error("nothing listens there")
	}
	has(t, res.Text, "127.0.0.1:1/ could not be opened: net::ERR_")
	res, _ = r.run(t, "goto('file:///etc/none')")
	has(t, res.Text, "net::ERR_FILE_NOT_FOUND")
}

func screenshot(t *testing.T, r *rig) {
	_, d := r.run(t, "goto('SITE/')\nscreenshot()\nscreenshot('shots/home.png')")
	if d.ScreenshotPath == nil || *d.ScreenshotPath != sandbox.Workspace+"/shots/home.png" {
		t.Fatalf("%+v", d.ScreenshotPath)
	}
	var b bytes.Buffer
	if _, err := r.box.Read(t.Context(), sandbox.ReadParams{PathParams: sandbox.PathParams{Path: []byte("shots/home.png")}}, &b); err != nil {
		t.Fatal(err)
	}
	if p, err := png.Decode(&b); err != nil || p.Bounds().Dx() != 1280 {
		t.Errorf("%v", err)
	}
	if n := r.sh(t, "ls .browser_screenshots | wc -l"); n != "1" {
		t.Errorf("%s pictures without a name", n)
	}
}

func large(t *testing.T, r *rig) {
	text := r.ok(t, "goto('SITE/large')")
	has(t, text, "first words", "last words", "characters are left out")
	if n := utf8.RuneCountInString(text); n > 30_000 {
		t.Errorf("%d characters", n)
	}
	has(t, r.ok(t, "goto('SITE/huge')"), "too large to list its elements", "first words")
}
