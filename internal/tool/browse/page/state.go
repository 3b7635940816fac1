package page

import (
	"context"

	"github.com/chromedp/cdproto/page"
)

// maxScreenshot is how large a screenshot may be.
const maxScreenshot = 1 << 20

// State is what can be seen of the browser.
type State struct {
	URL, Title string
	Tabs       []TabInfo
	Active     int
	// Status is the code of the answer that the page came with, 0 if there was none.
	Status int
	// Above and Below are how many pixels of the page are out of sight.
	Above, Below int
	// Tree lists the elements. When the page is too large for that, it is what
	// can be read, and TextOnly is true.
	Tree     string
	TextOnly bool
	// Focused is the bid of the element that has the keyboard.
	Focused string
	// Screenshot is a JPEG.
	Screenshot []byte
}

// Look tells what the tab shows that is looked at. What cannot be had is left
// out; the error says why.
func (b *Browser) Look(ctx context.Context) (State, error) {
	t, err := b.Active(ctx)
	if err != nil {
		return State{}, err
	}
	var size struct {
		Elements   int    `json:"elements"`
		Characters int    `json:"characters"`
		Status     int    `json:"status"`
		Above      int    `json:"above"`
		Below      int    `json:"below"`
		URL        string `json:"url"`
		Title      string `json:"title"`
	}
	var s State
	err = t.evaluate(ctx, measure, &size)
	if err == nil && (size.Elements > maxElements || size.Characters > maxCharacters) {
		s.TextOnly = true
		s.Tree, err = t.Text(ctx, "")
	} else if err == nil {
		s.Tree, s.Focused, err = t.Tree(ctx)
	}
	if err == nil {
		s.Screenshot, err = t.photograph(ctx)
	}
	s.Tabs, s.Active = b.Tabs(ctx)
	if s.Active < len(s.Tabs) {
		s.URL, s.Title = s.Tabs[s.Active].URL, s.Tabs[s.Active].Title
	}
	// The page knows better, but for those that say why there is none.
	if size.URL != "" && size.URL != errorPage {
		s.URL, s.Title = size.URL, size.Title
	}
	s.Status, s.Above, s.Below = size.Status, size.Above, size.Below
	if len(s.Tabs) > s.Active {
		s.Tabs[s.Active] = TabInfo{s.URL, s.Title}
	}
	return s, err
}

// errorPage is what a page is called that could not be opened.
const errorPage = "chrome-error://chromewebdata/"

// photograph takes a picture that is small enough to be sent along.
func (t *Tab) photograph(ctx context.Context) ([]byte, error) {
	for _, quality := range []int64{70, 30, 5} {
		r, err := call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatJpeg, Quality: &quality})
		if err != nil {
			return nil, err
		}
		if len(r.Data) <= maxScreenshot {
			return r.Data, nil
		}
	}
	return nil, nil
}

// Screenshot is a PNG of what is shown.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	r, err := call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatPng})
	return r.Data, err
}
