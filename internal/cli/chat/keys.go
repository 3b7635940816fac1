package chat

import (
	"context"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/prompt"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
)

// key handles a key press.
func (d *drawn) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if name != "ctrl+c" {
		d.pressed = 0
	}
	if d.menu.open() {
		if cmd, done := d.menuKey(name); done {
			return cmd
		}
	}
	switch name {
	case "ctrl+c":
		return d.interrupted()
	case "ctrl+d":
		if d.typed() == "" {
			return d.quit()
		}
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+l":
		return tea.ClearScreen
	case "esc":
		return d.escape()
	case "enter":
		return d.enter()
	case "up", "ctrl+p":
		if n := len(d.queue.Messages); n > 0 && d.entry == aMessage && d.typed() == "" {
			d.editQueued(d.queue.Messages[n-1])
			return nil
		}
		if d.entry == aMessage && d.input.Line() == 0 {
			if text, ok := d.history.Older(d.typed()); ok {
				d.set(text)
			}
			return nil
		}
	case "down", "ctrl+n":
		if d.entry == aMessage && d.input.Line() == d.input.LineCount()-1 {
			if text, ok := d.history.Newer(); ok {
				d.set(text)
			}
			return nil
		}
	case "tab":
		return d.complete()
	}
	var cmd tea.Cmd
	d.input, cmd = d.input.Update(k)
	return tea.Batch(cmd, d.complete())
}

// menuKey handles a key press while a menu is open; done is false if the menu does not use the key.
func (d *drawn) menuKey(name string) (cmd tea.Cmd, done bool) {
	m := d.menu
	switch name {
	case "up", "ctrl+p":
		d.menu.move(-1)
	case "down", "ctrl+n":
		d.menu.move(1)
	case "esc":
		d.menu = menu{}
	case "enter", "tab":
		word := m.choices[m.at].word
		d.menu = menu{}
		if m.whole {
			return tea.Batch(m.chosen(d, word), d.consider()), true
		}
		typed := d.typed()
		if name == "enter" && typed[min(m.from, len(typed)):] == word {
			return nil, false // it is complete, so Enter sends it
		}
		if name := strings.TrimSuffix(word, `"`); strings.HasSuffix(name, "/") {
			word = name // a folder: its files can be completed
		} else {
			word += " "
		}
		d.set(typed[:min(m.from, len(typed))] + word)
		if name == "enter" && strings.HasPrefix(word, "/") && m.from == 0 {
			return nil, false
		}
		return d.complete(), true
	default:
		return nil, m.whole && name != "ctrl+c" && name != "ctrl+d"
	}
	return nil, true
}

// complete finds completions of the typed text. Files are listed in the background.
func (d *drawn) complete() tea.Cmd {
	typed := d.typed()
	if d.entry != aMessage {
		d.menu = menu{}
		return nil
	}
	if prompt.MentionAt(typed) < 0 || strings.HasPrefix(typed, "/") && !strings.ContainsAny(typed, " \n") {
		d.menu = d.completions(typed, nil)
		if typed == "/" {
			return d.readCommands()
		}
		return nil
	}
	id := d.id
	return func() tea.Msg {
		files := d.files(d.ctx, id, prompt.Mentioned(typed, prompt.MentionAt(typed)))
		return doneMsg{then: func(d *drawn) {
			d.busy++ // this is not a request
			if d.typed() == typed && d.entry == aMessage {
				d.menu = d.completions(typed, files)
			}
		}}
	}
}

// readCommands reads the commands that send a prompt, for the menu that is open.
func (d *drawn) readCommands() tea.Cmd {
	id := d.id
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(d.ctx, patience)
		defer cancel()
		found, _ := d.prompts.List(ctx, id) // without a list there is nothing to complete
		return doneMsg{then: func(d *drawn) {
			d.busy++ // this is not a request
			d.known = found
			if typed := d.typed(); d.entry == aMessage && strings.HasPrefix(typed, "/") && !strings.ContainsAny(typed, " \n") {
				at := d.menu.at
				d.menu = d.completions(typed, nil)
				d.menu.move(at)
			}
		}}
	}
}

// interrupted handles Ctrl-C: it clears the prompt, pauses after the step, interrupts the step, and quits.
func (d *drawn) interrupted() tea.Cmd {
	if d.entry == aPlan || d.entry == aQueued {
		d.back()
		return nil
	}
	if d.entry != aMessage {
		d.set("")
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) { return nil, d.want(ctx, id, "paused") })
	}
	if d.typed() != "" {
		d.set("")
		d.menu = menu{}
		return nil
	}
	d.menu = menu{}
	d.pressed++
	working := d.Working()
	switch {
	case d.pressed > 2, d.pressed == 2 && !working:
		return d.quit()
	case !working:
		d.Notice("Ctrl-C again to quit")
	case d.pressed == 2:
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			return func(d *drawn) { d.Notice("interrupted; Ctrl-C again to quit") }, d.interrupt(ctx, id)
		})
	default:
		d.Pausing = true
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			return func(d *drawn) { d.Notice("Ctrl-C again to interrupt this step") }, d.want(ctx, id, "paused")
		})
	}
	return nil
}

// escape handles Esc: it goes back, or interrupts the step.
func (d *drawn) escape() tea.Cmd {
	switch {
	case d.entry == aReason || d.entry == newCall || d.entry == aYes:
		d.entry = anAnswer
		d.set("")
	case d.entry == aPlan || d.entry == aQueued:
		d.back()
	case d.entry == aMessage && d.Working():
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) { return nil, d.interrupt(ctx, id) })
	}
	return nil
}

// enter handles Enter.
func (d *drawn) enter() tea.Cmd {
	typed := d.typed()
	if d.entry == aMessage && strings.HasSuffix(typed, "\\") {
		d.set(strings.TrimSuffix(typed, "\\") + "\n")
		return nil
	}
	line := strings.TrimSpace(typed)
	switch d.entry {
	case anAnswer:
		d.set("")
		return d.answer(line)
	case aReason:
		d.set("")
		return d.give(api.Decision{Decision: "reject", Reason: api.Some(line)})
	case aPlan:
		if line == "" {
			return d.escape()
		}
		d.back()
		return d.approvePlan(line)
	case aQueued:
		return d.saveQueued(line)
	case newCall:
		return d.change(line)
	case aYes:
		if !terminal.Sure(line) {
			d.Problem(terminal.ErrNotSure.Error())
			return d.escape()
		}
		return d.give(api.Decision{Decision: "accept", Arguments: api.Some(d.args)})
	}
	d.set("")
	d.menu = menu{}
	if line == "" {
		if d.State == session.AgentPaused || d.Pausing {
			return d.request(func(ctx context.Context, id string) (func(*drawn), error) { return nil, d.want(ctx, id, "running") })
		}
		return nil
	}
	d.history.Add(line)
	if name, arguments, ok := prompt.IsCommand(line); ok {
		return d.run(name, arguments)
	}
	return d.tell(line)
}

// answer handles the answer to a question.
func (d *drawn) answer(line string) tea.Cmd {
	if name, arguments, _ := prompt.IsCommand(line); prompt.Known(line) {
		return d.run(name, arguments)
	}
	kind, reason, err := d.approval().Parse(line)
	if err != nil {
		d.Problem(err.Error())
		return nil
	}
	switch kind {
	case terminal.Approve:
		return d.give(api.Decision{Decision: "accept"})
	case terminal.Always:
		return d.give(api.Decision{Decision: "always"})
	case terminal.Reject:
		return d.give(api.Decision{Decision: "reject", Reason: api.Some(reason)})
	case terminal.AskReason:
		d.entry = aReason
	case terminal.EditCall:
		d.entry = newCall
		text, _ := d.editable()
		d.set(text)
		d.offered = strings.TrimSpace(d.typed())
	}
	return nil
}

// change handles an edited call. An unchanged call is not approved: the question is asked again.
func (d *drawn) change(line string) tea.Cmd {
	if line == "" || line == d.offered {
		return d.escape()
	}
	args, err := d.edited(line)
	if err != nil {
		d.Problem(err.Error())
		return nil
	}
	d.set("")
	if d.approval().High() {
		d.entry, d.args = aYes, args
		return nil
	}
	return d.give(api.Decision{Decision: "accept", Arguments: api.Some(args)})
}

// give approves or rejects the call. The answered question stays current until the next event.
func (d *drawn) give(decision api.Decision) tea.Cmd {
	call := d.question.CallID
	d.back()
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		err := d.decide(ctx, id, call, decision)
		return func(d *drawn) {
			if err != nil && d.question.CallID == call {
				d.question = api.Approval{} // ask again
			}
		}, err
	})
}

// tell sends a message.
func (d *drawn) tell(line string) tea.Cmd {
	if d.id == "" {
		d.Become(session.AgentLoading)
	}
	key, plan := d.retryKey(line), d.plan
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		opened, err := d.say(ctx, id, line, key, plan)
		return d.told(line, opened, err), err
	})
}

// told is called after sending a message. If sending failed, the message is put back into the prompt.
func (d *drawn) told(line string, opened *api.Conversation, err error) func(*drawn) {
	return func(d *drawn) {
		if err == nil {
			d.unsent = ""
		}
		switch {
		case err != nil && d.id == "":
			d.close()
		case opened != nil:
			d.open(*opened)
			d.follow()
		}
		if err != nil && d.typed() == "" {
			d.set(line)
		}
	}
}

// show opens another session.
func (d *drawn) show(c api.Conversation) {
	if err := d.reopen(d.ctx, c); err != nil {
		d.Problem(err.Error())
		return
	}
	d.Notice("session " + d.id[:min(8, len(d.id))] + ": " + oneLine(c))
	d.follow()
}

// run runs a command.
func (d *drawn) run(name, arguments string) tea.Cmd {
	c, ok := prompt.Find(name)
	if !ok {
		line := strings.TrimSpace("/" + name + " " + arguments)
		key, plan := d.retryKey(line), d.plan
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			opened, found, err := d.expand(ctx, id, name, arguments, key, plan)
			if !found && err == nil {
				return func(d *drawn) { d.Problem(prompt.Unknown(name)) }, nil
			}
			return d.told(line, opened, err), err
		})
	}
	if c.Agent && d.id == "" {
		d.Problem("/" + c.Name + " needs a session; send a message first")
		return nil
	}
	switch c.Name {
	case "plan":
		return d.planMode(arguments)
	case "queue":
		return d.queueCommand(arguments)
	case "undo", "redo":
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			text, notice, ask, err := d.restore(ctx, id, c.Name, arguments)
			return func(d *drawn) {
				if ask != nil {
					d.Problem(ask.Message)
					d.menu = ownMenu(c.Name)
				}
				if notice != "" {
					d.Problem(notice)
				}
				if text != "" && d.typed() == "" && d.entry == aMessage {
					d.set(text)
				}
			}, err
		})
	case "quit":
		return d.quit()
	case "new":
		d.leaveSession()
		d.Notice("new session")
		if arguments != "" {
			return d.tell(arguments)
		}
		return nil
	case "resume":
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			if arguments != "" {
				found, err := cli.FindSession(ctx, d.Client, arguments, "/resume")
				return func(d *drawn) {
					if err == nil {
						d.show(found)
					}
				}, err
			}
			all, err := d.sessions(ctx)
			return func(d *drawn) {
				if d.menu = sessionMenu(all, time.Now()); err == nil && len(all) == 0 {
					d.Notice("there is no session " + d.where() + " yet")
				}
			}, err
		})
	}
	notice, err := d.do(d.ctx, c, arguments)
	switch {
	case err != nil:
		d.Problem(err.Error())
	case notice != "":
		d.Notice(notice)
	}
	return nil
}

// planMode handles /plan.
func (d *drawn) planMode(arguments string) tea.Cmd {
	step, err := d.planOf(arguments)
	if err != nil {
		d.Problem(err.Error())
		return nil
	}
	switch step {
	case prompt.PlanApprove:
		return d.approvePlan("")
	case prompt.PlanEdit:
		d.draft, d.entry, d.menu = d.typed(), aPlan, menu{}
		d.set(d.reply)
		return nil
	}
	if d.id == "" { // applies from the first message on
		if d.plan = step != prompt.PlanOff; step == prompt.PlanTask {
			return d.tell(arguments)
		}
		return nil
	}
	if step != prompt.PlanTask {
		return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
			return nil, d.setPlan(ctx, id, step == prompt.PlanOn)
		})
	}
	key := d.retryKey(arguments)
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		err := d.setPlan(ctx, id, true)
		if err == nil {
			_, err = d.say(ctx, id, arguments, key, true)
		}
		return d.told("/plan "+arguments, nil, err), err
	})
}

// approvePlan leaves plan mode and tells the agent to carry out the plan.
func (d *drawn) approvePlan(edited string) tea.Cmd {
	text := prompt.Approved(d.reply, edited)
	key := d.retryKey(text)
	return d.request(func(ctx context.Context, id string) (func(*drawn), error) {
		err := d.setPlan(ctx, id, false)
		if err == nil {
			_, err = d.say(ctx, id, text, key, false)
		}
		return d.told(text, nil, err), err
	})
}

// leaveSession closes the session; its agent continues.
func (d *drawn) leaveSession() {
	if d.stop != nil {
		d.stop()
		d.stop = nil
	}
	d.close()
	d.doing = ""
}
