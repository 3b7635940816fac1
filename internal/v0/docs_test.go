package v0_test

import (
	"os"
	"strings"
	"testing"

	"deckhand/internal/session"
)

// The page is the first thing that a newcomer reads about events, so it has all of
// them, in the order of the code.
func TestDocsNameEveryEvent(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(page)
	for _, p := range session.Payloads() {
		row := "\n| `" + string(p.Kind()) + "` |"
		at := strings.Index(rest, row)
		if at < 0 {
			t.Errorf("docs/events.md has no row for %s, or not in the order of session.Payloads", p.Kind())
			continue
		}
		rest = rest[at:]
	}
}
