package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/cli/custom"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/cli/track"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// conversation is the open conversation and its state. It belongs to one goroutine; the methods that
// take a context and an ID use only the client, and may be called by others.
type conversation struct {
	Options
	*terminal.Display
	track.Agent

	id    string // "" until the first message
	title string
	model string
	mode  string
	offer []api.Conversation // to choose from before anything else
	// plan is true in plan mode, for this conversation or the next one. reply is the agent's last reply, "" after a new message.
	plan    bool
	planned bool // plan mode as of the last event
	reply   string
	prompts custom.Source
	queue   track.Queue

	// newest is the number of the last event before the conversation was opened, and last the newest one shown.
	newest, last int64
	// question is the call that needs approval, without an ID if there is none.
	question api.Approval
	// unsent is a message that could not be sent, and sentAs its idempotency key for the next attempt, so that it is
	// not said twice.
	unsent, sentAs string
}

// recent is the number of past events that are shown.
const recent = 50

// open makes a conversation the one that is shown.
func (s *conversation) open(c api.Conversation) {
	s.id, s.title, s.newest = c.ConversationID, c.Title, c.LastEventID
	s.last = max(s.newest-recent, 0)
	s.Agent = track.Agent{State: session.AgentState(c.AgentState), Cost: session.FromDollars(c.AccumulatedCost), Since: time.Now(), Window: s.Window}
	s.question, s.reply, s.queue, s.planned = api.Approval{}, "", track.Queue{}, false
	if c.ErrorID != nil {
		s.ErrorID = *c.ErrorID
	}
	if s.OnOpen != nil {
		s.OnOpen(s.id)
	}
}

// reopen opens an existing conversation. Streams do not send all events, so the server is asked for the last
// one that they send; without an answer, the past ends with the first event that arrives.
func (s *conversation) reopen(ctx context.Context, c api.Conversation) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.apply(ctx, c.ConversationID); err != nil {
		return err
	}
	c.LastEventID, _ = cli.NewestEvent(ctx, s.Client, c.ConversationID)
	s.open(c)
	s.model, s.mode = "", "" // a session of its own: nothing changed
	s.status(ctx)
	return nil
}

// close closes the conversation; the next message starts a new one.
func (s *conversation) close() {
	s.id, s.title, s.newest, s.last = "", "", 0, 0
	s.Agent, s.question, s.plan, s.reply, s.queue = track.Agent{Window: s.Window}, api.Approval{}, false, "", track.Queue{}
}

// present reports whether all past events have been shown.
func (s *conversation) present() bool { return s.last >= s.newest }

// take shows a frame and updates the state.
func (s *conversation) take(it client.Item) {
	switch {
	case it.Event != nil:
		events, err := native.Read(*it.Event)
		if err != nil {
			s.Problem(err.Error())
		}
		for _, e := range events {
			before := s.State
			s.Remember(e.Payload)
			for _, e := range s.queue.Take(e, before) {
				s.Remote(e)
			}
			switch p := e.Payload.(type) {
			case session.Titled:
				s.title = p.Title
			case session.Overridden:
				if p.Plan && !s.planned { // an earlier reply is not a plan
					s.reply = ""
				}
				s.plan, s.planned = p.Plan, p.Plan
			case session.UserSaid:
				s.reply = ""
			case session.ModelAnswered:
				if p.Purpose == "" {
					s.reply = p.Text
				}
			}
		}
	case it.Delta != nil:
		s.RemoteDelta(it.Delta.Call, it.Delta.Offset, it.Delta.Text)
	case it.Queue != nil:
		if said := s.Move(*it.Queue); said != "" {
			s.Notice(said)
		}
	}
	s.last = max(s.last, it.ID)
	if s.State != session.AgentAwaitingYes {
		s.question = api.Approval{}
	}
}

// mustAsk reports whether a call needs approval and is not known yet.
func (s *conversation) mustAsk() bool {
	return s.id != "" && s.present() && s.State == session.AgentAwaitingYes && !s.Expects && s.question.CallID == ""
}

// pending asks the server which call needs approval.
func (s *conversation) pending(ctx context.Context, id string) (api.Approval, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := s.Client.Approvals(ctx, id)
	if err != nil || len(got.Pending) == 0 {
		return api.Approval{}, cli.Plainly(err)
	}
	return got.Pending[0], nil
}

// ask shows the call that needs approval.
func (s *conversation) ask(a api.Approval) {
	s.question = a
	s.Asked(session.ToolCall{ID: a.CallID, Name: a.Tool, Args: a.Arguments}, a.Reason)
	if p := text(a.Pattern); p != "" {
		s.Notice("always allows: " + p)
	}
}

// approval returns the question for the user.
func (s *conversation) approval() terminal.Question {
	return terminal.Question{Risk: session.Risk(s.question.Risk), Pattern: text(s.question.Pattern)}
}

// questionText returns the question as one line.
func (s *conversation) questionText() string {
	q := s.approval()
	text := q.Text()
	switch {
	case q.Pattern == "":
	case q.Risk == session.RiskHigh:
		text += ", always"
	default:
		text += ", [a]lways"
	}
	return text
}

// retryKey returns the idempotency key of a message, the same for one that failed before.
func (s *conversation) retryKey(message string) string {
	if message != s.unsent {
		s.unsent, s.sentAs = message, rand.Text()+rand.Text()
	}
	return s.sentAs
}

// say sends a message to a conversation. If id is "", it creates a conversation with the message, in plan mode if plan is true.
func (s *conversation) say(ctx context.Context, id, message, retryKey string, plan bool) (opened *api.Conversation, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if id != "" {
		return nil, cli.Plainly(s.Client.Say(ctx, id, message, retryKey))
	}
	create := api.CreateConversation{InitialUserMsg: api.Some(message), ConversationID: api.Some(strings.ToLower(retryKey[:32]))}
	first := plan || s.Shared
	if first { // the agent must not start earlier
		create.InitialUserMsg = api.Opt[string]{}
	}
	made, err := s.Client.Create(ctx, create)
	if err == nil && first {
		if err = s.apply(ctx, made.ConversationID); err == nil && plan {
			err = s.setPlan(ctx, made.ConversationID, true)
		}
		if err == nil {
			err = s.Client.Say(ctx, made.ConversationID, message, retryKey)
		}
	}
	if err != nil {
		return nil, cli.Plainly(err)
	}
	return &api.Conversation{ConversationID: made.ConversationID, AgentState: string(session.AgentLoading)}, nil
}

// decide answers the question.
func (s *conversation) decide(ctx context.Context, id, call string, d api.Decision) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.CallID = api.Some(call)
	return cli.Plainly(s.Client.Decide(ctx, id, d))
}

// editable returns the part of the call that the user can edit: its main argument, or the arguments as JSON.
func (s *conversation) editable() (text string, one bool) {
	if _, text, one = tool.Main(s.question.Tool, s.question.Arguments); one {
		return text, true
	}
	return string(s.question.Arguments), false
}

// edited returns the arguments as edited by the user.
func (s *conversation) edited(text string) (map[string]any, error) {
	raw := json.RawMessage(text)
	if _, one := s.editable(); one {
		raw, _ = tool.WithMain(s.question.Tool, s.question.Arguments, text) // they are JSON, or there would be no main one
	}
	args := map[string]any{}
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, errors.New("not a JSON object: " + err.Error())
	}
	return args, nil
}

// want requests another state of the agent; interrupt pauses it immediately.
func (s *conversation) want(ctx context.Context, id, state string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return cli.Plainly(s.Client.SetState(ctx, id, state))
}

func (s *conversation) interrupt(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return cli.Plainly(s.Client.Interrupt(ctx, id))
}

// files lists files to mention: all files of the folder, or on another server those in the folder
// given by the prefix.
func (s *conversation) files(ctx context.Context, id, prefix string) []string {
	if s.Elsewhere == "" {
		return prompt.Files(s.Folder)
	}
	if id == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	folder, _ := path.Split(prefix)
	found, _ := s.Client.ListFiles(ctx, id, folder) // without a list there is nothing to complete
	return found
}
