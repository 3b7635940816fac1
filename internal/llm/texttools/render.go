package texttools

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

// messages writes calls and results into the texts. What a person said and the
// results before it become one message: many of these models insist that roles
// alternate.
func messages(in []llm.Message) []llm.Message {
	var out []llm.Message
	number := map[string]int{} // of each call among those of one answer, if there are several
	for _, m := range in {
		switch m.Role {
		case llm.Assistant:
			clear(number)
			if len(m.Calls) > 1 {
				for i, c := range m.Calls {
					number[c.ID] = i + 1
				}
			}
			m = said(m)
		case llm.ToolResult:
			m = llm.Message{Role: llm.User, Text: result(m, number[m.Call]), Images: m.Images}
		}
		if m.Text == "" && len(m.Images) == 0 {
			continue
		}
		if n := len(out); n > 0 && m.Role == llm.User && out[n-1].Role == llm.User {
			last := &out[n-1]
			last.Text = strings.TrimLeft(last.Text+"\n\n"+m.Text, "\n")
			last.Images = append(last.Images[:len(last.Images):len(last.Images)], m.Images...)
			continue
		}
		out = append(out, m)
	}
	return out
}

// said is what the model said, with its calls.
func said(m llm.Message) llm.Message {
	var b strings.Builder
	b.WriteString(m.Text)
	for _, c := range m.Calls {
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		writeCall(&b, c)
	}
	m.Text, m.Calls = b.String(), nil
	return m
}

func writeCall(b *strings.Builder, c llm.Call) {
	fmt.Fprintf(b, "%s%q>\n", openCall, c.Name)
	var values map[string]json.RawMessage
	if json.Unmarshal(c.Args, &values) != nil {
		var written string // what could not be read the first time
		_ = json.Unmarshal(c.Args, &written)
		fmt.Fprintf(b, "%s\n", written)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var text string
		if json.Unmarshal(values[name], &text) != nil || string(values[name]) == "null" {
			text = string(values[name])
		}
		fmt.Fprintf(b, "%sname=%q>%s%s\n", openArg, name, wrap(text), closeArg)
	}
	b.WriteString(closeCall)
}

// wrap puts a value that has lines on lines of its own.
func wrap(s string) string {
	if strings.Contains(s, "\n") {
		return "\n" + s + "\n"
	}
	return s
}

// result is what a call gave, as a person would report it.
func result(m llm.Message, number int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%q", openResult, m.Name)
	if number > 0 {
		fmt.Fprintf(&b, ` call="%d"`, number)
	}
	if m.Failed {
		b.WriteString(` failed="yes"`)
	}
	fmt.Fprintf(&b, ">\n%s\n%s", m.Text, closeResult)
	return b.String()
}
