package reference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"deckhand/internal/config"
)

// Man returns the manual pages by file name: one for the program, one for each command, and one
// for the config file.
func Man(app *kong.Node) map[string]string {
	pages := map[string]string{}
	var all roff
	all.head("DECKHAND", 1, "deckhand", "coding agents in sandboxes, in a folder or on a server")
	all.section("SYNOPSIS")
	all.line(".B deckhand")
	all.line("[\\fICOMMAND\\fR] [\\fIFLAGS\\fR]")
	all.section("DESCRIPTION")
	all.text(config.Description)
	all.section("COMMANDS")
	for _, c := range commandsOf(app) {
		name := strings.ReplaceAll(c.name, " ", "-")
		all.item(bold(c.name), c.help+" See "+name+"(1).")
		pages[name+".1"] = manOf(name, c)
	}
	all.section("FILES")
	all.item(bold("/etc/deckhand/deckhand.yaml"), "Config file of the service that a package installs. See deckhand.yaml(5).")
	all.item(bold("~/.local/share/deckhand"), "Data directory, unless --data-dir or XDG_DATA_HOME says otherwise.")
	all.section("SEE ALSO")
	all.text("deckhand.yaml(5). A running server serves the full manual at /manual.")
	pages["deckhand.1"] = all.String()
	pages["deckhand.yaml.5"] = manOfConfig(app)
	return pages
}

func manOf(name string, c command) string {
	var r roff
	r.head(strings.ToUpper(name), 1, name, strings.TrimSuffix(c.help, "."))
	r.section("SYNOPSIS")
	r.line(bold(c.name) + escaped(c.usage))
	r.section("DESCRIPTION")
	r.text(c.help)
	r.long(c.long)
	r.section("OPTIONS")
	for _, f := range c.flags {
		r.item(bold(f.typed()), f.described())
	}
	r.section("SEE ALSO")
	r.text("deckhand(1), deckhand.yaml(5)")
	return r.String()
}

func manOfConfig(app *kong.Node) string {
	var r roff
	r.head("DECKHAND.YAML", 5, "deckhand.yaml", "config file of the Deckhand server")
	r.section("DESCRIPTION")
	r.text("A YAML file with flags by name, read with --config or DECKHAND_CONFIG. Flags and environment variables take precedence. " +
		"The sections models and prices describe models that are not in the built-in list. \"deckhand config check\" checks a file.")
	r.section("KEYS")
	for _, f := range serveFlags(app) {
		r.item(bold(f.name)+": "+escaped(strings.ToLower(f.value)), f.described())
	}
	r.section("SEE ALSO")
	r.text("deckhand-serve(1)")
	return r.String()
}

// described returns the help of a flag with its default and its environment variable.
func (f flag) described() string {
	s := f.help
	if f.initial != "" && !strings.Contains(s, "efault") {
		s += " Default: " + f.initial + "."
	}
	if f.env != "" {
		s += " Environment: " + f.env + "."
	}
	return strings.TrimSpace(s)
}

// serveFlags returns the server flags that can be set in the config file.
func serveFlags(app *kong.Node) (out []flag) {
	for _, c := range commandsOf(app) {
		if c.name == "deckhand serve" {
			return slices.DeleteFunc(c.flags, func(f flag) bool { return f.name == "config" })
		}
	}
	return nil
}

// roff builds a manual page.
type roff struct{ strings.Builder }

func (r *roff) line(s string) { r.WriteString(s + "\n") }

func (r *roff) head(title string, section int, name, about string) {
	r.line(fmt.Sprintf(".TH %s %d \"\" Deckhand \"Deckhand manual\"", title, section))
	r.section("NAME")
	r.line(escaped(name) + " \\- " + escaped(about))
}

func (r *roff) section(name string) { r.line(".SH " + name) }

// text adds a paragraph.
func (r *roff) text(s string) {
	r.line(".PP")
	r.line(escaped(s))
}

// long adds the paragraphs of a text. Lines that begin with a space, such as examples, stay lines.
func (r *roff) long(s string) {
	for part := range strings.SplitSeq(s, "\n\n") {
		first := true
		for line := range strings.SplitSeq(strings.Trim(part, "\n"), "\n") {
			switch {
			case line == "":
				continue
			case first:
				r.line(".PP")
			default:
				r.line(".br")
			}
			first = false
			indent := len(line) - len(strings.TrimLeft(line, " "))
			r.line(strings.Repeat(`\ `, indent) + escaped(line[indent:]))
		}
	}
}

// item adds a term, which must already be formatted, and its description.
func (r *roff) item(term, s string) {
	r.line(".TP")
	r.line(term)
	r.line(escaped(s))
}

func bold(s string) string { return `\fB` + escaped(s) + `\fR` }

// escaped escapes a text for troff: backslashes, requests at the start of a line, and hyphens, so
// that they can be copied.
func escaped(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "…", "...").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
