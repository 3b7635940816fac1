package cassette

import (
	"fmt"
	"regexp"
	"slices"

	"deckhand/internal/clip"
)

// volatile are what differs each time the same conversation is held. The order
// counts: a time has digits that would be taken for an id.
var volatile = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| ?[+-]\d\d:?\d\d)?)?`), "<time>"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(?:\.\d+)?\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "<id>"},
	{regexp.MustCompile(`\b[0-9a-f]{12,}\b`), "<id>"},
	{regexp.MustCompile(`/(?:private/)?(?:tmp|var/folders)/[^\s"'\x60<>|;:,)\]}\\]+`), "<path>"},
	{regexp.MustCompile(`\b(?:127\.0\.0\.1|localhost|\[::1\]):\d+\b`), "<address>"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|seconds|minutes)\b`), "<duration>"},
}

// Normal writes what is volatile in a text in one way. The rule is part of the
// format: what is the same after it is the same.
func Normal(s string) string {
	for _, v := range volatile {
		s = v.what.ReplaceAllString(s, v.as)
	}
	return s
}

// normal is the request as it is compared. Calls are known by their order: the
// model's ids say nothing.
func (r request) normal() request {
	ids := map[string]string{}
	id := func(s string) string {
		if s == "" {
			return ""
		}
		if ids[s] == "" {
			ids[s] = fmt.Sprintf("#%d", len(ids)+1)
		}
		return ids[s]
	}
	out := request{System: Normal(r.System)}
	for _, t := range r.Tools {
		out.Tools = append(out.Tools, tool{t.Name, Normal(t.Description), Normal(t.Schema)})
	}
	for _, m := range r.Messages {
		m.Text, m.Call = Normal(m.Text), id(m.Call)
		m.Calls = slices.Clone(m.Calls)
		for i, c := range m.Calls {
			m.Calls[i] = call{id(c.ID), c.Name, encode(Normal(string(c.Args)))} // what is left need not be JSON
		}
		out.Messages = append(out.Messages, m)
	}
	return out
}

// difference says where two requests in normal form part, for a person.
func difference(want, got request) string {
	if want.System != got.System {
		return "the system prompt differs: " + around(want.System, got.System)
	}
	for i := range max(len(want.Tools), len(got.Tools)) {
		switch {
		case i >= len(got.Tools):
			return fmt.Sprintf("the tool %s is missing", want.Tools[i].Name)
		case i >= len(want.Tools):
			return fmt.Sprintf("the tool %s is new", got.Tools[i].Name)
		case want.Tools[i] != got.Tools[i]:
			return fmt.Sprintf("tool %d differs: %s", i+1, around(show(want.Tools[i]), show(got.Tools[i])))
		}
	}
	for i := range max(len(want.Messages), len(got.Messages)) {
		switch {
		case i >= len(got.Messages):
			return fmt.Sprintf("message %d is missing: %s", i+1, clip.Runes(show(want.Messages[i]), shown))
		case i >= len(want.Messages):
			return fmt.Sprintf("message %d is new: %s", i+1, clip.Runes(show(got.Messages[i]), shown))
		case !same(want.Messages[i], got.Messages[i]):
			return fmt.Sprintf("message %d differs: %s", i+1, around(show(want.Messages[i]), show(got.Messages[i])))
		}
	}
	return ""
}

func show(v any) string { return string(encode(v)) }

// shown is how much of a text a difference shows.
const shown = 160

// around shows two texts from shortly before they part.
func around(want, got string) string {
	a, b := []rune(want), []rune(got)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	from := max(0, n-shown/4)
	lead := ""
	if from > 0 {
		lead = "…"
	}
	return fmt.Sprintf("recorded %q, now %q", lead+clip.Runes(string(a[from:]), shown), lead+clip.Runes(string(b[from:]), shown))
}
