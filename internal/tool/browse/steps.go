package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"
	"time"

	"deckhand/internal/clip"
	"deckhand/internal/sandbox"
	"deckhand/internal/tool/browse/page"
	"deckhand/internal/tool/browse/script"
)

// shots is where pictures go that have no name, below the workspace.
const shots = ".browser_screenshots"

const (
	// maxWait is how long a noop may be.
	maxWait = 25 * time.Second
	// fetchTime is how long downloads are waited for.
	fetchTime = 10 * time.Second
)

// step does one step and waits until the page has settled.
func (r *round) step(ctx context.Context, s script.Step) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	t, err := r.browser.Active(ctx)
	if err != nil {
		return err
	}
	if err := r.do(ctx, t, s); err != nil {
		return err
	}
	if t, err = r.browser.Active(ctx); err != nil { // another one, if it opened one
		return err
	}
	if err := t.Settle(ctx); err != nil {
		return err
	}
	return r.fetched(ctx)
}

// fetched waits for files that the step made the browser fetch. Large ones go on
// by themselves.
func (r *round) fetched(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	err := r.browser.Fetched(bounded)
	if err != nil && ctx.Err() == nil && bounded.Err() != nil {
		r.notes = append(r.notes, "A download has not ended yet.")
		return nil
	}
	return err
}

// do does what a step says.
func (r *round) do(ctx context.Context, t *page.Tab, s script.Step) error {
	bid := s.Text("bid")
	switch s.Name {
	case "goto":
		return r.visitURL(ctx, t, s.Text("url"))
	case "go_back":
		return t.Back(ctx, -1)
	case "go_forward":
		return t.Back(ctx, 1)
	case "reload":
		return t.Reload(ctx)
	case "click":
		return t.Click(ctx, bid, s.Text("button"), s.List("modifiers"), 1)
	case "dblclick":
		return t.Click(ctx, bid, s.Text("button"), s.List("modifiers"), 2)
	case "hover":
		return t.Hover(ctx, bid)
	case "focus":
		return t.Focus(ctx, bid)
	case "fill":
		return t.Fill(ctx, bid, s.Text("value"))
	case "clear":
		return t.Fill(ctx, bid, "")
	case "press":
		return t.Press(ctx, bid, s.Text("key_comb"))
	case "select_option":
		return t.Select(ctx, bid, s.List("options"))
	case "drag_and_drop":
		return t.Drag(ctx, s.Text("from_bid"), s.Text("to_bid"))
	case "scroll":
		return t.Scroll(ctx, s.Number("delta_x"), s.Number("delta_y"))
	case "noop":
		return wait(ctx, s)
	case "upload_file":
		return r.upload(ctx, t, bid, s.List("file"))
	case "get_text":
		text, err := t.Text(ctx, bid)
		r.text = append(r.text, text)
		return err
	case "screenshot":
		return r.photograph(ctx, t, s.Text("path"))
	case "handle_dialog":
		return r.answer(s)
	default:
		return r.tabs(ctx, s)
	}
}

// tabs does what is about tabs.
func (r *round) tabs(ctx context.Context, s script.Step) error {
	switch s.Name {
	case "new_tab":
		_, err := r.browser.NewTab(ctx)
		return err
	case "tab_close":
		return r.browser.CloseTab(ctx)
	case "tab_focus":
		n := s.Number("index")
		if n != math.Trunc(n) || math.Abs(n) > 1000 {
			return page.ErrNoTab
		}
		return r.browser.Focus(ctx, int(n))
	}
	return fmt.Errorf("there is no function %s", s.Name)
}

// visitURL opens an address. One without a scheme is meant for the web.
func (r *round) visitURL(ctx context.Context, t *page.Tab, url string) error {
	url = strings.TrimSpace(url)
	if url == "" {
		return errors.New("the address is empty")
	}
	scheme, _, found := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "http", "https", "file", "data", "about", "blob", "view-source":
	default:
		if found && !strings.Contains(scheme, ".") && scheme != "localhost" {
			return fmt.Errorf("addresses begin with http:, https: or file:, and %s: is none of them", clip.MiddleRunes(scheme, 50))
		}
		url = "http://" + url
	}
	return t.Goto(ctx, url)
}

// wait does nothing for a while.
func wait(ctx context.Context, s script.Step) error {
	ms := 1000.0
	if s.Has("wait_ms") {
		ms = s.Number("wait_ms")
	}
	if ms < 0 || ms > float64(maxWait.Milliseconds()) {
		return fmt.Errorf("a pause has 0 to %d milliseconds", maxWait.Milliseconds())
	}
	over := time.NewTimer(time.Duration(ms * float64(time.Millisecond)))
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer sets what dialogs are answered.
func (r *round) answer(s script.Step) error {
	switch s.Text("answer") {
	case "accept":
		r.browser.SetAnswer(page.Answer{Accept: true, Text: s.Text("text")})
	case "dismiss":
		r.browser.SetAnswer(page.Answer{})
	default:
		return errors.New("the answer to a dialog is 'accept' or 'dismiss'")
	}
	return nil
}

// upload gives files of the sandbox to a page.
func (r *round) upload(ctx context.Context, t *page.Tab, bid string, files []string) error {
	var paths []string
	for _, f := range files {
		if !path.IsAbs(f) {
			f = path.Join(r.place.Workspace, f)
		}
		info, err := r.box.Stat(ctx, sandbox.PathParams{Path: []byte(f)})
		if err == nil && info.IsDir() {
			err = fmt.Errorf("%s is a folder", f)
		}
		if why, ok := sandbox.Refusal(err); ok {
			err = errors.New(why)
		}
		if err != nil {
			return err
		}
		paths = append(paths, f)
	}
	return t.Upload(ctx, bid, paths)
}

// photograph saves a picture of the page in the workspace.
func (r *round) photograph(ctx context.Context, t *page.Tab, name string) error {
	picture, err := t.Screenshot(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		name = path.Join(shots, "screenshot_"+time.Now().UTC().Format("20060102_150405.000")+".png")
	}
	if !path.IsAbs(name) {
		name = path.Join(r.place.Workspace, name)
	}
	_, err = r.box.Save(ctx, sandbox.WriteParams{PathParams: sandbox.PathParams{Path: []byte(name)}}, bytes.NewReader(picture))
	if why, ok := sandbox.Refusal(err); ok {
		return errors.New(why)
	}
	if err == nil {
		r.saved = name
		r.notes = append(r.notes, "The picture was saved as "+name+".")
	}
	return err
}
