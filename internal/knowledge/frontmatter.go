package knowledge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

const (
	// maxFront and maxLines limit the front matter of a file. The time of the parser is
	// quadratic in either.
	maxFront = 16 << 10
	maxLines = 400
	// maxNesting limits the nesting of values.
	maxNesting = 16
	// maxTriggers limits the number of triggers of a file.
	maxTriggers = 50
	maxInputs   = 50
	maxServers  = 20
)

// Input is a value that the user must provide for a task.
type Input struct{ Name, Description string }

// Server is an MCP server that a microagent requests. It can only run in the sandbox.
type Server struct {
	Name, Command string
	Args          []string
	Env           map[string]string
	// File and Source identify the microagent.
	File   string
	Source Source
}

// meta is the content of the front matter.
type meta struct {
	name, description string
	triggers          []string
	inputs            []Input
	servers           []Server
}

// document is a parsed file.
type document struct {
	meta
	body string
	// wrong is the problem of an invalid file; the other fields are empty then.
	wrong string
}

// parse parses a file. Without front matter, the whole file is the body.
func parse(text string) document {
	front, body, found, err := split(text)
	if err == nil && found {
		var m meta
		if m, err = readFront(front); err == nil {
			return document{meta: m, body: clean(body)}
		}
	}
	if err != nil {
		return document{wrong: cleanLine(err.Error(), maxSentence)}
	}
	return document{body: clean(body)}
}

// wrong is the problem of a file, as a sentence for its author.
type wrong string

func (w wrong) Error() string { return string(w) }

func wrongf(format string, a ...any) error { return wrong(fmt.Sprintf(format, a...)) }

// split finds the front matter: the lines between a first line of three dashes and the
// next such line.
func split(text string) (front, body string, found bool, err error) {
	text = strings.TrimPrefix(text, "\ufeff")
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return "", text, false, nil
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == "---" {
			return rest[:at], rest[at+len(line):], true, nil
		}
		if at += len(line); at > maxFront {
			return "", "", false, wrongf("The front matter has more than %d bytes, or does not end with a line of three dashes.", maxFront)
		}
	}
	return "", "", false, wrongf("The front matter does not end with a line of three dashes.")
}

// readFront parses the front matter. Unknown keys are ignored.
func readFront(front string) (m meta, err error) {
	// The text is untrusted, and a panic of the parser must not end the server.
	defer func() {
		if recover() != nil {
			m, err = meta{}, wrongf("The front matter is not valid YAML.")
		}
	}()
	front = strings.ToValidUTF8(front, "\ufffd")
	if err := harmless(front); err != nil {
		return meta{}, err
	}
	var all map[string]any
	if err := yaml.Unmarshal([]byte(front), &all); err != nil {
		return meta{}, notYAML(err)
	}
	f := fields{all: all}
	m = meta{name: f.text("name"), description: f.text("description"), triggers: f.texts("triggers", maxTriggers),
		inputs: f.inputs(), servers: f.servers()}
	f.text("agent")
	if kind := f.text("type"); kind != "" && !slices.Contains([]string{string(Repo), string(Knowledge), string(Task)}, kind) {
		f.fail("type is %q; it can be repo, knowledge or task.", kind)
	}
	if f.err != nil {
		return meta{}, f.err
	}
	return m, nil
}

// harmless rejects aliases, by which a small text becomes a large value, and deep
// nesting.
func harmless(front string) error {
	if strings.Count(front, "\n")+strings.Count(front, "\r") > maxLines {
		return wrongf("The front matter has more than %d lines.", maxLines)
	}
	depth, line, entries := 0, 0, 0
	for _, t := range lexer.Tokenize(front) {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return wrongf("The front matter uses YAML anchors, aliases or merge keys; write the values out.")
		case token.SequenceStartType, token.MappingStartType:
			if depth++; depth > maxNesting {
				return wrongf("The front matter is nested too deep.")
			}
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType:
			if t.Position.Line != line {
				line, entries = t.Position.Line, 0
			}
			entries++
		}
		if entries > maxNesting || t.Position.IndentNum > 8*maxNesting {
			return wrongf("The front matter is nested too deep.")
		}
	}
	return nil
}

// notYAML returns the message of the parser without the excerpt that it prints.
func notYAML(err error) error {
	var y yaml.Error
	if errors.As(err, &y) {
		if t := y.GetToken(); t != nil && t.Position != nil {
			return wrongf("The front matter is not valid: line %d: %s.", t.Position.Line+1, y.GetMessage())
		}
		return wrongf("The front matter is not valid: %s.", y.GetMessage())
	}
	return wrongf("The front matter is not valid YAML.")
}

// fields reads typed values and keeps the first type error.
type fields struct {
	all map[string]any
	// in is the location of the fields, such as "inputs: ".
	in  string
	err error
}

func (f *fields) fail(format string, a ...any) {
	if f.err == nil {
		f.err = wrong(f.in + fmt.Sprintf(format, a...))
	}
}

func (f *fields) text(key string) string {
	switch v := f.all[key].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		f.fail("%s must be a text; put it in quotation marks.", key)
		return ""
	}
}

func (f *fields) list(key string, most int) []any {
	switch v := f.all[key].(type) {
	case nil:
		return nil
	case []any:
		if len(v) > most {
			f.fail("%s has more than %d entries.", key, most)
			return nil
		}
		return v
	default:
		f.fail("%s must be a list.", key)
		return nil
	}
}

func (f *fields) texts(key string, most int) []string {
	var out []string
	for _, v := range f.list(key, most) {
		s, ok := v.(string)
		if !ok {
			f.fail("%s must be a list of texts; put each in quotation marks.", key)
			return nil
		}
		out = append(out, s)
	}
	return out
}

// each reads a list of objects.
func (f *fields) each(key string, most int, read func(*fields)) {
	for i, v := range f.list(key, most) {
		object, ok := v.(map[string]any)
		if !ok {
			f.fail("%s must be a list of objects.", key)
			return
		}
		inner := &fields{all: object, in: fmt.Sprintf("%s%s, entry %d: ", f.in, key, i+1)}
		read(inner)
		if f.err == nil {
			f.err = inner.err
		}
	}
}

func (f *fields) inputs() []Input {
	var out []Input
	f.each("inputs", maxInputs, func(one *fields) {
		in := Input{one.text("name"), one.text("description")}
		if in.Name == "" {
			one.fail("name is missing.")
		}
		out = append(out, in)
	})
	return out
}

// servers reads the MCP servers. Only servers that run in the sandbox are allowed: a URL
// would be reached from the server.
func (f *fields) servers() []Server {
	given, ok := f.all["mcp_tools"]
	if !ok || given == nil {
		return nil
	}
	object, ok := given.(map[string]any)
	if !ok {
		f.fail("mcp_tools must be an object.")
		return nil
	}
	inner := &fields{all: object, in: "mcp_tools: "}
	var out []Server
	inner.each("stdio_servers", maxServers, func(one *fields) {
		s := Server{Name: one.text("name"), Command: one.text("command"), Args: one.texts("args", 100), Env: one.pairs("env")}
		if s.Name == "" || s.Command == "" {
			one.fail("name and command are needed.")
		}
		out = append(out, s)
	})
	if len(out) == 0 {
		inner.fail("only stdio_servers can be given here, and there are none.")
	}
	if f.err == nil {
		f.err = inner.err
	}
	return out
}

func (f *fields) pairs(key string) map[string]string {
	given := f.all[key]
	if given == nil {
		return nil
	}
	object, ok := given.(map[string]any)
	if !ok {
		f.fail("%s must be an object of texts.", key)
		return nil
	}
	out := make(map[string]string, len(object))
	for name, v := range object {
		if out[name], ok = v.(string); !ok {
			f.fail("%s: %s must be a text; put it in quotation marks.", key, name)
		}
	}
	return out
}
