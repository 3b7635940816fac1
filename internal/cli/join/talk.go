package join

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deckhand/api"
	"deckhand/client"
	"deckhand/internal/cli"
	"deckhand/internal/native"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// maxAnswers is the maximum number of final answers that are checked.
const maxAnswers = 3

// talk follows the agent until it is done, and returns the exit code.
func (r *run) talk(ctx context.Context) (int, error) {
	for {
		code, over, err := r.decide(ctx)
		if err != nil || over {
			return code, err
		}
		select {
		case it, ok := <-r.items:
			if !ok {
				return 0, errors.Join(errors.New("the session ended"), r.failed)
			}
			if err := r.take(it); err != nil {
				return 0, err
			}
		case <-r.signals:
			return cli.ExitInterrupted, nil
		case <-r.late:
			r.ended.Reason = "time limit reached"
			if !r.Task.Options.JSON {
				r.Problem(r.ended.Reason)
			}
			return cli.ExitLimit, nil
		}
	}
}

// take shows an event and updates the state.
func (r *run) take(it client.Item) error {
	r.last = max(r.last, it.ID)
	if it.Event == nil {
		switch {
		case r.Task.Options.JSON:
		case it.Delta != nil:
			r.RemoteDelta(it.Delta.Call, it.Delta.Offset, it.Delta.Text)
		case it.Queue != nil && it.Queue.Position > 0:
			r.Notice(it.Queue.Message)
		}
		return nil
	}
	events, err := native.Read(*it.Event)
	if err != nil {
		return err
	}
	for _, e := range events {
		r.Remember(e.Payload)
		if !r.Task.Options.JSON {
			r.Remote(e)
		}
		switch p := e.Payload.(type) {
		case session.ModelAnswered:
			r.ended.Totals = p.Totals
			if p.Purpose == "" && p.Text != "" {
				r.said = p.Text
			}
		case session.ToolReturned:
			if display, view := tool.Show(p.Name, p.Args); display.Content == tool.Message && view.Text != "" {
				r.said = view.Text
			}
		case session.TurnEnded:
			r.ended.Reason = p.Reason
		case session.Failed:
			r.ended.Reason = p.Reason
		}
	}
	if r.Task.Options.JSON {
		_, err = fmt.Fprintf(r.o.Stdout, "%s\n", terminal.JSON(it.Raw))
		return err
	}
	return r.written()
}

// written returns an error if standard output cannot be written. A terminal that is closed sends a signal instead.
func (r *run) written() error {
	if r.typed != nil || r.o.Answer != nil || r.Err() == nil {
		return nil
	}
	return fmt.Errorf("cannot write to standard output: %w", r.Err())
}

// decide answers a question about a call, or ends the task if the agent is done.
func (r *run) decide(ctx context.Context) (code int, over bool, err error) {
	if r.Working() || r.Expects || r.last < r.newest {
		return 0, false, nil
	}
	if r.State == session.AgentAwaitingYes {
		return r.approve(ctx)
	}
	if r.Unheard {
		if read, err := r.read(ctx); err != nil || !read {
			return 0, false, err
		}
	}
	switch r.State {
	case session.AgentError, session.AgentRateLimited:
		return cli.CodeOfError(r.ErrorID), true, nil
	case session.AgentPaused, session.AgentStopped: // in another terminal
		return cli.ExitInterrupted, true, nil
	}
	if r.Rejected {
		return cli.ExitRejected, true, nil
	}
	return r.check(ctx)
}

// read reports whether the agent has read the message, and all events since then were shown.
func (r *run) read(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	queue, err := r.Client.Queue(ctx, r.id)
	if err != nil || len(queue.Messages) > 0 {
		return false, err
	}
	if r.newest, err = cli.NewestEvent(ctx, r.Client, r.id); err != nil {
		return false, err
	}
	r.Unheard = r.last < r.newest
	return !r.Unheard, nil
}

// check checks the final answer, and asks for another one if it does not match the schema.
func (r *run) check(ctx context.Context) (code int, over bool, err error) {
	if r.Task.Options.Schema == nil {
		return cli.ExitDone, true, nil
	}
	answer, wrong := r.Task.Options.Schema.Check(r.said)
	if wrong == nil {
		r.ended.Answer = answer
		return cli.ExitDone, true, nil
	}
	if r.rejections++; r.rejections >= maxAnswers {
		r.ended.Reason = "the final answer was not accepted: " + wrong.Error()
		if !r.Task.Options.JSON {
			r.Problem(r.ended.Reason)
		}
		return cli.ExitSchema, true, nil
	}
	r.said, r.Unheard = "", true
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return 0, false, r.Client.Say(ctx, r.id, r.Task.Options.Schema.Again(wrong), "")
}

// approve answers the question about a call.
func (r *run) approve(ctx context.Context) (code int, over bool, err error) {
	got, err := r.Client.Approvals(ctx, r.id)
	if err != nil || len(got.Pending) == 0 || got.Pending[0].CallID == r.asked {
		return 0, false, err
	}
	a := got.Pending[0]
	r.asked = a.CallID
	d := api.Decision{Decision: "reject", CallID: api.Some(a.CallID)}
	switch {
	case r.Flags.Yes:
		d.Decision = "accept"
	case r.typed == nil:
		if !r.Task.Options.JSON {
			r.Problem("this call needs approval (" + terminal.Risk(session.Risk(a.Risk)) + ") but there is no terminal to ask on, so it is rejected; use --yes to approve all calls")
		}
	default:
		ended, err := r.ask(a, &d)
		if err != nil || ended {
			return cli.ExitInterrupted, ended, err
		}
	}
	return 0, false, r.Client.Decide(ctx, r.id, d)
}

// ask asks the user about a call. It reports whether the user ended the task instead.
func (r *run) ask(a api.Approval, d *api.Decision) (ended bool, err error) {
	q := terminal.Question{Risk: session.Risk(a.Risk)}
	r.Asked(session.ToolCall{ID: a.CallID, Name: a.Tool, Args: a.Arguments}, a.Reason)
	if a.Pattern != nil {
		q.Pattern = *a.Pattern
		r.Notice("always allows: " + q.Pattern)
	}
	for {
		r.Prompt(q.Text() + ":")
		select {
		case line, ok := <-r.typed:
			if !ok {
				return false, nil // rejected
			}
			kind, reason, err := q.Parse(line)
			switch {
			case err != nil:
				r.Problem(err.Error())
				continue
			case kind == terminal.EditCall:
				r.Problem("to edit the call, answer it in a session: deckhand --resume " + r.id[:min(8, len(r.id))])
				continue
			case kind == terminal.Approve:
				d.Decision = "accept"
			case kind == terminal.Always:
				d.Decision = "always"
			case reason != "":
				d.Reason = api.Some(reason)
			}
			return false, nil
		case <-r.signals:
			r.Break()
			return true, nil
		case <-r.late:
			return true, nil
		}
	}
}

// finish ends the task: the agent of a conversation that no other terminal uses is stopped.
func (r *run) finish(ctx context.Context, code int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	switch {
	case r.stops:
		err = r.Client.SetState(ctx, r.id, "stopped")
	case code == cli.ExitInterrupted || code == cli.ExitLimit:
		err = r.Client.Interrupt(ctx, r.id)
	}
	e := r.ended
	e.Code, e.Finished, e.ID, e.Took = code, r.State == session.AgentFinished, r.id, time.Since(r.began)
	e.Reopen = "open it with: deckhand --resume " + r.id[:min(8, len(r.id))]
	return errors.Join(e.Print(r.o, r.Task.Options.JSON, r.Display), r.written(), err)
}
