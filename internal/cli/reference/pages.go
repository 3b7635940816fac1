package reference

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Markdown returns the manual page "Commands and flags".
func Markdown(app *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Commands and flags

Every command with its flags. This page is generated from the program; do not edit it.

A flag can also be set by its environment variable, or by a key of the same name in the
[config file](configure.md) (` + "`--config`, `DECKHAND_CONFIG`" + `). A flag takes precedence over the environment, and the environment over
the file.
`)
	for _, c := range commandsOf(app) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n```text\n%s%s\n```\n\n| Flag | Environment | Meaning |\n|---|---|---|\n", c.name, cell(c.help), c.name, c.usage)
		for _, f := range c.flags {
			env := ""
			if f.env != "" {
				env = "`" + f.env + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.typed(), env, cell(flag{help: f.help, initial: f.initial}.described()))
		}
	}
	return b.String()
}

// cell escapes a text for a table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "\n", " ").Replace(s)
}

// Config returns a config file in which every flag of the server is explained and commented out.
func Config(app *kong.Node) string {
	var b strings.Builder
	b.WriteString(`# Configuration of the Deckhand server.
#
# Every line below is commented out and shows a default or an example. Remove the # to change a
# value, check the file with "deckhand config check", then reload or restart the server.
# Flags and environment variables take precedence over this file.
`)
	for _, f := range serveFlags(app) {
		b.WriteString("\n")
		wrap(&b, f.help)
		value := f.initial
		switch {
		case f.isBool:
			value = "false"
		case value == "":
			value = f.value
		}
		fmt.Fprintf(&b, "#%s: %s\n", f.name, value)
	}
	b.WriteString(`
# Models that are not in the built-in list, or values that override the list.
# Prices are in US dollars per million tokens.
#models:
#  openai/my-model:
#    window: 128000
#    max_output: 16000
#    input: 0.5
#    output: 1.5
`)
	return b.String()
}

// width is the maximum length of a line in the config file.
const width = 96

func wrap(b *strings.Builder, s string) {
	line := "#"
	for _, word := range strings.Fields(s) {
		if len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}
