package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/cli/custom"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// plain is a session line by line: on a dumb terminal, or without a terminal.
type plain struct {
	*conversation
	in      chan string // closed at the end of the input
	items   chan client.Item
	failed  error
	signals chan os.Signal
	stop    context.CancelFunc
	// asks is true if a user can answer: without a terminal, calls that need approval are rejected.
	asks bool
	// prompt is the last prompt, and pressed the time of the last Ctrl-C if no line followed it.
	prompt  string
	pressed time.Time
	// said is true if a message was sent, and unsaid if the last one could not be.
	said, unsaid bool
}

// lines runs the session line by line, until the input ends.
func (s *conversation) lines(ctx context.Context, o *cli.Output, in *os.File) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // signals are handled below
	defer cancel()
	look := terminal.Options{Out: o.Stdout, OnStatus: func(string) {}}
	if screen, ok := o.Stdout.(*os.File); ok && cli.Columns(screen) > 0 {
		look.Width = func() int { return cli.Columns(screen) }
	}
	s.Display = terminal.New(look)
	p := &plain{conversation: s, in: make(chan string), signals: make(chan os.Signal, 4), asks: cli.Columns(in) > 0}
	signal.Notify(p.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(p.signals)
	go func() { // it ends with the program: a read of a terminal cannot be cancelled
		defer close(p.in)
		r := bufio.NewReader(in)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				select {
				case p.in <- strings.TrimRight(line, "\r\n"):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	var err error
	if len(s.offer) > 0 {
		err = p.pick(ctx)
	}
	if err == nil {
		if s.id != "" {
			p.follow(ctx)
		}
		err = p.talk(ctx)
	}
	if p.stop != nil {
		p.stop()
	}
	if errors.Is(err, errQuit) || errors.Is(err, io.EOF) {
		return p.outcome()
	}
	return err
}

// outcome returns the exit code of the last turn for a script, nil for a user at a terminal.
func (p *plain) outcome() error {
	switch {
	case p.asks:
		return nil
	case p.unsaid:
		return cli.Exit(cli.ExitError)
	case !p.said:
		return nil
	case p.State == session.AgentError || p.State == session.AgentRateLimited:
		return cli.Exit(cli.CodeOfError(p.ErrorID))
	case p.Rejected:
		return cli.Exit(cli.ExitRejected)
	}
	return nil
}

// pick offers sessions by number.
func (p *plain) pick(ctx context.Context) error {
	for i, c := range p.offer {
		p.Notice(fmt.Sprintf("%d  %s", i+1, oneLine(c)))
	}
	p.show("Session number (Enter for a new one):")
	line, err := p.read(ctx)
	n := 0
	if err != nil {
		return err
	}
	if _, err := fmt.Sscan(line, &n); err != nil {
		return nil
	}
	if n < 1 || n > len(p.offer) {
		return cli.Usagef("there is no session %d", n)
	}
	return p.reopen(ctx, p.offer[n-1])
}

// follow reads the events of the open conversation.
func (p *plain) follow(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	items, id, after := make(chan client.Item), p.id, p.last
	p.items, p.Messages = items, !p.present() // a terminal shows new messages itself
	go func() {
		defer close(items)
		for it, err := range p.Client.Follow(ctx, id, after) {
			if err != nil {
				p.failed = err
				return
			}
			select {
			case items <- it:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// errQuit ends the session, and errPaused the question about a call, because the agent was told to pause.
var errQuit, errPaused = errors.New("quit"), errors.New("paused")

// talk handles one line after the other, each when the agent has finished the one before.
func (p *plain) talk(ctx context.Context) error {
	for {
		err := p.settle(ctx)
		p.status(ctx)
		switch {
		case err != nil:
		case p.hasPlan():
			p.Notice(prompt.PlanReady)
		case p.State == session.AgentPaused && p.id != "":
			p.Notice(pausedText)
		}
		if err == nil {
			p.show(">")
			var line string
			if line, err = p.read(ctx); err == nil {
				err = p.line(ctx, line)
			}
		}
		if err != nil {
			return err
		}
	}
}

// show shows a prompt, on a terminal only.
func (p *plain) show(text string) {
	if p.prompt = text; p.asks {
		p.Prompt(text)
	}
}

// catchUp makes settle show the events of a command, such as what was restored.
func (p *plain) catchUp(ctx context.Context) {
	if n, err := cli.NewestEvent(ctx, p.Client, p.id); err == nil {
		p.newest = max(p.newest, n)
	}
}

// read returns the next line.
func (p *plain) read(ctx context.Context) (string, error) {
	line, err := p.next(ctx)
	for err == nil && strings.HasSuffix(line, "\\") {
		var more string
		if more, err = p.next(ctx); err == nil || errors.Is(err, io.EOF) {
			line = strings.TrimSuffix(line, "\\") + "\n" + more
		}
	}
	if errors.Is(err, io.EOF) && line != "" {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// next returns the next line as it was typed.
func (p *plain) next(ctx context.Context) (string, error) {
	for {
		select {
		case line, ok := <-p.in:
			p.pressed = time.Time{}
			if !ok {
				return "", io.EOF
			}
			return line, nil
		case s := <-p.signals:
			asked := p.question.CallID != ""
			if err := p.interrupted(ctx, s); err != nil {
				return "", err
			}
			if asked {
				return "", errPaused
			}
			p.Prompt(p.prompt)
		case <-ctx.Done():
			return "", errQuit
		}
	}
}

// quitTime is the time after Ctrl-C within which another Ctrl-C quits.
const quitTime = 5 * time.Second

// interrupted handles a signal. The first Ctrl-C pauses the agent after its step, the next one interrupts the step, or quits
// if it follows soon. Other signals quit.
func (p *plain) interrupted(ctx context.Context, s os.Signal) error {
	switch {
	case !p.asks:
		return cli.Exit(cli.ExitInterrupted)
	case s != os.Interrupt || time.Since(p.pressed) < quitTime:
		return errQuit
	}
	p.pressed = time.Now()
	p.Break()
	var err error
	switch {
	case p.Working() && p.Pausing:
		err = p.interrupt(ctx, p.id)
	case p.Working() || p.State == session.AgentAwaitingYes:
		p.Pausing = true
		err = p.want(ctx, p.id, "paused")
	}
	if err != nil {
		p.Problem(err.Error())
	}
	p.Notice("Ctrl-C again to quit")
	return nil
}

// settle shows events until the agent waits for the user.
func (p *plain) settle(ctx context.Context) error {
	for p.id != "" && (!p.present() || p.Working() || p.Unheard || p.State == session.AgentAwaitingYes) {
		if p.mustAsk() {
			if err := p.approve(ctx); err != nil && !errors.Is(err, errPaused) {
				return err
			}
		}
		select {
		case it, ok := <-p.items:
			if !ok {
				return errors.Join(errors.New("the session ended"), cli.Plainly(p.failed))
			}
			p.take(it)
			p.Messages = p.Messages && !p.present()
		case s := <-p.signals:
			if err := p.interrupted(ctx, s); err != nil {
				return err
			}
		case <-ctx.Done():
			return errQuit
		}
	}
	return nil
}

// approve asks about the pending call.
func (p *plain) approve(ctx context.Context) error {
	found, err := p.pending(ctx, p.id)
	if err != nil || found.CallID == "" {
		return err
	}
	p.ask(found)
	if !p.asks {
		p.Problem("this call needs approval, but there is no terminal to ask on, so it is rejected; use --yes to approve all calls")
		return p.decide(ctx, p.id, found.CallID, api.Decision{Decision: "reject"})
	}
	for {
		p.show(p.questionText() + ":")
		line, err := p.read(ctx)
		if err != nil {
			return err
		}
		if prompt.Known(line) {
			if err := p.line(ctx, line); err != nil || p.id == "" {
				return err
			}
			return p.approve(ctx) // the command may have changed what is to be approved
		}
		kind, reason, err := p.approval().Parse(line)
		if err != nil {
			p.Problem(err.Error())
			continue
		}
		d := api.Decision{Decision: "accept"}
		switch kind {
		case terminal.Always:
			d.Decision = "always"
		case terminal.Reject:
			d = api.Decision{Decision: "reject", Reason: api.Some(reason)}
		case terminal.AskReason:
			p.show("Reason for the agent (Enter to end the turn):")
			if reason, err = p.read(ctx); err != nil {
				return err
			}
			d = api.Decision{Decision: "reject", Reason: api.Some(reason)}
		case terminal.EditCall:
			p.show("New call:")
			if line, err = p.read(ctx); err != nil {
				return err
			}
			if was, _ := p.editable(); line == "" || line == strings.TrimSpace(was) {
				continue // an unchanged call is not approved
			}
			args, err := p.edited(line)
			if err == nil && p.approval().High() {
				p.show(terminal.SureText)
				if line, err = p.read(ctx); err != nil {
					return err
				}
				if !terminal.Sure(line) {
					err = terminal.ErrNotSure
				}
			}
			if err != nil {
				p.Problem(err.Error())
				continue
			}
			d.Arguments = api.Some(args)
		}
		return p.decide(ctx, p.id, found.CallID, d)
	}
}

// line handles a line: a command or a message.
func (p *plain) line(ctx context.Context, line string) error {
	if line == "" {
		if p.State == session.AgentPaused {
			err := p.want(ctx, p.id, "running")
			p.Unheard = err == nil // until the agent continues
			p.report("", err)
		}
		return nil
	}
	name, arguments, ok := prompt.IsCommand(line)
	if !ok {
		return p.tell(ctx, line)
	}
	c, known := prompt.Find(name)
	switch {
	case !known:
		opened, found, err := p.expand(ctx, p.id, name, arguments, p.retryKey(line), p.plan)
		if !found && err == nil {
			p.Problem(prompt.Unknown(name))
			return nil
		}
		p.told(ctx, opened, err)
		return nil
	case c.Agent && p.id == "":
		p.Problem("/" + c.Name + " needs a session; send a message first")
		return nil
	}
	switch c.Name {
	case "plan":
		return p.planMode(ctx, arguments)
	case "undo", "redo":
		text, notice, ask, err := p.restore(ctx, p.id, c.Name, arguments)
		if ask != nil {
			p.Problem(custom.OwnText(ask, c.Name))
			return nil
		}
		p.catchUp(ctx)
		p.report(notice, err)
		if err == nil && text != "" {
			p.Notice("the message was: " + text)
		}
		return nil
	case "quit":
		return errQuit
	case "new":
		if p.stop != nil {
			p.stop()
		}
		p.close()
		if arguments != "" {
			return p.tell(ctx, arguments)
		}
		return nil
	case "resume":
		found, err := cli.FindSession(ctx, p.Client, arguments, "/resume")
		if err != nil {
			p.Problem(err.Error())
			return nil
		}
		if p.stop != nil {
			p.stop()
		}
		if err := p.reopen(ctx, found); err != nil {
			p.Problem(err.Error())
		}
		p.follow(ctx)
		return nil
	}
	notice, err := p.do(ctx, c, arguments)
	p.report(notice, err)
	if c.Agent {
		p.catchUp(ctx)
	}
	p.Unheard = p.Unheard || c.Name == "continue" && err == nil && p.State == session.AgentPaused
	return nil
}

// report shows the result of a command.
func (p *plain) report(notice string, err error) {
	switch {
	case err != nil:
		p.Problem(err.Error())
	case notice != "":
		p.Notice(notice)
	}
}

// planMode handles /plan.
func (p *plain) planMode(ctx context.Context, arguments string) error {
	step, err := p.planOf(arguments)
	edited := ""
	if err == nil && step == prompt.PlanEdit {
		p.show("Enter the edited plan (end a line with a backslash to continue it):")
		if edited, err = p.read(ctx); err != nil || edited == "" {
			return err
		}
	}
	switch {
	case err != nil:
		p.Problem(err.Error())
		return nil
	case step == prompt.PlanApprove || step == prompt.PlanEdit:
		arguments = prompt.Approved(p.reply, edited)
		err = p.setPlan(ctx, p.id, false)
	case p.id == "": // applies from the first message on
		p.plan = step != prompt.PlanOff
		p.Notice(map[bool]string{true: "plan mode on", false: "plan mode off"}[p.plan])
	default:
		if err = p.setPlan(ctx, p.id, step != prompt.PlanOff); err == nil {
			p.plan = step != prompt.PlanOff
		}
	}
	if err != nil || step == prompt.PlanOn || step == prompt.PlanOff {
		p.report("", err)
		return nil
	}
	return p.tell(ctx, arguments)
}

// tell sends a message.
func (p *plain) tell(ctx context.Context, line string) error {
	opened, err := p.say(ctx, p.id, line, p.retryKey(line), p.plan)
	p.told(ctx, opened, err)
	return nil
}

// told is called after sending a message.
func (p *plain) told(ctx context.Context, opened *api.Conversation, err error) {
	if p.unsaid = err != nil; p.unsaid {
		p.Problem("not sent: " + err.Error())
		return
	}
	p.unsent, p.said = "", true
	if opened != nil {
		p.open(*opened)
		p.follow(ctx)
	}
	p.Unheard = true // until the agent reads it
}
