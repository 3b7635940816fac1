package agent

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"deckhand/internal/agent/history"
	"deckhand/internal/llm"
	"deckhand/internal/session"
)

// transcript is the history as the model sees it. It is read once when a
// worker begins and then advanced: a step costs what is new, not what is old.
type transcript struct {
	id       session.ID
	upTo     int64
	messages []entry
	// shown are the same messages without what only we know of them.
	shown []llm.Message
	// written is the request as it was last sent. It holds as long as shown only grows.
	written *llm.Written
	size    int64 // of all messages, in bytes that may be tokens
	// counted is how many tokens the model was last shown, as the provider says,
	// together with those of its answer; since is the size of what came after it.
	counted, since int64
	// model is who was asked last: each counts in its own way.
	model string
	extra string
	// asking is true between a call and its answer. Messages of that time are shown after the
	// answer, which was given without knowing them.
	asking bool
	held   []entry
	// open are the calls of the last answer that have no result yet.
	open []string
	// edited are arguments that the person put in place of the model's, by call.
	edited map[string]json.RawMessage
	// first is the number of the person's first message.
	first     int64
	firstText string
	// recalled are the messages for which it was looked what the agent should
	// know, known the names of what was found.
	recalled map[int64]bool
	known    []string
	pictured int
	// previous are the details of each tool's last good result.
	previous map[string]json.RawMessage
	repeats  history.Repeats
	// path is what of the log the model sees; turned means that it must be read again.
	path   history.Path
	turned bool
	// folder is where the shell stands, also after what the model does not see; see history.Folder.
	folder string
}

// entry is a message with the number of its event.
type entry struct {
	llm.Message
	number  int64
	summary bool
	context bool // what was recalled for the message of the same number
}

func newTranscript(id session.ID) *transcript {
	return &transcript{id: id, written: &llm.Written{}, recalled: map[int64]bool{}, previous: map[string]json.RawMessage{}, edited: map[string]json.RawMessage{}}
}

// weight is about how much memory it takes up. A text is there once, though two
// lists lead to it.
func (t *transcript) weight() int64 {
	n := 4<<10 + t.written.Size()
	for i := range t.messages {
		m := &t.messages[i]
		n += 512 + int64(len(m.Text)+len(m.Raw))
		for _, image := range m.Images {
			n += int64(len(image))
		}
		for _, c := range m.Calls {
			n += 128 + int64(len(c.Args))
		}
	}
	for _, details := range t.previous {
		n += int64(len(details))
	}
	return n
}

// advance reads what was appended, up to a state of the session at least.
func (t *transcript) advance(ctx context.Context, log session.Log, st session.State) error {
	for e, err := range session.ReadUpTo(ctx, log, t.id, t.upTo, st.Last) {
		if err != nil {
			return err
		}
		t.upTo, t.turned, t.folder = e.Number, t.path.Add(e) || t.turned, history.Folder(e.Payload, t.folder)
		if !t.turned {
			t.add(e)
		}
	}
	if t.turned {
		return t.reread(ctx, log)
	}
	return nil
}

func (t *transcript) add(e session.Event) {
	switch p := e.Payload.(type) {
	case session.Created:
		t.extra = p.Instructions
	case session.UserSaid:
		t.said(e.Number, p)
	case session.Withdrawn:
		t.withdraw(p.Messages)
	case session.Recalled:
		t.attach(p)
	case session.TurnBegan:
		t.repeats = history.Repeats{}
	case session.Nudged:
		if p.Rule == ruleStuck {
			t.repeats = history.Repeats{Nudged: true}
		}
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: "[From the system that runs you, not from the user] " + p.Text}, number: e.Number})
	case session.ModelAsked:
		if p.Purpose == "" {
			t.asking, t.model = true, p.Model
		}
	case session.ModelAnswered:
		if p.Purpose == "" {
			t.answered(e.Number, p)
		}
	case session.ToolReturned:
		if p.Origin == "" {
			t.returned(e.Number, p)
		}
	case session.CommandEnded:
		text := "[The user ran this command in the shell, without asking you for anything]\n$ " + p.Command + "\n" +
			history.Text(session.ToolReturned{Output: p.Output, Details: p.Details})
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: text, Aside: true}, number: e.Number, context: true})
	case session.ModelFailed:
		t.settle()
	case session.ApprovalGiven:
		if p.Args != nil {
			t.edited[p.ID] = p.Args
		}
	case session.Paused:
		if !p.AfterStep {
			t.close(e.Number)
		}
	case session.Stopped, session.Failed:
		t.close(e.Number)
	case session.Condensed:
		t.replace(p)
	case session.Restored:
		t.restored(e.Number, p)
	case session.Imported:
		if means := p.Means(); means != nil {
			t.add(session.Event{Number: e.Number, At: e.At, Payload: means})
		}
	}
}

func (t *transcript) said(number int64, p session.UserSaid) {
	t.repeats = history.Repeats{}
	if t.first == 0 {
		t.first, t.firstText = number, p.Text
	}
	text := p.Text
	if len(p.Files) > 0 {
		text += "\n\n[Files of this message: " + strings.Join(p.Files, ", ") + "]"
	}
	if strings.TrimSpace(text) == "" && len(p.Images) == 0 {
		text = "[an empty message]" // providers refuse messages without content
	}
	t.tell(entry{Message: llm.Message{Role: llm.User, Text: text, Images: p.Images}, number: number})
}

// tell shows a message now, or when the answer and its results are there.
func (t *transcript) tell(m entry) {
	if t.asking || len(t.open) > 0 {
		t.held = append(t.held, m)
		return
	}
	t.push(m)
}

func (t *transcript) answered(number int64, p session.ModelAnswered) {
	m := llm.Message{Role: llm.Assistant, Text: p.Text, Raw: p.Raw}
	for _, c := range p.ToolCalls {
		m.Calls = append(m.Calls, llm.Call{ID: c.ID, Name: c.Name, Args: c.Args})
		t.open = append(t.open, c.ID)
	}
	if len(p.ToolCalls) == 0 {
		t.repeats.Said(p.Text)
		if strings.TrimSpace(p.Text) == "" {
			m.Text = "[an empty answer]" // all of it was thoughts; providers refuse messages without content
		}
	}
	t.push(entry{Message: m, number: number})
	if p.Usage.Input > 0 {
		t.counted, t.since = p.Usage.Input+p.Usage.Output, 0
	}
	t.settle()
}

func (t *transcript) returned(number int64, p session.ToolReturned) {
	t.open = slices.DeleteFunc(t.open, func(id string) bool { return id == p.ID })
	failed := p.Outcome != session.Succeeded
	if !failed && len(p.Details) > 0 {
		t.previous[p.Name] = p.Details
	}
	t.repeats.Did(p)
	t.push(t.result(number, p))
	delete(t.edited, p.ID)
	if len(t.open) == 0 {
		t.settle()
	}
}

// result returns the message that contains the result of a call.
func (t *transcript) result(number int64, p session.ToolReturned) entry {
	text := history.Text(p)
	if args, ok := t.edited[p.ID]; ok {
		text = "[The user changed the arguments of this call to " + string(args) + "]\n" + text
	}
	return entry{Message: llm.Message{Role: llm.ToolResult, Call: p.ID, Name: p.Name, Text: text, Images: p.Images, Failed: p.Outcome != session.Succeeded}, number: number}
}

// close gives a result to calls that were never made, because the person
// stopped or paused before their turn came: models insist on one for each.
func (t *transcript) close(number int64) {
	for _, id := range t.open {
		t.push(entry{Message: llm.Message{Role: llm.ToolResult, Call: id, Name: t.nameOf(id), Text: "This call was not made: the user interrupted the work before it.", Failed: true}, number: number})
	}
	t.open = nil
	t.settle()
}

func (t *transcript) nameOf(call string) string {
	for _, m := range slices.Backward(t.messages) {
		for _, c := range m.Calls {
			if c.ID == call {
				return c.Name
			}
		}
	}
	return ""
}

// attach puts what was recalled before the message it was recalled for.
func (t *transcript) attach(r session.Recalled) {
	t.recalled[r.Of] = true
	for _, item := range r.Items {
		t.known = append(t.known, item.Name)
	}
	told := recalledEntry(r)
	of := func(m entry) bool { return m.number == r.Of }
	if i := slices.IndexFunc(t.held, of); i >= 0 {
		t.held = slices.Insert(t.held, i, told)
		return
	}
	for i := len(t.messages) - 1; i >= 0; i-- {
		if of(t.messages[i]) {
			t.messages, t.shown = slices.Insert(t.messages, i, told), slices.Insert(t.shown, i, told.Message)
			t.written = &llm.Written{}
			t.grow(weight(told))
			return
		}
	}
}

func recalledEntry(r session.Recalled) entry {
	return entry{Message: llm.Message{Role: llm.User, Text: r.Text, Aside: true}, number: r.Of, context: true}
}

// news are the messages of people that the model was not shown yet.
func (t *transcript) news(shown int64) []entry {
	var out []entry
	for _, m := range slices.Backward(t.messages) {
		if m.number <= shown {
			break
		}
		if m.Role == llm.User && !m.summary && !m.context {
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// replace puts a summary in the place of old messages.
func (t *transcript) replace(p session.Condensed) {
	from := slices.IndexFunc(t.messages, func(m entry) bool { return m.number >= p.From })
	if from < 0 {
		return
	}
	to := from
	for to < len(t.messages) && t.messages[to].number <= p.To {
		to++
	}
	if to == from {
		return
	}
	pictured := t.pictured // of what is left, this much has its images already
	switch {
	case pictured >= to:
		pictured -= to - from - 1
	case pictured > from:
		pictured = from
	}
	short := entry{number: p.From, summary: true, Message: llm.Message{Role: llm.User, Text: history.Intro + p.Summary}}
	t.pictured = pictured
	t.rewrite(slices.Concat(t.messages[:from], []entry{short}, t.messages[to:]))
}

// settle shows what was held back during a call.
func (t *transcript) settle() {
	t.asking = false
	if len(t.open) > 0 {
		return
	}
	for _, m := range t.held {
		t.push(m)
	}
	t.held = nil
}

func (t *transcript) push(m entry) {
	t.messages = append(t.messages, m)
	t.shown = append(t.shown, m.Message)
	t.grow(weight(m))
}

func (t *transcript) grow(n int64) {
	t.size += n
	t.since += n
}

// weight is how many tokens a message may have at most.
func weight(m entry) int64 {
	n := messageTokens + len(m.Text) + len(m.Raw) + imageTokens*len(m.Images)
	for _, c := range m.Calls {
		n += messageTokens + len(c.Name) + len(c.Args)
	}
	return int64(n)
}

func (t *transcript) request(p Profile, offer []llm.Tool, answer int64) llm.Request {
	return llm.Request{Model: p.ModelName, System: system(p, t.extra), Messages: t.shown, Tools: offer, MaxOutput: answer, Conversation: string(t.id), Written: t.written}
}

// system is all that the model is told before the conversation.
func system(p Profile, instructions string) string {
	if instructions == "" {
		return p.System
	}
	return strings.TrimSpace(p.System) + "\n\nInstructions for this conversation:\n" + instructions
}

// withdraw removes messages that the model was not shown, with what was recalled for them.
func (t *transcript) withdraw(messages []int64) {
	gone := func(m entry) bool { return slices.Contains(messages, m.number) }
	t.held = slices.DeleteFunc(t.held, gone)
	if from := slices.IndexFunc(t.messages, gone); from >= 0 {
		rest := t.messages[from:]
		t.messages, t.shown = slices.Clone(t.messages[:from]), slices.Clone(t.shown[:from])
		t.pictured, t.written = min(t.pictured, from), &llm.Written{}
		for _, m := range rest {
			if t.grow(-weight(m)); !gone(m) {
				t.push(m)
			}
		}
	}
	if !slices.Contains(messages, t.first) {
		return
	}
	t.first, t.firstText = 0, ""
	for _, m := range slices.Concat(t.messages, t.held) {
		if m.Role == llm.User && !m.summary && !m.context {
			t.first, t.firstText = m.number, m.Text
			return
		}
	}
}

// reread reads what the model sees after a restore, as if there were no other events: summaries too have nothing of what was undone.
func (t *transcript) reread(ctx context.Context, log session.Log) error {
	fresh := newTranscript(t.id)
	fresh.path, fresh.upTo, fresh.folder = t.path, t.upTo, t.folder
	for e, err := range t.path.Read(ctx, log, t.id, t.upTo) {
		if err != nil {
			return err
		}
		fresh.add(e)
	}
	*t = *fresh
	return nil
}

// restored tells the model that files changed, or that the history is an earlier one.
func (t *transcript) restored(number int64, p session.Restored) {
	t.repeats = history.Repeats{}
	const text = "The user restored the files of the workspace, or this conversation, to an earlier point. Read files again before you change them."
	if p.Conversation {
		t.close(number) // the point may lie between a call and its result
	}
	if p.Files || p.Conversation && p.Action != session.RestoreUndo {
		t.tell(entry{Message: llm.Message{Role: llm.User, Text: "[From the system that runs you, not from the user] " + text, Aside: true}, number: number, context: true})
	}
}

// rewrite puts other messages in the place of all.
func (t *transcript) rewrite(messages []entry) {
	t.messages, t.shown, t.size, t.counted, t.since, t.pictured = nil, nil, 0, 0, 0, min(t.pictured, len(messages))
	t.written = &llm.Written{}
	for _, m := range messages {
		t.push(m)
	}
}
