package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"deckhand/client"
	"deckhand/internal/cli/track"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// Logs is deckhand logs.
type Logs struct {
	ID string `arg:"" optional:"" help:"Conversation ID; a unique prefix is enough. Default: the newest conversation."`
	RemoteFlags
	Follow bool  `name:"follow" short:"f" help:"Keep printing new events until the conversation is deleted or you press Ctrl-C."`
	JSON   bool  `name:"json" help:"Print events as JSON, one per line."`
	After  int64 `name:"after" placeholder:"N" help:"Only events after this event number."`
}

// Help implements kong.HelpProvider.
func (Logs) Help() string {
	return `Each line starts with the event number and the time. Output is not truncated. With --json, each line is an event as described in docs/events.md.

` + remoteHelp + `

Examples:
  deckhand logs -f
  deckhand logs 3f9c2a11 --after 120
  deckhand logs 3f9c2a11 --json | jq -c 'select(.kind == "tool_called") | .payload.args'

Exit codes: 0 success, 1 error, 2 usage error, 130 Ctrl-C.`
}

// Run prints what happened in a conversation.
func (c *Logs) Run(ctx context.Context, o *Output) error {
	r, err := c.Connect()
	if err != nil {
		return err
	}
	found, err := r.find(ctx, c.ID)
	if err != nil {
		return err
	}
	last := int64(0)
	if !c.Follow {
		if found.Queue != nil && !c.JSON {
			fmt.Fprintln(o.Stderr, found.Queue.Message)
		}
		if last, err = r.newest(ctx, found.ConversationID); err != nil || last <= c.After {
			return err
		}
	}
	w := newLogLines(o.Stdout)
	for it, err := range r.Client.Follow(ctx, found.ConversationID, c.After) {
		switch {
		case ctx.Err() != nil:
			return Exit(ExitInterrupted)
		case err != nil:
			return Plainly(err)
		case it.Queue != nil && it.Queue.Position > 0 && !c.JSON:
			_, err = fmt.Fprintln(o.Stderr, it.Queue.Message)
		case it.Event == nil:
			continue // of an answer that is being written; the whole of it follows
		case c.JSON:
			_, err = fmt.Fprintf(o.Stdout, "%s\n", terminal.JSON(it.Raw))
		default:
			err = w.add(it)
		}
		if err != nil || !c.Follow && it.Event != nil && it.ID >= last {
			return err
		}
	}
	fmt.Fprintln(o.Stderr, "the conversation was deleted")
	return nil
}

// logLines writes events as lines that can be read alone.
type logLines struct {
	to   io.Writer
	text bytes.Buffer
	show *terminal.Display
}

func newLogLines(to io.Writer) *logLines {
	l := &logLines{to: to}
	l.show = terminal.New(terminal.Options{Out: &l.text, Messages: true, Whole: true})
	return l
}

// add writes one event.
func (l *logLines) add(it client.Item) error {
	l.text.Reset()
	events, err := native.Read(*it.Event)
	if err != nil {
		return err
	}
	for _, e := range events {
		l.show.Remote(e)
		if line := stateLine(e.Payload); l.text.Len() == 0 && line != "" {
			l.show.Notice(line)
		}
	}
	var out bytes.Buffer
	for line := range bytes.Lines(l.text.Bytes()) {
		fmt.Fprintf(&out, "%d %s %s\n", it.ID, toSecond(it.Event.Time), bytes.TrimRight(line, "\n"))
	}
	_, err = l.to.Write(out.Bytes())
	return err
}

// stateLine says which state an event has brought, "" if none.
func stateLine(p session.Payload) string {
	state, why := session.AgentRunning, ""
	switch p := p.(type) {
	case session.Titled:
		return "title: " + p.Title
	case session.TurnBegan, session.Resumed:
	case session.Created, session.StartRequested:
		state = session.AgentLoading
	case session.ApprovalAsked:
		if p.Told {
			return ""
		}
		state = session.AgentAwaitingYes
	case session.ApprovalGiven:
		if why = p.Reason; p.Approved {
			return "approved"
		}
		return withReason("rejected", why)
	case session.Stopped:
		state, why = session.AgentStopped, p.Reason
	case session.TurnEnded:
		state, why = p.State, p.Reason
	case session.StateChanged:
		state, why = p.State, p.Reason
	default:
		return ""
	}
	word, _ := track.Word(state)
	return withReason(word, why)
}

func withReason(word, why string) string { return strings.TrimSuffix(word+": "+why, ": ") }

// toSecond is a time without what is smaller than a second.
func toSecond(stamp string) string {
	if len(stamp) > len("2006-01-02T15:04:05") {
		return stamp[:len("2006-01-02T15:04:05")] + "Z"
	}
	return stamp
}
