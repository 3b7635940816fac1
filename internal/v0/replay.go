package v0

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// Limits of a recording; a larger one is refused and never cut.
const (
	MaxReplay      = 16 << 20 // bytes
	MaxReplayItems = 10_000
	maxReplayDepth = 128 // schemas of tools nest deeply
	// maxReplayTokens is a hundred for each event: names, values, and the ends of arrays and objects.
	maxReplayTokens = 1_000_000
)

// Recorded is one step of a recording: a person's message, or one answer of the agent.
type Recorded struct {
	// Said is the person's message; nil for an answer.
	Said *session.UserSaid
	// Text and Calls are the answer.
	Text  string
	Calls []session.ToolCall
	// Ends says that the agent waits for the person after this step.
	Ends bool
	// Notes say what of the recording was left out before this step (after it, if it
	// is the last one), in sentences for people.
	Notes []string
}

// ReplayError says where a recording cannot be understood. It quotes no value.
type ReplayError struct {
	// Item is the index in the array of events, -1 for the recording as a whole.
	Item int
	// Field is the path inside the item, empty for all of it.
	Field   string
	Message string
}

func (e *ReplayError) Error() string {
	switch {
	case e.Item < 0:
		return e.Message
	case e.Field == "":
		return fmt.Sprintf("Event [%d] of the recording: %s", e.Item, e.Message)
	}
	return fmt.Sprintf("Event [%d] of the recording, %s: %s", e.Item, e.Field, e.Message)
}

func badReplay(message string) error { return &ReplayError{Item: -1, Message: message} }

// ParseReplay takes a recording apart: our own trajectories and those of the legacy
// server, as an array of events or inside {"trajectory": […]}. What the environment
// did, what was observed and what a person rejected is not done again. Every error is
// a *ReplayError.
func ParseReplay(raw string) ([]Recorded, error) {
	items, err := replayItems(raw)
	if err != nil {
		return nil, err
	}
	events := make([]replayItem, len(items))
	r := replay{rejected: map[int64]bool{}}
	for i, raw := range items {
		events[i].index = i
		if raw.Kind() != '{' || json.Unmarshal(raw, &events[i]) != nil {
			return nil, &ReplayError{Item: i, Message: "An event is an object."}
		}
		if cause, ok := whole(events[i].Cause); ok && text(events[i].Observation) == "user_rejected" {
			r.rejected[cause] = true
		}
	}
	for _, e := range events {
		if err := r.event(e); err != nil {
			return nil, err
		}
	}
	return r.end()
}

// replayItems finds the events.
func replayItems(raw string) ([]jsontext.Value, error) {
	if len(raw) > MaxReplay {
		return nil, badReplay("A recording has at most 16 MiB.")
	}
	if err := checkReplay(raw); err != nil {
		return nil, err
	}
	list := jsontext.Value(strings.TrimSpace(raw))
	if list.Kind() == '{' {
		var wrapped struct {
			Trajectory jsontext.Value `json:"trajectory"`
		}
		if json.Unmarshal(list, &wrapped) != nil || wrapped.Trajectory == nil {
			return nil, badReplay(`A recording is an array of events, or an object with one under "trajectory".`)
		}
		list = wrapped.Trajectory
	}
	var items []jsontext.Value
	if list.Kind() != '[' || json.Unmarshal(list, &items) != nil {
		return nil, badReplay(`A recording is an array of events, or an object with one under "trajectory".`)
	}
	if len(items) > MaxReplayItems {
		return nil, badReplay("A recording has at most 10000 events.")
	}
	return items, nil
}

// checkReplay reads all of it once before anything is believed.
func checkReplay(raw string) error {
	d := jsontext.NewDecoder(strings.NewReader(raw))
	for n := 1; ; n++ {
		_, err := d.ReadToken()
		switch {
		case n > maxReplayTokens:
			return badReplay("A recording has at most 1000000 JSON tokens.")
		case errors.Is(err, jsontext.ErrDuplicateName):
			return badReplay(fmt.Sprintf("The recording has the same key twice in one object, at byte %d.", d.InputOffset()))
		case err != nil:
			return badReplay(fmt.Sprintf("The recording is not valid JSON in UTF-8, at byte %d.", d.InputOffset()))
		case d.StackDepth() > maxReplayDepth:
			return badReplay("The recording is nested too deeply.")
		case d.StackDepth() == 0:
			if rest := strings.TrimSpace(raw[d.InputOffset():]); rest != "" {
				return badReplay("Something follows the recording.")
			}
			return nil
		}
	}
}

// replayItem is an event of a recording, its parts not yet believed.
type replayItem struct {
	index       int
	ID          jsontext.Value `json:"id"`
	Source      jsontext.Value `json:"source"`
	Action      jsontext.Value `json:"action"`
	Observation jsontext.Value `json:"observation"`
	Args        jsontext.Value `json:"args"`
	Cause       jsontext.Value `json:"cause"`
	Timeout     jsontext.Value `json:"timeout"`
	Metadata    jsontext.Value `json:"tool_call_metadata"`
	Status      jsontext.Value `json:"status_update"`
}

// text is a JSON string, empty if it is none.
func text(v jsontext.Value) string {
	if v.Kind() != '"' {
		return ""
	}
	return form.Details[string]([]byte(v))
}

// whole is a JSON number without a fraction.
func whole(v jsontext.Value) (int64, bool) {
	var n int64
	if v.Kind() != '0' || json.Unmarshal(v, &n) != nil {
		return 0, false
	}
	return n, true
}

// replay collects steps.
type replay struct {
	steps []Recorded
	// first is the index of the event that became the first step.
	first int
	// waits says of a step that it is a message after which the agent waits.
	waits map[int]bool
	notes []string
	// rejected are the ids of actions that a person did not want.
	rejected map[int64]bool
	// answer is the model's answer that the last step belongs to, and at that step.
	answer string
	at     int
	calls  int
}

func (r *replay) note(sentence string) { r.notes = append(r.notes, sentence) }

func (r *replay) add(e replayItem, step Recorded) {
	if len(r.steps) == 0 {
		r.first = e.index
	}
	step.Notes, r.notes = r.notes, nil
	r.steps = append(r.steps, step)
}

// skipped are the actions that follow from others or need no repetition.
var skipped = map[string]bool{
	"system": true, "recall": true, "change_agent_state": true, "null": true, "condensation": true, "condensation_request": true, "loop_recovery": true,
}

// event takes one event over.
func (r *replay) event(e replayItem) error {
	action := text(e.Action)
	switch {
	case len(e.Action) > 0 && e.Action.Kind() != '"' && e.Action.Kind() != 'n':
		return e.bad("action", "Must be a string.")
	case len(e.Source) > 0 && e.Source.Kind() != '"' && e.Source.Kind() != 'n':
		return e.bad("source", "Must be a string.")
	case action == "" && (len(e.Observation) > 0 || len(e.Status) > 0):
		return nil
	case action == "":
		return e.bad("", "It is neither an action nor an observation.")
	case text(e.Source) == fromEnvironment || skipped[action]:
		return nil
	}
	args, err := e.args()
	if err != nil {
		return err
	}
	switch action {
	case "message":
		return r.message(e, args)
	case "reject":
		r.add(e, Recorded{Text: form.Or(args.Text("thought"), "The agent rejected the task."), Ends: true})
		return nil
	case "start", "pause", "resume", "stop", "push", "send_pr":
		r.note(fmt.Sprintf("The recorded action %q was left out: it is nothing that an agent does.", action))
		return nil
	}
	if id, ok := whole(e.ID); ok && r.rejected[id] || args.Text("confirmation_state") == "rejected" {
		r.note("A recorded action was left out because the user had rejected it.")
		return nil
	}
	if args.Text("confirmation_state") == "awaiting_confirmation" || args.Yes("hidden") {
		return nil // it comes again when it was confirmed
	}
	return r.call(e, action, args)
}

func (r *replay) message(e replayItem, args arguments) error {
	content, err := e.str(args, "content")
	switch {
	case err != nil:
		return err
	case longer(content, MaxContent):
		return e.bad("args.content", "The content of a message has at most 1048576 characters.")
	case strings.ContainsRune(content, 0):
		return e.bad("args.content", "NUL characters are not allowed.")
	}
	if text(e.Source) != fromUser {
		if r.waits == nil {
			r.waits = map[int]bool{}
		}
		r.add(e, Recorded{Text: content})
		r.waits[len(r.steps)-1] = len(args["wait_for_response"]) == 0 || args.Yes("wait_for_response")
		return nil
	}
	said := &session.UserSaid{Text: content}
	images := "image_urls"
	if len(args[images]) == 0 {
		images = "images_urls" // as it was called once
	}
	if said.Images, err = e.list(args, images, MaxImages, checkImage); err != nil {
		return err
	}
	if said.Files, err = e.list(args, "file_urls", MaxFiles, checkFile); err != nil {
		return err
	}
	r.add(e, Recorded{Said: said})
	return nil
}

// end decides what is only known when all steps are.
func (r *replay) end() ([]Recorded, error) {
	if len(r.steps) == 0 {
		return nil, badReplay("There is nothing in the recording that could be done again.")
	}
	if first := &r.steps[0]; first.Said == nil {
		if len(first.Calls) > 0 || !r.isMessage(0) {
			return nil, &ReplayError{Item: r.first, Message: "A recording begins with a message; this is an action without one."}
		}
		// The legacy server treats the first message as the user's, whatever its source.
		first.Said, first.Text = &session.UserSaid{Text: first.Text}, ""
	}
	for i := 1; i < len(r.steps); i++ {
		if !r.isMessage(i) {
			continue
		}
		if i+1 < len(r.steps) {
			r.steps[i].Ends = r.steps[i+1].Said != nil
		} else {
			r.steps[i].Ends = r.waits[i]
		}
	}
	last := &r.steps[len(r.steps)-1]
	last.Notes = append(last.Notes, r.notes...)
	return r.steps, nil
}

func (r *replay) isMessage(i int) bool {
	_, ok := r.waits[i]
	return ok
}
