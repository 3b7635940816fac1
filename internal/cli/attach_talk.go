package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"deckhand/api"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// mode is what the next line is taken for.
type mode int

const (
	aMessage  mode = iota
	anAnswer       // to whether a call may be made
	aReason        // why it may not
	newParams      // the edited arguments
	aYes           // whether the edited call may be made, if it has high risk
)

// typing is what is known of the person at the keyboard.
type typing struct {
	mode     mode
	question api.Approval // the call that is asked about
	edited   map[string]any
	told     string // what always would allow, if it was said above the question
	pressed  int    // how often Ctrl-C, and nothing since
	away     bool   // the connection is cut
	// unsent is a message that failed, and sentAs the name under which it is sent
	// again, so that it is not said twice.
	unsent, sentAs string
}

// unknownCall stands for a call of which the server did not tell when it was
// asked. It is asked again after the next connection.
const unknownCall = "unknown"

// patience is how long the server may take to accept what a person says.
const patience = 10 * time.Second

// beat is how often a spinner moves.
const beat = 120 * time.Millisecond

// Terminals mark what is pasted if they are asked to, so that its line ends send nothing.
const markPastes, leavePastes = "\x1b[?2004h", "\x1b[?2004l"

const talkHelp = `Type a line to send a message to the agent, also while it is working. Alt-Enter inserts a line break.
/pause, /resume   pause the agent after this step; continue
/stop             stop the agent and its sandbox; the next message starts both again
/detach           detach, like Ctrl-D, without affecting the agent
Ctrl-C            pause after this step; twice: interrupt the step; three times: detach`

// talk lets a person take part until they leave.
func (a *attached) talk(ctx context.Context) error {
	restore, err := quiet(os.Stdin)
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer func() { restore() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.listen(ctx)
	defer signal.Stop(a.signals)
	fmt.Fprint(a.Out, markPastes)
	defer fmt.Fprint(a.Out, leavePastes)
	defer a.Leave()
	tick := time.NewTicker(beat)
	defer tick.Stop()
	began := false
	for {
		if a.present && !began {
			began = true
			a.Notice("Type a message to the agent. Ctrl-C pauses after this step, Ctrl-D detaches, /help shows more")
			a.Type(a.in)
		}
		if began {
			a.consider(ctx)
			a.SetFoot(a.foot())
		}
		select {
		case it, ok := <-a.items:
			if !ok {
				return a.gone()
			}
			a.take(it)
		case b := <-a.keys:
			a.pressed = 0
			if a.typed(ctx, b) {
				return a.detach()
			}
		case s := <-a.signals:
			switch {
			case s == syscall.SIGCONT: // the shell made the terminal its own meanwhile
				if _, err := quiet(os.Stdin); err != nil {
					return err
				}
				a.Draw()
			case s == syscall.SIGWINCH:
				a.Draw()
			case s != os.Interrupt || a.interrupted(ctx):
				return a.detach()
			}
		case a.away = <-a.cut:
			if a.question.CallID == unknownCall {
				a.question.CallID = ""
			}
		case <-tick.C:
			a.Tick()
		}
	}
}

// detach leaves the agent as it is.
func (a *attached) detach() error {
	a.Leave()
	left := "the agent keeps working"
	if !a.Working() {
		left = "agent state: " + a.Where()
	}
	a.Notice("detached; " + left + ". Reattach with: deckhand attach " + a.id[:min(leastID, len(a.id))])
	return nil
}

// foot says what the agent does, and what a line would do now.
func (a *attached) foot() terminal.Foot {
	if a.away {
		return terminal.Foot{State: "connection lost; reconnecting", Prompt: ">", Busy: true}
	}
	switch a.mode {
	case anAnswer:
		return terminal.Foot{State: a.asks(), Prompt: "reply:", Asks: true}
	case aReason:
		return terminal.Foot{State: "Reason for the agent (Enter to end the turn)", Prompt: "reason:", Asks: true}
	case aYes:
		return terminal.Foot{State: terminal.SureText, Prompt: "yes?", Asks: true}
	case newParams:
		return terminal.Foot{State: "Edit the call (Enter to keep it)", Prompt: "edit:", Asks: true}
	}
	text := a.Where()
	if a.Working() {
		text += " · " + time.Since(a.Since).Round(time.Second).String()
	}
	return terminal.Foot{State: text, Prompt: ">", Busy: a.Working()}
}

// asks is the question whether a call may be made.
func (a *attached) asks() string {
	text := a.approval().Text()
	switch {
	case a.question.Pattern == nil:
		return text
	case a.told == *a.question.Pattern:
		return text + ", [a]lways"
	}
	return text + ", [a]lways " + *a.question.Pattern
}

// approval is the question for the person.
func (a *attached) approval() terminal.Question {
	q := terminal.Question{Risk: session.Risk(a.question.Risk)}
	if a.question.Pattern != nil {
		q.Pattern = *a.question.Pattern
	}
	return q
}

// tellPattern says what "always" would mean, where there is no room in the question:
// nobody shall allow what they did not read.
func (a *attached) tellPattern() {
	if a.told = ""; a.question.Pattern != nil && utf8.RuneCountInString(a.asks()) >= a.Width() {
		a.told = *a.question.Pattern
		a.Notice("always allows: " + a.told)
	}
}

// consider finds out whether the person is to be asked something.
func (a *attached) consider(ctx context.Context) {
	asks := a.State == session.AgentAwaitingYes
	if asks && a.Expects {
		return // the call comes next
	}
	switch {
	case !asks:
		if a.mode != aMessage { // another client has decided
			a.in.Set("")
		}
		a.mode, a.question = aMessage, api.Approval{}
	case asks && a.mode == aMessage && a.question.CallID == "" && !a.away:
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		got, err := a.server.Approvals(ctx, a.id)
		if err != nil {
			a.Problem(Plainly(err).Error())
			a.question.CallID = unknownCall
			return
		}
		if len(got.Pending) > 0 {
			a.question, a.mode = got.Pending[0], anAnswer
			a.Asked(session.ToolCall{ID: a.question.CallID, Name: a.question.Tool, Args: a.question.Arguments}, a.question.Reason)
			a.tellPattern()
		}
	}
}

// interrupted is Ctrl-C. While the agent works it pauses after the step in
// progress, and interrupts the step when pressed again. Otherwise it is a wish to
// leave, when pressed again.
func (a *attached) interrupted(ctx context.Context) (leave bool) {
	a.pressed++
	switch {
	case a.pressed > 2, a.pressed == 2 && !a.Working():
		return true
	case !a.Working():
		a.Notice("Ctrl-C again to detach")
	case a.pressed == 2:
		if a.interrupt(ctx) {
			a.Notice("interrupting this step; Ctrl-C again to detach and leave the agent paused")
		}
	case a.want(ctx, "paused"):
		a.Pausing = true
		hint := "Ctrl-C again to interrupt this step" // a status event says that it pauses
		if a.in != nil {
			hint += ", Enter to continue"
		}
		a.Notice(hint)
	}
	return false
}

// typed takes what was pressed; leave is true if the person has had enough.
func (a *attached) typed(ctx context.Context, b []byte) (leave bool) {
	for _, t := range a.in.Feed(b) {
		if t.End {
			return true
		}
		if a.line(ctx, strings.TrimSpace(t.Line)) {
			return true
		}
	}
	a.Draw()
	return false
}

// line does what a line asks for.
func (a *attached) line(ctx context.Context, text string) (leave bool) {
	switch a.mode {
	case anAnswer:
		a.answer(ctx, text)
		return false
	case aReason:
		a.decide(ctx, api.Decision{Decision: "reject", Reason: api.Some(text)})
		return false
	case newParams:
		a.change(ctx, text)
		return false
	case aYes:
		if a.mode = anAnswer; !terminal.Sure(text) {
			a.Problem(terminal.ErrNotSure.Error())
			return false
		}
		a.decide(ctx, api.Decision{Decision: "accept", Arguments: api.Some(a.edited)})
		return false
	}
	switch text {
	case "":
		if a.State == session.AgentPaused || a.Pausing {
			a.want(ctx, "running")
		}
	case "/help":
		a.Notice(talkHelp)
	case "/detach":
		return true
	case "/pause":
		a.want(ctx, "paused")
	case "/resume":
		a.want(ctx, "running")
	case "/stop":
		a.want(ctx, "stopped")
	default:
		a.say(ctx, text)
	}
	return false
}

// say sends a message. One that fails is there to be sent again.
func (a *attached) say(ctx context.Context, text string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if text != a.unsent {
		a.unsent, a.sentAs = text, rand.Text()
	}
	if err := a.server.Say(ctx, a.id, text, a.sentAs); err != nil {
		a.Problem("not sent: " + Plainly(err).Error())
		a.in.Set(text)
		return
	}
	a.unsent = ""
}

// want asks for another state of the agent.
func (a *attached) want(ctx context.Context, state string) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := a.server.SetState(ctx, a.id, state)
	if err != nil {
		a.Problem(Plainly(err).Error())
	}
	return err == nil
}

// interrupt pauses the agent at once.
func (a *attached) interrupt(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := a.server.Interrupt(ctx, a.id)
	if err != nil {
		a.Problem(Plainly(err).Error())
	}
	return err == nil
}

// answer takes a line for the answer to a question.
func (a *attached) answer(ctx context.Context, text string) {
	kind, reason, err := a.approval().Parse(text)
	if err != nil {
		a.Problem(err.Error())
		return
	}
	switch kind {
	case terminal.Approve:
		a.decide(ctx, api.Decision{Decision: "accept"})
	case terminal.Always:
		a.decide(ctx, api.Decision{Decision: "always"})
	case terminal.AskReason:
		a.mode = aReason
	case terminal.Reject:
		a.decide(ctx, api.Decision{Decision: "reject", Reason: api.Some(reason)})
	case terminal.EditCall:
		a.mode = newParams
		text, _ := a.editable()
		a.in.Set(text)
	}
}

// editable is what a person may change of the call: its main argument, or the
// arguments as JSON.
func (a *attached) editable() (text string, one bool) {
	if _, text, one = tool.Main(a.question.Tool, a.question.Arguments); one {
		return text, true
	}
	return string(a.question.Arguments), false
}

// change makes the call in another way.
func (a *attached) change(ctx context.Context, text string) {
	was, one := a.editable()
	if a.mode = anAnswer; text == "" || text == strings.TrimSpace(was) {
		return
	}
	raw := json.RawMessage(text)
	if one {
		raw, _ = tool.WithMain(a.question.Tool, a.question.Arguments, text) // they are JSON, or there would be no main one
	}
	args := map[string]any{}
	if err := json.Unmarshal(raw, &args); err != nil {
		a.Problem("not a JSON object: " + err.Error())
		a.mode = newParams
		a.in.Set(text)
		return
	}
	if a.approval().High() {
		a.mode, a.edited = aYes, args
		return
	}
	a.decide(ctx, api.Decision{Decision: "accept", Arguments: api.Some(args)})
}

// decide answers the question. An answer that comes too late changes nothing.
func (a *attached) decide(ctx context.Context, d api.Decision) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	d.CallID = api.Some(a.question.CallID)
	if err := a.server.Decide(ctx, a.id, d); err != nil {
		a.Problem("decision not sent: " + Plainly(err).Error())
		a.mode = anAnswer
		return
	}
	a.mode = aMessage // and the question stays the one that was answered, until the state tells so
}
