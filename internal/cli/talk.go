package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/creack/pty"

	"deckhand/api"
	"deckhand/internal/cli/schema"
	"deckhand/internal/conversation"
	"deckhand/internal/live"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// talk is a conversation between a person at a terminal, or a script, and an agent.
type talk struct {
	LocalServer
	*terminal.Display
	o    *Output
	json bool
	// in is where the user answers; nil without a terminal.
	in *lines

	grew    chan struct{}
	deltas  chan delta
	signals chan os.Signal
	tick    <-chan time.Time // for a spinner, where there is one
	late    <-chan time.Time
	began   time.Time

	last     int64
	call     session.ToolCalled    // the newest one
	question session.ApprovalAsked // the newest one
	// rejected is true when a call was refused without a word, played when a
	// replay is over after which nothing shall be done.
	rejected, played bool
	silent           bool
	advice           func(errorID, reason string) string
	// schema is that of the final answer, nil for none. said is the newest answer, output its JSON, and
	// asked how often the agent was asked for another one.
	schema *schema.Answer
	said   string
	output json.RawMessage
	asked  int
	reason string          // why it ended, if the log does not say it
	failed <-chan struct{} // closed when a part of the server gave up
}

// LocalServer is the server that a conversation at the terminal runs on, without an HTTP API.
type LocalServer struct {
	ID       session.ID
	Owner    string
	Sessions *session.Sessions
	// Conversations are the use cases, with the rules of all entry points.
	Conversations *conversation.Service
	Log           session.Log
	Hub           *live.Hub
	// Frame is an event in the native format, with the owner's secrets masked.
	Frame func(session.ID, session.Event) (live.Frame, bool, error)
	// Work starts the agent. The channel is closed when a part of the server gave up.
	Work func(context.Context) (failed <-chan struct{})
	// Unconfined says that commands run without a sandbox.
	Unconfined bool
	// Kept is the data directory, if it stays when the conversation is over, and Reopen says how to open it.
	Kept, Reopen string
}

// TalkOptions are what the command line says about a conversation at the terminal.
type TalkOptions struct {
	JSON    bool
	Silent  bool // no model is ever asked
	Timeout time.Duration
	// Continue continues the conversation of the server instead of creating one.
	Continue bool
	// Schema is that of the final answer; nil for none.
	Schema *schema.Answer
	// Advice returns the reason of a failed turn with what the user can do about it; nil leaves it as it is.
	Advice func(errorID, reason string) string
}

// Talk has a conversation with an agent on a local server, and returns the exit code as an error.
func Talk(ctx context.Context, s LocalServer, f TalkOptions, o *Output, c conversation.Create) error {
	if f.Schema != nil && !f.JSON { // standard output is for the answer
		o = &Output{Stdout: o.Stderr, Stderr: o.Stderr, Answer: o.Stdout}
	}
	code, err := newTalk(f, s, o).run(ctx, c, f.Continue)
	if r := conversation.RefusalOf(err); r != nil {
		err = Refused(r, r.Text)
	}
	switch {
	case errors.Is(err, syscall.EPIPE): // the reader of the output is gone
		return Exit(ExitInterrupted)
	case err != nil:
		return err
	}
	return Exit(code)
}

// delta is more of what is being written.
type delta struct {
	Call string `json:"call"`
	Text string `json:"text"`
}

func newTalk(f TalkOptions, s LocalServer, o *Output) *talk {
	t := &talk{LocalServer: s, o: o, json: f.JSON, silent: f.Silent, advice: f.Advice, schema: f.Schema, grew: make(chan struct{}, 1), deltas: make(chan delta), signals: make(chan os.Signal, 4), began: time.Now()}
	screen, _ := o.Stdout.(*os.File)
	look := terminal.Options{Out: o.Stdout}
	if screen != nil && Columns(screen) > 0 {
		look.Color = WantsColour()
		look.Width = func() int { return Columns(screen) }
		if Columns(os.Stdin) > 0 && !f.JSON {
			t.in = newLines(os.Stdin)
		}
	}
	t.Display = terminal.New(look)
	if look.Color {
		t.tick = time.Tick(beat)
	}
	if f.Timeout > 0 {
		t.late = time.After(f.Timeout)
	}
	return t
}

// Columns is how wide a terminal is, 0 for what is none. One that does not know is usual.
func Columns(f *os.File) int {
	_, n, err := pty.Getsize(f)
	if err != nil {
		return 0
	}
	if n == 0 {
		return 80
	}
	return n
}

// Appended implements session.Observer.
func (t *talk) Appended(id session.ID, _ int64) {
	if id == t.ID {
		t.lookAgain()
	}
}

// lookAgain ends the next wait at once.
func (t *talk) lookAgain() {
	select {
	case t.grew <- struct{}{}:
	default:
	}
}

// run has the conversation and returns the exit code.
func (t *talk) run(ctx context.Context, c conversation.Create, resume bool) (code int, err error) {
	// Whoever reads the output may go away: that ends us too, but not before what was begun is taken apart.
	signal.Notify(t.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer signal.Stop(t.signals)
	t.Messages = c.Request.ReplayJSON.Value != ""
	if t.Unconfined && !t.json {
		t.Notice("no sandbox: commands run as you, with access to all your files and your network")
	}
	t.Sessions.Observe(t)
	if err := t.begin(ctx, c, resume); err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			_ = t.halt(ctx) // as finish does
		}
	}()
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() { defer close(followed); t.follow(following) }()
	defer func() { stop(); <-followed }()
	for {
		st, err := t.drain(ctx)
		if err != nil {
			return 0, err
		}
		code, over, err := t.decide(ctx, st)
		if err != nil {
			return 0, err
		}
		if over && code == ExitDone && t.schema != nil {
			code, over, err = t.checkAnswer(ctx)
			if err != nil {
				return 0, err
			}
		}
		if over {
			return code, t.finish(ctx, code)
		}
		if code, over, err = t.wait(ctx); err != nil || over {
			return code, errors.Join(err, t.finish(ctx, code))
		}
	}
}

// begin creates the conversation, or says the next message in an existing one, of which only what
// follows is shown.
func (t *talk) begin(ctx context.Context, c conversation.Create, resume bool) error {
	if !resume {
		t.failed = t.Work(ctx)
		c.User, c.Trigger, c.Request.ConversationID = t.Owner, conversation.TriggerTerminal, api.Some(string(t.ID))
		_, err := t.Conversations.Create(ctx, c)
		return err
	}
	st, err := t.Sessions.Load(ctx, t.ID)
	if err != nil {
		return err
	}
	t.last, t.failed = st.Last, t.Work(ctx)
	said := session.UserSaid{Text: c.Request.InitialUserMsg.Value, Images: c.Request.ImageURLs.Value}
	if more := c.Request.ConversationInstructions.Value; more != "" {
		said.Text += "\n\n" + more
	}
	_, err = t.Conversations.Say(ctx, t.Owner, t.ID, said)
	return err
}

// wait waits until something happens.
func (t *talk) wait(ctx context.Context) (code int, over bool, err error) {
	for {
		select {
		case <-t.tick:
			t.Tick()
			continue
		case <-t.grew:
		case d := <-t.deltas:
			if _, err := t.drain(ctx); err != nil {
				return 0, false, err
			}
			if !t.json {
				t.Delta(d.Call, d.Text)
			}
		case s := <-t.signals:
			return t.interrupt(ctx, s)
		case <-t.late:
			return t.endEarly(ctx, tooLate)
		case <-t.failed:
			return ExitError, true, errors.New("the agent cannot continue: the log could not be written")
		}
		return 0, false, nil
	}
}

// follow passes on what is being written.
func (t *talk) follow(ctx context.Context) {
	for f, err := range t.Hub.Follow(ctx, t.ID, 0, live.FollowOptions{}) {
		if err != nil {
			return
		}
		var d delta
		if f.Event != live.EventDelta || json.Unmarshal(f.Data, &d) != nil {
			continue
		}
		select {
		case t.deltas <- d:
		case <-ctx.Done():
			return
		}
	}
}

// drain shows everything that is in the log by now, and returns what it adds up to.
func (t *talk) drain(ctx context.Context) (session.State, error) {
	for {
		for e, err := range t.Log.Read(ctx, t.ID, t.last) {
			if err != nil {
				return session.State{}, err
			}
			t.last = e.Number
			if err := t.take(ctx, e); err != nil {
				return session.State{}, err
			}
		}
		st, err := t.Sessions.Load(ctx, t.ID)
		if err != nil || st.Last <= t.last {
			return st, err
		}
	}
}

// take shows one event and remembers what is asked about later.
func (t *talk) take(ctx context.Context, e session.Event) error {
	switch p := e.Payload.(type) {
	case session.TurnBegan:
		t.rejected = false
	case session.ToolCalled:
		t.call = p
	case session.ModelAnswered:
		if p.Purpose == "" && p.Text != "" {
			t.said = p.Text
		}
	case session.ToolReturned:
		if display, view := tool.Show(p.Name, p.Args); display.Content == tool.Message && view.Text != "" {
			t.said = view.Text
		}
	case session.ApprovalAsked:
		t.question = p
	case session.ApprovalGiven:
		t.rejected = !p.Approved && p.Reason == ""
	case session.Replayed:
		t.played = t.silent && p.Done
	}
	if t.silent && t.played {
		return nil // whatever follows is not part of the recording
	}
	if !t.json {
		if p, ok := e.Payload.(session.TurnEnded); ok && t.advice != nil {
			p.Reason = t.advice(p.ErrorID, p.Reason)
			e.Payload = p
		}
		t.Event(e)
		return t.written()
	}
	f, shown, err := t.Frame(t.ID, e)
	if err == nil && shown {
		_, err = fmt.Fprintf(t.o.Stdout, "%s\n", terminal.JSON(f.Data))
	}
	return err
}

// decide says what the state of the conversation calls for: to wait, to ask the
// person, or to end.
func (t *talk) decide(ctx context.Context, st session.State) (code int, over bool, err error) {
	if call, asked := st.Awaiting(); asked {
		return t.approve(ctx, call.ID)
	}
	switch {
	case t.played:
		return ExitDone, true, t.halt(ctx)
	case st.Failed:
		return ExitError, true, nil
	case st.Paused:
		return t.paused(ctx)
	case st.Wants() || st.InTurn || st.Pending():
		return 0, false, nil
	}
	switch {
	case st.Agent == session.AgentError, st.Agent == session.AgentRateLimited: // it gave up
		return CodeOfError(st.ErrorID), true, nil
	case t.rejected:
		return ExitRejected, true, nil
	case st.Agent == session.AgentAwaitingUser && t.in != nil && t.schema == nil:
		return t.answer(ctx)
	}
	return ExitDone, true, nil
}

// maxAnswers is how often the agent may answer before its answer is given up.
const maxAnswers = 3

// checkAnswer checks the final answer against the schema, and asks for another one if it does not match.
func (t *talk) checkAnswer(ctx context.Context) (code int, over bool, err error) {
	output, wrong := t.schema.Check(t.said)
	if wrong == nil {
		t.output = output
		return ExitDone, true, nil
	}
	if t.asked++; t.asked >= maxAnswers {
		t.reason = "the final answer was not accepted: " + wrong.Error()
		if !t.json {
			t.Problem(t.reason)
		}
		return ExitSchema, true, nil
	}
	t.said = ""
	return 0, false, t.say(ctx, t.schema.Again(wrong))
}

// CodeOfError is the exit code for the way in which a turn failed.
func CodeOfError(id string) int {
	switch id {
	case "STATUS$ERROR_MAX_ITERATIONS", "STATUS$ERROR_BUDGET":
		return ExitLimit
	case "STATUS$ERROR_STUCK":
		return ExitStuck
	}
	return ExitError
}

// halt stops the agent, whatever it is doing.
func (t *talk) halt(ctx context.Context) error {
	_, _, err := t.Conversations.Stop(ctx, t.Owner, t.ID, "ended at the terminal")
	return err
}

// finish says how it ended.
func (t *talk) finish(ctx context.Context, code int) error {
	st, err := t.drain(ctx)
	if err == nil {
		err = t.halt(ctx) // so that a kept conversation does not continue when it is opened
	}
	if err != nil {
		return err
	}
	e := Ended{Code: code, Finished: st.Agent == session.AgentFinished, Reason: cmp.Or(t.reason, st.Reason), ID: string(t.ID), Totals: st.Totals, Took: time.Since(t.began), DataDir: t.Kept, Answer: t.output}
	if t.Kept != "" {
		e.Reopen = t.Reopen
	}
	return errors.Join(e.Print(t.o, t.json, t.Display), t.written())
}

// written returns an error if standard output cannot be written. A terminal that is closed sends a signal instead.
func (t *talk) written() error {
	if t.in != nil || t.o.Answer != nil || t.Err() == nil {
		return nil
	}
	return fmt.Errorf("cannot write to standard output: %w", t.Err())
}
