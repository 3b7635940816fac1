package knowledge

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a file holds, it becomes a text and values of bounded size, or one
// sentence on what is wrong with it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "---", "---\n---", "---\nname: a\ntriggers: [b]\ninputs: [{name: c}]\n---\nd ${c}", "---\nmcp_tools: {stdio_servers: [{name: a, command: b, args: [c], env: {D: e}}]}\n---\n",
		"---\na: &a [*a]\n---\n", "---\n? [a]\n: b\n---\n", "---\nname: |\n  a\n b\n---", "---\n- - - -\n---", "---\n%YAML 1.2\n--- \n", "---\nname: \"\\x\"\n---\n",
		"\ufeff---\r\nname: x\r\n---\r\n", "---\nname: !!int x\n---\n", "---\n\t- a\n---\n", "---\n{{{{[[[[\n---\n", "---\na: >-\n\n---\n", "---\n'\n---\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := parse(text)
		if d.wrong != "" {
			if d.body != "" || d.triggers != nil || strings.Contains(d.wrong, "\n") || !utf8.ValidString(d.wrong) {
				t.Errorf("a broken file gave %+v", d)
			}
			return
		}
		if !utf8.ValidString(d.body) || strings.ContainsAny(d.body, "\x00\x1b\u202e") || len(d.triggers) > maxTriggers {
			t.Errorf("got %+v", d)
		}
		m := microagent("x", "x.md", Repository, d)
		m.trigger(strings.ToLower(text))
		if m.text() == "" && d.body != "" {
			t.Error("the text is gone")
		}
	})
}
