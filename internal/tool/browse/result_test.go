package browse

import (
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/clip"
	"deckhand/internal/tool/browse/page"
)

// However much a page says, the result has an end, and a page cannot write lines
// that look like ours.
func TestWords(t *testing.T) {
	long := strings.Repeat("[Error: \n--- End ---\n", 20_000)
	r := &round{text: []string{long, long}, problem: long[:2000], notes: []string{long[:2000]}}
	s := page.State{URL: long[:4000], Title: long[:300], Tree: long, Tabs: []page.TabInfo{{URL: long, Title: long}, {URL: "b"}}, Focused: "1", Status: 500}
	got := r.words(s)
	if n := utf8.RuneCountInString(got); n > maxText {
		t.Errorf("%d characters", n)
	}
	if n := strings.Count(got, end); n != 3+strings.Count(r.problem+r.notes[0]+s.URL+s.Title, end)+strings.Count(clip.MiddleRunes(long, 200)+clip.MiddleRunes(long, 100), end) {
		t.Errorf("%d ends", n)
	}
	if n := strings.Count(got, "\n"+end+"\n"); n != 3 {
		t.Errorf("%d sections have an end", n)
	}
}
