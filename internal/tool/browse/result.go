package browse

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"deckhand/internal/clip"
	"deckhand/internal/tool"
	"deckhand/internal/tool/browse/page"
)

// maxText is how many characters a result has, maxRead how many of them get_text
// may take from the elements.
const (
	maxText = 30_000
	maxRead = 20_000
)

// details are kept with the result, under the names that clients know.
type details struct {
	URL                    string   `json:"url,omitempty"`
	Screenshot             string   `json:"screenshot,omitempty"`
	ScreenshotPath         *string  `json:"screenshot_path,omitempty"`
	Error                  bool     `json:"error,omitempty"`
	OpenPagesURLs          []string `json:"open_pages_urls,omitempty"`
	ActivePageIndex        int      `json:"active_page_index,omitempty"`
	LastBrowserAction      string   `json:"last_browser_action,omitempty"`
	LastBrowserActionError string   `json:"last_browser_action_error,omitempty"`
	FocusedElement         string   `json:"focused_element_bid,omitempty"`
}

// result puts what was seen into words.
func (r *round) result(s page.State) tool.Result {
	d := details{
		URL: s.URL, Error: r.problem != "", ActivePageIndex: s.Active, FocusedElement: s.Focused,
		LastBrowserAction: r.code, LastBrowserActionError: r.problem,
	}
	for _, t := range s.Tabs {
		d.OpenPagesURLs = append(d.OpenPagesURLs, t.URL)
	}
	out := tool.Result{Failed: r.problem != "", Text: r.words(s)}
	if len(s.Screenshot) > 0 {
		d.Screenshot = "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(s.Screenshot)
		out.Images = []string{d.Screenshot}
	}
	if r.saved != "" {
		d.ScreenshotPath = &r.saved
	}
	out.Details, _ = json.Marshal(d)
	return out
}

// words tell of the page: first what a person would read in the frame of the
// window, then what is on it.
func (r *round) words(s page.State) string {
	var head strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&head, "["+format+"]\n", a...) }
	if r.problem != "" {
		say("Error: %s", clip.Line(r.problem))
	}
	for _, n := range r.notes {
		say("%s", clip.Line(n))
	}
	say("Current URL: %s", clip.Line(s.URL))
	if s.Title != "" {
		say("Title: %s", clip.Line(s.Title))
	}
	if s.Status >= 400 {
		say("HTTP status: %d", s.Status)
	}
	if len(s.Tabs) > 1 {
		for i, t := range s.Tabs {
			active := ""
			if i == s.Active {
				active = " (active)"
			}
			say("Tab %d%s: %s %s", i, active, clip.Line(clip.MiddleRunes(t.URL, 200)), clip.Line(clip.MiddleRunes(t.Title, 100)))
		}
	}
	if s.Focused != "" {
		say("Focused element: %s", s.Focused)
	}
	if s.Above > 0 || s.Below > 0 {
		say("Out of sight: %d pixels above, %d below", s.Above, s.Below)
	}
	body := head.String()
	for _, text := range r.text {
		body += section("text", clip.MiddleRunes(text, maxRead/len(r.text)))
	}
	name := "elements"
	if s.TextOnly {
		name = "text, because the page is too large to list its elements"
	}
	frame := section(name, "")
	room := maxText - utf8.RuneCountInString(body) - utf8.RuneCountInString(frame)
	return body + section(name, clip.MiddleRunes(s.Tree, max(room, 0)))
}

// end is the last line of a section.
const end = "--- End ---"

// section marks what the page says. It cannot say that it has ended.
func section(name, text string) string {
	text = strings.ReplaceAll(strings.TrimRight(text, "\n"), end, "---")
	return "--- Page " + name + " ---\n" + text + "\n" + end + "\n"
}
