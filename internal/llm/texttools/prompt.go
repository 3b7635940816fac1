package texttools

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"deckhand/internal/llm"
)

const manual = `# Tools

You have the tools that are listed below. To use one, write a call exactly like this, and nothing after it:

<call tool="name_of_the_tool">
<arg name="name_of_an_argument">value</arg>
<arg name="another_argument">
a value
that has several lines
</arg>
</call>

Rules:
- Write values as they are. Do not quote or escape anything in them. Numbers, true, false, lists and objects are written as JSON.
- Give every argument that is required. Leave out optional ones that you do not need.
- You may say in a sentence before a call what you are about to do. After the last call stop writing.
- You may write several calls one after the other. They run in that order.
- The results come in the next message, between result tags. Never write a result yourself.
- Without a call your answer goes to the person, and your turn is over.

An example, with tools that you may not have:

Person: How many lines does notes.txt have?

You: I count them.

<call tool="run">
<arg name="command">wc -l notes.txt</arg>
</call>

Person: <result tool="run">
12 notes.txt
</result>

You: notes.txt has 12 lines.

The tools:
`

// system is the system prompt with the tools in it.
func system(prompt string, tools []llm.Tool) string {
	var b strings.Builder
	if prompt != "" {
		b.WriteString(prompt + "\n\n")
	}
	b.WriteString(manual)
	known := schemas(tools)
	for _, t := range tools {
		fmt.Fprintf(&b, "\n## %s\n", t.Name)
		if t.Description != "" {
			fmt.Fprintf(&b, "%s\n", strings.TrimSpace(t.Description))
		}
		describe(&b, known[t.Name])
	}
	return b.String()
}

// describe lists the arguments of a tool: the required ones first, and always in
// the same order, so that providers find the prompt in their caches.
func describe(b *strings.Builder, s schema) {
	required := func(name string) bool { return slices.Contains(s.Required, name) }
	names := slices.SortedFunc(maps.Keys(s.Properties), func(x, y string) int {
		if required(x) != required(y) {
			if required(x) {
				return -1
			}
			return 1
		}
		return cmp.Compare(x, y)
	})
	if len(names) == 0 {
		b.WriteString("Arguments: none\n")
		return
	}
	b.WriteString("Arguments:\n")
	for _, name := range names {
		p := s.Properties[name]
		fmt.Fprintf(b, "- %s (%s", name, p.kind())
		if required(name) {
			b.WriteString(", required")
		}
		b.WriteString(")")
		if p.Description != "" {
			fmt.Fprintf(b, ": %s", strings.TrimSpace(p.Description))
		}
		if len(p.Enum) > 0 {
			fmt.Fprintf(b, " One of: %s", list(p.Enum))
		}
		if !p.simple() {
			fmt.Fprintf(b, " JSON of this schema: %s", p.raw)
		}
		b.WriteString("\n")
	}
}

// kind names the type of a value.
func (s schema) kind() string {
	switch {
	case len(s.Types) > 0:
		return strings.Join(s.Types, " or ")
	case s.text():
		return "string"
	}
	return "JSON"
}

// simple reports whether the name of its type says all about a value.
func (s schema) simple() bool {
	return s.text() || !slices.ContainsFunc(s.Types, func(t string) bool { return t == "array" || t == "object" }) && len(s.Types) > 0
}

func list(values []any) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprint(v))
	}
	return strings.Join(out, ", ")
}
