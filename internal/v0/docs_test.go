package v0_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"deckhand/internal/session"
)

// The pages are the first thing that a newcomer reads about events, so they have all
// of them, in the order of the code.
func TestDocsNameEveryEvent(t *testing.T) {
	for _, name := range []string{"docs/events.md", "docs/states.md"} {
		page, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		rest := string(page)
		for _, p := range session.Payloads() {
			row := "\n| `" + string(p.Kind()) + "` |"
			at := strings.Index(rest, row)
			if at < 0 {
				t.Errorf("%s has no row for %s, or not in the order of session.Payloads", name, p.Kind())
				continue
			}
			rest = rest[at:]
		}
	}
}

// A field that is stored is a promise, so the page names it: in the row of its event.
func TestDocsNameEveryField(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range session.Payloads() {
		_, row, _ := strings.Cut(string(page), "\n| `"+string(p.Kind())+"` |")
		row, _, _ = strings.Cut(row, "\n")
		for _, field := range fields(reflect.TypeOf(p)) {
			if !slices.Contains(strings.FieldsFunc(row, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }), field) {
				t.Errorf("docs/events.md does not name the field %s of %s", field, p.Kind())
			}
		}
	}
}

// fields are the names under which the fields of a payload are stored.
func fields(t reflect.Type) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			out = append(out, fields(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
