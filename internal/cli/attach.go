package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli/track"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// Attach is deckhand attach.
type Attach struct {
	ID string `arg:"" optional:"" help:"Conversation ID; a unique prefix is enough. Default: the newest conversation."`
	RemoteFlags
	After *int64 `name:"after" placeholder:"N" help:"Start after this event number; 0 shows all events. Default: the last 50 events."`
}

// Help implements kong.HelpProvider.
func (Attach) Help() string {
	return `Type at any time: a line is a message to the agent, or the reply to its question. Press Ctrl-C once to pause the agent after the current step, twice to interrupt the step, three times to detach. Ctrl-D on an empty line also detaches. Detaching does not affect the agent. Type /help for more.

Without a terminal, plain lines are printed until the agent finishes, and there are no prompts.

` + remoteHelp + `

Examples:
  deckhand attach
  deckhand attach 3f9c2a11 --after 0
  deckhand attach 3f9c2a11 | tee work.log

On a terminal, the exit code is 0. Otherwise:
0 finished or answered, 1 error, 2 usage error, 3 limit reached (iterations, budget), 4 a tool call was rejected or needs approval, 5 the agent was stuck, 130 paused, stopped or Ctrl-C.`
}

// recent is how much of the past is shown to who names no beginning.
const recent = 50

// Run shows a conversation until the person has had enough.
func (c *Attach) Run(ctx context.Context, o *Output) error {
	r, err := c.Connect()
	if err != nil {
		return err
	}
	found, err := r.find(ctx, c.ID)
	if err != nil {
		return err
	}
	return r.attach(ctx, o, found, c.After)
}

// attached is a conversation of a server, shown at a terminal or in a pipe.
type attached struct {
	*terminal.Display
	server *remote
	id     string
	// in is what the user types; nil without a terminal.
	in *terminal.Input

	items   chan client.Item
	failed  error // why items ended
	keys    chan []byte
	signals chan os.Signal
	cut     chan bool

	// newest is the number up to which the past goes; present is true when the
	// last one shown is beyond it.
	newest, last int64
	present      bool

	track.Agent
	halted bool // the conversation was stopped while it was shown

	typing
}

// attach shows a conversation, and ends with the exit code.
func (r *remote) attach(ctx context.Context, o *Output, c api.Conversation, from *int64) error {
	a := &attached{server: r, id: c.ConversationID, items: make(chan client.Item), keys: make(chan []byte), signals: make(chan os.Signal, 4), cut: make(chan bool, 1),
		Agent: track.Agent{State: session.AgentState(c.AgentState), Cost: session.FromDollars(c.AccumulatedCost), Since: time.Now()}}
	if c.ErrorID != nil {
		a.ErrorID = *c.ErrorID
	}
	var err error
	if a.newest, err = r.newest(ctx, a.id); err != nil {
		return err
	}
	after := max(a.newest-recent, 0)
	if from != nil {
		after = max(*from, 0)
	}
	look := terminal.Options{Out: o.Stdout, Messages: true}
	screen, _ := o.Stdout.(*os.File)
	if screen != nil && Columns(screen) > 0 {
		look.Color = WantsColour()
		look.Width = func() int { return Columns(screen) }
		if Columns(os.Stdin) > 0 {
			ctx = context.WithoutCancel(ctx) // Ctrl-C is a word to the agent
			signal.Notify(a.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer signal.Stop(a.signals)
			if os.Getenv("TERM") != "dumb" {
				a.in = &terminal.Input{}
			}
		}
	}
	a.Display = terminal.New(look)
	ctx, stop := context.WithCancel(ctx)
	r.HTTP.Transport = &watched{RoundTripper: http.DefaultTransport, cut: a.cut}
	defer func() { // the one who follows says last why it ended
		stop()
		for range a.items {
		}
	}()
	go a.follow(ctx, after)
	a.present, a.last = a.newest <= after, after
	if after > 0 {
		a.Notice(fmt.Sprintf("%s; showing events from %d (use --after 0 for all)", title(c), after+1))
	} else {
		a.Notice(title(c))
	}
	if a.in == nil {
		return a.watch(ctx)
	}
	return a.talk(ctx)
}

func title(c api.Conversation) string {
	if c.Title == "" {
		return c.ConversationID
	}
	return c.Title + " (" + c.ConversationID + ")"
}

// follow passes on what the server tells.
func (a *attached) follow(ctx context.Context, after int64) {
	defer close(a.items)
	for it, err := range a.server.Follow(ctx, a.id, after) {
		if err != nil {
			a.failed = err
			return
		}
		select {
		case a.items <- it:
		case <-ctx.Done():
			return
		}
	}
}

// watched tells when the stream is cut and when it is there again.
type watched struct {
	http.RoundTripper
	cut chan bool
}

// RoundTrip implements http.RoundTripper.
func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, "/events/stream") {
		select {
		case <-w.cut: // the news before is old
		default:
		}
		w.cut <- err != nil || res.StatusCode >= http.StatusInternalServerError
	}
	return res, err
}

// watch prints everything until the agent has nothing more to do, without prompts.
func (a *attached) watch(ctx context.Context) error {
	for {
		if over, code, err := a.over(ctx); err != nil || over {
			return errors.Join(err, Exit(code))
		}
		select {
		case it, ok := <-a.items:
			if ctx.Err() != nil {
				return Exit(ExitInterrupted)
			}
			if !ok {
				return a.gone()
			}
			a.take(it)
		case s := <-a.signals: // from a terminal that cannot be drawn on
			if s != os.Interrupt || a.interrupted(ctx) {
				return errors.Join(a.detach(), Exit(ExitInterrupted))
			}
		case <-a.cut: // it comes back by itself, and plain lines are no place to say so
		case <-ctx.Done():
			return Exit(ExitInterrupted)
		}
	}
}

// gone says why there is nothing more to show.
func (a *attached) gone() error {
	if a.failed != nil {
		return Plainly(a.failed)
	}
	return errors.New("the conversation was deleted")
}

// over says whether the agent has nothing more to do, and how that went.
func (a *attached) over(ctx context.Context) (over bool, code int, err error) {
	if !a.present || a.Working() {
		return false, 0, nil
	}
	if a.Unheard {
		if settled, err := a.heard(ctx); err != nil || !settled {
			return false, 0, Plainly(err)
		}
	}
	switch a.State {
	case session.AgentAwaitingYes:
		a.Problem("a tool call needs approval, but there is no terminal to ask on")
		return true, ExitRejected, nil
	case session.AgentError, session.AgentRateLimited:
		code = CodeOfError(a.ErrorID)
	case session.AgentPaused:
		code = ExitInterrupted
	case session.AgentStopped:
		if a.halted {
			code = ExitInterrupted
		}
	default:
		if a.Rejected {
			code = ExitRejected
		}
	}
	a.Notice(a.Where())
	return true, code, nil
}

// heard finds out whether what was said was taken up, and everything shown that
// came of it so far.
func (a *attached) heard(ctx context.Context) (bool, error) {
	waiting, err := a.server.Queue(ctx, a.id)
	if err != nil || len(waiting.Messages) > 0 {
		return false, err
	}
	if a.newest, err = a.server.newest(ctx, a.id); err != nil {
		return false, err
	}
	a.present = a.newest <= a.last
	a.Unheard = !a.present
	return a.present, nil
}

// take shows what came and remembers what it means.
func (a *attached) take(it client.Item) {
	switch {
	case it.Event != nil:
		events, err := native.Read(*it.Event)
		if err != nil {
			a.Problem(err.Error())
		}
		for _, e := range events {
			a.remember(e.Payload)
			a.Remote(e)
			a.tellDecision(e.Payload)
		}
	case it.Delta != nil:
		a.RemoteDelta(it.Delta.Call, it.Delta.Offset, it.Delta.Text)
	case it.Queue != nil:
		if said := a.Move(*it.Queue); said != "" {
			a.Notice(said)
		}
	}
	a.last = max(a.last, it.ID)
	a.present = a.present || a.last >= a.newest
}

// tellDecision says how a question was answered. A rejection is told by what
// comes of the call.
func (a *attached) tellDecision(p session.Payload) {
	given, ok := p.(session.ApprovalGiven)
	switch {
	case !ok, given.Approved && given.Late: // no decision
	case given.Approved && a.mode != aMessage:
		a.Notice("approved in another client")
	case given.Approved:
		a.Notice("allowed")
	case a.mode != aMessage:
		a.Notice("rejected in another client")
	}
}

// remember keeps what a fact says of the agent.
func (a *attached) remember(p session.Payload) {
	a.Remember(p)
	if _, stopped := p.(session.Stopped); stopped {
		a.halted = a.present
	}
}

// listen hands over what the person presses, until ctx ends.
func (a *attached) listen(ctx context.Context) {
	signal.Notify(a.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGWINCH, syscall.SIGCONT)
	go func() { // it ends with the program: nothing can end a read of a terminal
		for {
			b := make([]byte, 1024)
			n, err := os.Stdin.Read(b)
			if err != nil {
				b, n = []byte{4}, 1 // as if Ctrl-D were pressed
			}
			select {
			case a.keys <- b[:n]:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
}
