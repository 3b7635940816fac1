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

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
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
}

// lines runs the session line by line, until the input ends.
func (s *conversation) lines(ctx context.Context, o *cli.Output, in *os.File) error {
	ctx, cancel := context.WithCancel(ctx)
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
	if len(s.offer) > 0 {
		if err := p.pick(ctx); err != nil {
			return err
		}
	}
	if s.id != "" {
		p.follow(ctx)
	}
	err := p.talk(ctx)
	if p.stop != nil {
		p.stop()
	}
	return err
}

// pick offers sessions by number.
func (p *plain) pick(ctx context.Context) error {
	for i, c := range p.offer {
		p.Notice(fmt.Sprintf("%d  %s", i+1, oneLine(c)))
	}
	p.Prompt("Session number (Enter for a new one):")
	line, ok := <-p.in
	n := 0
	if _, err := fmt.Sscan(line, &n); !ok || err != nil {
		return nil
	}
	if n < 1 || n > len(p.offer) {
		return cli.Usagef("there is no session %d", n)
	}
	p.reopen(ctx, p.offer[n-1])
	return nil
}

// follow reads the events of the open conversation.
func (p *plain) follow(ctx context.Context) {
	ctx, p.stop = context.WithCancel(ctx)
	items, id, after := make(chan client.Item), p.id, p.last
	p.items = items
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

// errQuit ends the session.
var errQuit = errors.New("quit")

// talk handles one line after the other, each when the agent has finished the one before.
func (p *plain) talk(ctx context.Context) error {
	for {
		err := p.settle(ctx)
		if err == nil && p.hasPlan() {
			p.Notice(planReady)
		}
		if err == nil {
			p.Prompt(">")
			var line string
			if line, err = p.read(ctx); err == nil {
				err = p.line(ctx, line)
			}
		}
		switch {
		case errors.Is(err, errQuit) || errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// read returns the next line.
func (p *plain) read(ctx context.Context) (string, error) {
	select {
	case line, ok := <-p.in:
		if !ok {
			return "", io.EOF
		}
		for strings.HasSuffix(line, "\\") {
			more, ok := <-p.in
			line = strings.TrimSuffix(line, "\\") + "\n" + more
			if !ok {
				break
			}
		}
		return strings.TrimSpace(line), nil
	case <-p.signals:
		return "", errQuit
	case <-ctx.Done():
		return "", errQuit
	}
}

// settle shows events until the agent waits for the user.
func (p *plain) settle(ctx context.Context) error {
	for p.id != "" && (!p.present() || p.Working() || p.Unheard || p.State == session.AgentAwaitingYes) {
		if p.mustAsk() {
			if err := p.approve(ctx); err != nil {
				return err
			}
		}
		select {
		case it, ok := <-p.items:
			if !ok {
				return errors.Join(errors.New("the session ended"), cli.Plainly(p.failed))
			}
			p.take(it)
		case s := <-p.signals:
			if s != os.Interrupt {
				return errQuit
			}
			if err := p.interrupt(ctx, p.id); err != nil {
				p.Problem(err.Error())
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
		p.Prompt(p.questionText() + ":")
		line, err := p.read(ctx)
		if err != nil {
			return err
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
			p.Prompt("Reason for the agent (Enter to end the turn):")
			if reason, err = p.read(ctx); err != nil {
				return err
			}
			d = api.Decision{Decision: "reject", Reason: api.Some(reason)}
		case terminal.EditCall:
			p.Prompt("New call:")
			if line, err = p.read(ctx); err != nil {
				return err
			}
			if was, _ := p.editable(); line == "" || line == strings.TrimSpace(was) {
				continue // an unchanged call is not approved
			}
			args, err := p.edited(line)
			if err == nil && p.approval().High() {
				p.Prompt(terminal.SureText)
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
			return p.want(ctx, p.id, "running")
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
	case "undo":
		text, notice, err := p.restore(ctx, p.id, true)
		p.report(notice, err)
		if err == nil {
			p.Notice("the message was: " + text)
		}
		return nil
	case "redo":
		_, notice, err := p.restore(ctx, p.id, false)
		p.report(notice, err)
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
		found, err := cli.Find(ctx, p.Client, arguments)
		if err != nil {
			p.Problem(err.Error())
			return nil
		}
		if p.stop != nil {
			p.stop()
		}
		p.reopen(ctx, found)
		p.follow(ctx)
		return nil
	}
	notice, err := p.do(ctx, c, arguments)
	p.report(notice, err)
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
	if err == nil && step == planEdit {
		p.Prompt("Enter the edited plan (end a line with a backslash to continue it):")
		if edited, err = p.read(ctx); err != nil || edited == "" {
			return err
		}
	}
	switch {
	case err != nil:
		p.Problem(err.Error())
		return nil
	case step == planApprove || step == planEdit:
		arguments = approved(p.reply, edited)
		err = p.setPlan(ctx, p.id, false)
	case p.id == "": // applies from the first message on
		p.plan = step != planOff
		p.Notice(map[bool]string{true: "plan mode on", false: "plan mode off"}[p.plan])
	default:
		if err = p.setPlan(ctx, p.id, step != planOff); err == nil {
			p.plan = step != planOff
		}
	}
	if err != nil || step == planOn || step == planOff {
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
	if err != nil {
		p.Problem("not sent: " + err.Error())
		return
	}
	p.unsent = ""
	if opened != nil {
		p.open(*opened)
		p.follow(ctx)
	}
	p.Unheard = true // until the agent reads it
}
