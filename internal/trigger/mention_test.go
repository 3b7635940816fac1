package trigger

import (
	"strings"
	"testing"
)

func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{
		"@deckhand fix this":                     true,
		"please, @deckhand.":                     true,
		"(@DeckHand)":                            true,
		"hello\n\n@deckhand: go on":              true,
		"**@deckhand** look":                     true,
		"@deckhand":                              true,
		"@deckhand.\nThanks":                     true,
		"é@deckhand":                             false,
		"":                                       false,
		"deckhand":                               false,
		"@deckhands":                             false,
		"@deckhand-bot":                          false,
		"@deckhand_":                             false,
		"@deckhand/team":                         false,
		"@deckhand.org is a site":                false,
		"@deckhand@example.org":                  false,
		"me@deckhand":                            false,
		"a/@deckhand":                            false,
		"@@deckhand":                             false,
		"\\@deckhand":                            false,
		"> @deckhand fix this":                   false,
		"  > @deckhand fix this":                 false,
		"> quoted\n\n@deckhand yes":              true,
		"`@deckhand`":                            false,
		"``a ` @deckhand``":                      false,
		"`a` @deckhand `b`":                      true,
		"a ` @deckhand":                          true, // no code without an end
		"```\n@deckhand\n```":                    false,
		"```\n@deckhand":                         false,
		"````\n```\n@deckhand\n````":             false,
		"~~~ text\n@deckhand\n~~~\nx":            false,
		"```\ncode\n```\n@deckhand":              true,
		"```\ncode\n``` not the end\n@deckhand":  false,
		"``` a ` b\n@deckhand":                   true, // such a line opens nothing
		"    @deckhand":                          false,
		"text\n\n    code\n    @deckhand":        false,
		"text\n\n\t@deckhand":                    false,
		"- item\n    @deckhand goes on":          true, // a continued line is no code
		"<!-- @deckhand -->":                     false,
		"<!-- a\n@deckhand\n--> b":               false,
		"<!-- a --> @deckhand":                   true,
		"<!-- a\nb --> @deckhand":                true,
		"1 < 2 @deckhand":                        true,
		"@deckhand\r\n":                          true,
		"a\r\n```\r\n@deckhand\r\n```\r\n":       false,
		"@deckhands and @deckhand":               true,
		"an e-mail to @deckhand, as I said":      true,
		"[//]: # (x)\n@deckhand":                 true,
		"text `unfinished\nnext @deckhand line`": true, // code within a paragraph ends with the line here
	} {
		if got := mentions(text, "@deckhand"); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

func FuzzMentions(f *testing.F) {
	for _, s := range []string{"@deckhand", "> a", "```\n", "<!-- `", "    x", "é@", "``` `", "-->"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		mentions(text, "@deckhand")
		clean := strings.NewReplacer("@", "", "\r", "").Replace(text)
		if mentions(clean, "@deckhand") {
			t.Errorf("found in %q", clean)
		}
		fence := openFence(clean)
		m := markdown{}
		for line := range strings.Lines(clean) {
			m.prose(strings.TrimRight(line, "\n"))
		}
		switch ending := clean + "\n" + fence + "\n\n@deckhand"; {
		case m.comment: // it is not closed
		case !mentions(ending, "@deckhand"):
			t.Errorf("not found in %q", ending)
		}
		quoted := "> " + strings.ReplaceAll(clean, "\n", "\n> ") + "\n> @deckhand"
		if mentions(quoted, "@deckhand") {
			t.Errorf("found in the quotation %q", quoted)
		}
	})
}
