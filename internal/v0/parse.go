package v0

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/api"
	"deckhand/internal/session"
)

// IntentKind is what a user wants to do.
type IntentKind uint8

// The intents with their legacy actions.
const (
	Say     IntentKind = iota + 1 // message
	Pause                         // change_agent_state paused
	Stop                          // change_agent_state stopped
	Resume                        // change_agent_state running
	Approve                       // change_agent_state user_confirmed
	Reject                        // change_agent_state user_rejected
	Run                           // run
)

// Intent is a parsed message of a client. Message is set only for Say, Command only for
// Run, Now for a Pause that interrupts the current step.
type Intent struct {
	Kind    IntentKind
	Message session.UserSaid
	Command string
	Now     bool
}

// Limits. Longer values are rejected, never truncated.
const (
	MaxContent   = 1 << 20  // characters of a message
	MaxCommand   = 64 << 10 // characters of a command
	MaxImages    = 50       // images of a message
	MaxImageData = 10 << 20 // characters of an image that is sent inline
	MaxFiles     = 100      // files of a message
	MaxURL       = 4096     // characters of an address
	maxDepth     = 32       // what a client may send nests three deep
)

// intents are the states that a user may request.
var intents = map[string]IntentKind{
	string(session.AgentPaused):  Pause,
	string(session.AgentStopped): Stop,
	string(session.AgentRunning): Resume,
	string(session.AgentUserYes): Approve,
	string(session.AgentUserNo):  Reject,
}

const (
	sayActions  = `A client may send the actions "message", "change_agent_state" and "run"; everything else is done by the agent or recorded by the server.`
	sayStates   = `agent_state must be one of "running", "paused", "stopped", "user_confirmed" and "user_rejected"; the agent reaches other states by itself.`
	sayAssigned = `The server assigns this when it records the event; a client must not send it.`
)

// ignored are arguments of legacy clients that have no meaning.
var ignored = []string{"timestamp", "security_risk", "wait_for_response", "thought"}

// ParseAction parses an event that a client posted. Actions that are not for users are
// rejected: the legacy server ran commands and accepted results that a client made up.
// Every error is an *api.ValidationError and quotes no value.
func ParseAction(body []byte) (Intent, error) {
	top, err := parseBody(body)
	if err != nil {
		return Intent{}, err
	}
	action, err := top.word("action", sayActions)
	if err != nil {
		return Intent{}, err
	}
	var parse func(fields) (Intent, error)
	switch action {
	case "message":
		parse = parseMessage
	case "change_agent_state":
		parse = parseState
	case "run":
		parse = parseRun
	default:
		return Intent{}, api.Invalid("literal_error", sayActions, "action")
	}
	for _, name := range top.names() {
		switch name {
		case "action", "args":
		case "timestamp", "message": // clients may send back the format they receive
		case "id", "source", "cause":
			if name == "source" && text(top.members[name]) == fromUser {
				continue // it is
			}
			return Intent{}, api.Invalid("extra_forbidden", sayAssigned, name)
		default:
			return Intent{}, api.Invalid("extra_forbidden", `An action has the keys "action" and "args" only.`, short(name))
		}
	}
	args, err := top.object("args")
	if err != nil {
		return Intent{}, err
	}
	return parse(args)
}

func parseMessage(args fields) (Intent, error) {
	if err := args.only("content", "image_urls", "images_urls", "file_urls"); err != nil {
		return Intent{}, err
	}
	text, err := args.word("content", "A message has a content, which is a string.")
	if err != nil {
		return Intent{}, err
	}
	if longer(text, MaxContent) {
		return Intent{}, args.no("string_too_long", "The content of a message has at most 1048576 characters; put more into a file.", "content")
	}
	images := "image_urls"
	if _, old := args.members["images_urls"]; old {
		if _, both := args.members[images]; both {
			return Intent{}, args.no("extra_forbidden", "images_urls is the old name of image_urls; send one of them.", "images_urls")
		}
		images = "images_urls"
	}
	m := session.UserSaid{Text: text}
	if m.Images, err = args.list(images, MaxImages, checkImage); err != nil {
		return Intent{}, err
	}
	if m.Files, err = args.list("file_urls", MaxFiles, checkFile); err != nil {
		return Intent{}, err
	}
	return Intent{Kind: Say, Message: m}, nil
}

// parseRun parses a command that the user runs in the conversation's shell. Clients may
// send the default values of the other arguments.
func parseRun(args fields) (Intent, error) {
	if err := args.only("command", "hidden", "is_input", "blocking", "is_static", "cwd", "confirmation_state"); err != nil {
		return Intent{}, err
	}
	command, err := args.word("command", "A run has a command, which is a string.")
	if err != nil {
		return Intent{}, err
	}
	switch { // an empty command waits for output of the running one
	case longer(command, MaxCommand):
		return Intent{}, args.no("string_too_long", "A command has at most 65536 characters; put more into a file.", "command")
	case strings.ContainsRune(command, 0):
		return Intent{}, args.no("value_error", "NUL characters are not allowed.", "command")
	}
	return Intent{Kind: Run, Command: command}, nil
}

func parseState(args fields) (Intent, error) {
	if err := args.only("agent_state", "now"); err != nil {
		return Intent{}, err
	}
	now, given := args.members["now"]
	if given && now.Kind() != 't' && now.Kind() != 'f' {
		return Intent{}, args.no("bool_type", "now is true to interrupt the step in progress, or false to pause after it.", "now")
	}
	to, err := args.word("agent_state", sayStates)
	if err != nil {
		return Intent{}, err
	}
	kind, ok := intents[to]
	if !ok {
		return Intent{}, args.no("literal_error", sayStates, "agent_state")
	}
	if given && kind != Pause {
		return Intent{}, args.no("extra_forbidden", `now belongs to the agent_state "paused".`, "now")
	}
	return Intent{Kind: kind, Now: given && now.Kind() == 't'}, nil
}

// parseBody checks the whole body, including ignored parts.
func parseBody(body []byte) (fields, error) {
	if deep(body) {
		return fields{}, api.Invalid("json_invalid", "The request body is nested too deeply for an action.")
	}
	var members map[string]jsontext.Value
	err := json.Unmarshal(body, &members)
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fields{}, api.Invalid("json_invalid", "The body has the same key twice in one object; only one can be meant.")
	case errors.As(err, &syntax):
		return fields{}, api.Invalid("json_invalid", "The request body is not valid JSON in UTF-8.", syntax.ByteOffset)
	case err != nil, members == nil:
		return fields{}, api.Invalid("dict_type", `The body must be an object with the keys "action" and "args".`)
	}
	return fields{members: members}, nil
}

// deep reports excessive nesting before the body is parsed.
func deep(body []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// longer reports whether s has more than n characters.
func longer(s string, n int) bool { return len(s) > n && utf8.RuneCountInString(s) > n }

// short limits the length of a name in an error.
func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}

// fields are the members of an object and its path.
type fields struct {
	path    []any
	members map[string]jsontext.Value
}

func (f fields) names() []string { return slices.Sorted(maps.Keys(f.members)) }

// no rejects one member.
func (f fields) no(typ, msg string, at ...any) *api.ValidationError {
	return api.Invalid(typ, msg, append(slices.Clone(f.path), at...)...)
}

// only rejects members that are neither named nor ignored.
func (f fields) only(names ...string) error {
	for _, name := range f.names() {
		if !slices.Contains(names, name) && !slices.Contains(ignored, name) {
			return f.no("extra_forbidden", "This action has no such argument; it has "+strings.Join(names, ", ")+".", short(name))
		}
	}
	return nil
}

// word returns a required string.
func (f fields) word(name, msg string) (string, error) {
	v, ok := f.members[name]
	if !ok {
		return "", f.no("missing", msg, name)
	}
	if v.Kind() != '"' {
		return "", f.no("string_type", msg, name)
	}
	return unquote(v), nil
}

func (f fields) object(name string) (fields, error) {
	v, ok := f.members[name]
	if !ok {
		return fields{}, f.no("missing", "An action has args, which is an object.", name)
	}
	inner := fields{path: append(slices.Clone(f.path), name)}
	if v.Kind() != '{' || json.Unmarshal(v, &inner.members) != nil {
		return fields{}, f.no("dict_type", "args must be an object.", name)
	}
	return inner, nil
}

// list returns an optional list of strings that pass check, which describes the problem
// of one.
func (f fields) list(name string, most int, check func(string) (typ, msg string)) ([]string, error) {
	v, ok := f.members[name]
	if !ok || v.Kind() == 'n' {
		return nil, nil
	}
	var items []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &items) != nil {
		return nil, f.no("list_type", "This must be a list of strings, or null.", name)
	}
	if len(items) > most {
		return nil, f.no("too_long", "A message has at most "+decimal(most)+" of these.", name)
	}
	var out []string
	for i, item := range items {
		if item.Kind() != '"' {
			return nil, f.no("string_type", "This must be a string.", name, i)
		}
		s := unquote(item)
		if typ, msg := check(s); typ != "" {
			return nil, f.no(typ, msg, name, i)
		}
		out = append(out, s)
	}
	return out, nil
}

// ParseIntent parses an intent from any transport.
func ParseIntent(raw []byte) (Intent, error) {
	in, err := ParseAction(raw)
	if err == nil && strings.ContainsRune(in.Message.Text, 0) {
		err = api.Invalid("value_error", "NUL characters are not allowed.", "args", "content")
	}
	return in, err
}
