package v0

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/session"
	"deckhand/internal/tool"
	"deckhand/internal/v0/form"
)

// Past is an event as the legacy server stored it, parsed as far as the import needs.
type Past struct {
	// Kind is the type of the action or observation.
	Kind   string
	Source string
	// At is its time as stored, with or without a zone.
	At string
	// Cause is the ID of the event that it responds to, or -1.
	Cause int64
	// Event is what clients are shown: the current format, without ID, time and cause.
	Event stdjson.RawMessage

	// Said is a message of the user. Words is a message of the agent.
	Said  *session.UserSaid
	Words string
	// Made is a tool call of the agent, Result the result of one.
	Made   *PastCall
	Result *session.ToolReturned
	// Note is the text for the model about an observation without a call.
	Note string
	// Forgets is a part of the history that the model is not shown any more.
	Forgets *Condensed
	// Instructions are the instructions of the conversation, wherever they were
	// recorded.
	Instructions string
	// Spent are the totals so far; nil if unknown.
	Spent *session.Totals
}

// PastCall is a call with the model response that made it.
type PastCall struct {
	// ID is the ID of the call, or "" if it was not recorded.
	ID string
	// Answer is the ID of the model response, Text its text, and Calls all its calls,
	// including this one.
	Answer string
	Text   string
	Calls  []session.ToolCall
}

// Condensed holds the event IDs that a condensation removed: a list, or a range.
type Condensed struct {
	IDs      []int64
	From, To int64
	Summary  string
}

// errNoEvent means that a file does not contain an event.
var errNoEvent = errors.New("it is neither an action nor an observation")

// ReadPast parses one stored event. The raw text is one JSON object. Invalid parts are
// ignored, but shown unchanged.
func ReadPast(raw []byte) (Past, error) {
	var e pastItem
	if jsontext.Value(raw).Kind() != '{' {
		return Past{}, errNoEvent
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return Past{}, errNoEvent
	}
	p := Past{Source: text(e.Source), At: text(e.Timestamp), Cause: -1}
	if cause, ok := whole(e.Cause); ok {
		p.Cause = cause
	}
	action, observation := text(e.Action), text(e.Observation)
	if action == "" && observation == "" {
		return Past{}, errNoEvent
	}
	var err error
	if p.Event, err = modern(raw); err != nil {
		return Past{}, fmt.Errorf("it cannot be rewritten: %w", err)
	}
	p.Spent = spent(e.Metrics)
	if action != "" {
		p.Kind = action
		p.act(e)
	} else {
		p.Kind = observation
		p.observe(e)
	}
	return p, nil
}

// pastItem is an event with the fields that recordings do not need.
type pastItem struct {
	replayItem `json:",inline"`
	Timestamp  jsontext.Value `json:"timestamp"`
	Content    jsontext.Value `json:"content"`
	Extras     jsontext.Value `json:"extras"`
	Metrics    jsontext.Value `json:"llm_metrics"`
}

// act interprets an action.
func (p *Past) act(e pastItem) {
	args, err := e.args()
	if err != nil {
		args = arguments{}
	}
	switch {
	case p.Kind == "message":
		p.message(args)
	case p.Kind == "condensation":
		p.Forgets = readCondensed(args)
	case p.Source != fromAgent || skipped[p.Kind]:
	case p.Kind == "finish":
		p.Words = form.Or(args.Text("final_thought"), form.Or(args.Text("thought"), "All done! What's next on the agenda?"))
	case p.Kind == "reject":
		p.Words = form.Or(args.Text("thought"), "The agent rejected the task.")
	case args.Text("confirmation_state") == "awaiting_confirmation": // it is repeated after the user has answered
	default:
		p.Made = e.made(p.Kind, args)
	}
}

func (p *Past) message(args arguments) {
	content := args.Text("content")
	switch p.Source {
	case fromUser:
		images := args["image_urls"]
		if len(images) == 0 {
			images = args["images_urls"]
		}
		p.Said = &session.UserSaid{Text: content, Images: fitting(images, MaxImages, checkImageForm), Files: fitting(args["file_urls"], MaxFiles, checkFile)}
	case fromAgent:
		p.Words = content
	default:
		p.Note = content
	}
}

// fitting returns the strings of a list that pass check.
func fitting(raw []byte, most int, check func(string) (typ, msg string)) []string {
	var out []string
	for _, s := range form.Details[[]string](raw) {
		if typ, _ := check(s); typ == "" && len(out) < most {
			out = append(out, s)
		}
	}
	return out
}

// made returns the call of an action: as the model wrote it if that was recorded, else as
// the action says. Nil for an action without a tool call.
func (e pastItem) made(action string, args arguments) *PastCall {
	m, told := e.metadata()
	if !told && !acts(action) {
		return nil
	}
	name, raw := m.name, m.arguments
	if name == "" || raw == nil {
		name, raw = e.spelt(action, args)
	}
	c := &PastCall{Answer: m.answer, Text: m.content}
	if callName.MatchString(m.id) {
		c.ID = m.id
	}
	if c.Text == "" && action != "think" { // whose thought is its content
		c.Text = args.Text("thought")
	}
	c.Calls = e.siblings(c.ID)
	if len(c.Calls) == 0 {
		c.Calls = []session.ToolCall{{ID: c.ID, Name: name, Args: raw}}
	}
	return c
}

// acts reports whether an action is a tool call even if no model response was recorded.
func acts(action string) bool {
	d, _, ok := tool.ForAction(action)
	return action == foreignAction || ok && d.Legacy.Observe != nil
}

// spelt returns the tool call that an action stands for.
func (e pastItem) spelt(action string, args arguments) (string, stdjson.RawMessage) {
	name, raw, err := e.tool(action, args)
	if d, a, ok := tool.ForAction(action); ok && d.Instead != nil {
		name, raw, err = e.read(d.Name, a.Read, args)
	}
	if err == nil {
		return name, raw
	}
	if form.KindOf(e.Args) != '{' {
		return action, stdjson.RawMessage("{}")
	}
	return action, stdjson.RawMessage(e.Args)
}

// siblings are all calls of the recorded answer that were to be made; none if the
// answer does not have the call with this id.
func (e pastItem) siblings(id string) []session.ToolCall {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	raw := form.Details[struct {
		Response struct {
			Choices []struct {
				Message struct {
					Calls []struct {
						ID       string   `json:"id"`
						Function function `json:"function"`
					} `json:"tool_calls"`
				} `json:"message"`
			} `json:"choices"`
		} `json:"model_response"`
	}](stdjson.RawMessage(e.Metadata))
	if id == "" || len(raw.Response.Choices) == 0 {
		return nil
	}
	var out []session.ToolCall
	seen := map[string]bool{}
	for _, c := range raw.Response.Choices[0].Message.Calls {
		if !callName.MatchString(c.ID) || seen[c.ID] || !callName.MatchString(c.Function.Name) || formOf(c.Function.Name).Observe == nil {
			continue
		}
		seen[c.ID] = true
		args := stdjson.RawMessage(c.Function.Arguments)
		if !jsontext.Value(args).IsValid() { // the model wrote no JSON
			args = stdjson.RawMessage(form.AppendString(nil, c.Function.Arguments))
		}
		out = append(out, session.ToolCall{ID: c.ID, Name: c.Function.Name, Args: args})
	}
	if !seen[id] {
		return nil
	}
	return out
}

// readCondensed returns the events that a condensation removed, or nil if it names none.
func readCondensed(args arguments) *Condensed {
	f := &Condensed{IDs: form.Details[[]int64](args["forgotten_event_ids"]), Summary: args.Text("summary")}
	from, ok := args.Number("forgotten_events_start_id")
	to, both := args.Number("forgotten_events_end_id")
	switch {
	case ok && both && from >= 0 && to >= from && to < 1<<32:
		f.From, f.To = int64(from), int64(to)
	case len(f.IDs) == 0:
		return nil
	}
	return f
}

// mostSpent is where a sum stops being one, in dollars.
const mostSpent = 1e6

// spent are the sums that an action carries.
func spent(raw jsontext.Value) *session.Totals {
	if raw.Kind() != '{' {
		return nil
	}
	m := form.Details[struct {
		Cost  float64 `json:"accumulated_cost"`
		Usage struct {
			Model      string `json:"model"`
			Input      int64  `json:"prompt_tokens"`
			Output     int64  `json:"completion_tokens"`
			CacheRead  int64  `json:"cache_read_tokens"`
			CacheWrite int64  `json:"cache_write_tokens"`
		} `json:"accumulated_token_usage"`
	}](stdjson.RawMessage(raw))
	u := m.Usage
	if !(m.Cost >= 0 && m.Cost <= mostSpent) || min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 {
		return nil
	}
	return &session.Totals{Cost: session.FromDollars(m.Cost), Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Model: u.Model}
}
