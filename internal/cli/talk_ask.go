package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"

	"deckhand/internal/conversation"
	"deckhand/internal/session"
	"deckhand/internal/terminal"
	"deckhand/internal/tool"
)

// lines reads what a person types. A line that was asked for and not waited for
// answers the next question.
type lines struct {
	r       *bufio.Reader
	pending chan typed
}

type typed struct {
	text string
	err  error
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReader(r)} }

// next is the line that comes next.
func (l *lines) next() <-chan typed {
	if l.pending == nil {
		ch := make(chan typed, 1)
		l.pending = ch
		go func() {
			text, err := l.r.ReadString('\n')
			ch <- typed{text, err}
		}()
	}
	return l.pending
}

// heard is how a person reacted to a question.
type heard int

const (
	aLine       heard = iota
	anEnd             // Ctrl-D
	anInterrupt       // Ctrl-C
	anOrder           // the program is asked to exit
	tooLate           // the time is up
)

// ask puts a question and waits for the terminal.
func (t *talk) ask(question string) (string, heard) {
	t.Prompt(question)
	select {
	case got := <-t.in.next():
		t.in.pending = nil
		if got.err != nil && got.text == "" {
			t.Break()
			return "", anEnd
		}
		return strings.TrimSpace(got.text), aLine
	case s := <-t.signals:
		t.Break()
		if s != os.Interrupt {
			return "", anOrder
		}
		return "", anInterrupt
	case <-t.late:
		t.Break()
		return "", tooLate
	}
}

// say sends a message to the agent.
func (t *talk) say(ctx context.Context, text string) error {
	_, err := t.Conversations.Say(ctx, t.Owner, t.ID, session.UserSaid{Text: text})
	return t.refused(err)
}

// refused shows a refusal. The conversation goes on, with what its state calls for now. Other errors are returned.
func (t *talk) refused(err error) error {
	r := conversation.RefusalOf(err)
	if r == nil {
		return err
	}
	if t.json { // standard output has events only
		fmt.Fprintln(t.o.Stderr, "deckhand:", r.Text)
	} else {
		t.Problem(r.Text)
	}
	t.lookAgain()
	return nil
}

// endEarly ends the conversation before the agent is done.
func (t *talk) endEarly(ctx context.Context, how heard) (int, bool, error) {
	code := ExitInterrupted
	if how == tooLate {
		code, t.reason = ExitLimit, "time limit reached"
		if !t.json {
			t.Problem(t.reason)
		}
	}
	return code, true, t.halt(ctx)
}

// answer asks the person what the agent waits for.
func (t *talk) answer(ctx context.Context) (int, bool, error) {
	text, how := t.ask("Reply (Enter to finish):")
	switch {
	case how != aLine && how != anEnd:
		return t.endEarly(ctx, how)
	case how == anEnd || text == "":
		return ExitDone, true, nil
	}
	return 0, false, t.say(ctx, text)
}

// interrupt is Ctrl-C while the agent works. If somebody is there to say how to go
// on, it pauses: after the step in progress, and at once when pressed again.
func (t *talk) interrupt(ctx context.Context, s os.Signal) (int, bool, error) {
	if s != os.Interrupt || t.in == nil {
		return ExitInterrupted, true, t.halt(ctx)
	}
	t.Break()
	before, err := t.Sessions.Load(ctx, t.ID)
	if err != nil {
		return 0, false, err
	}
	st, err := t.Conversations.Pause(ctx, t.Owner, t.ID, before.Pausing)
	if err == nil && st.Pausing {
		t.Notice("Ctrl-C again to interrupt this step")
	}
	if err != nil || st.Paused || st.Pausing {
		return 0, false, t.refused(err)
	}
	return ExitInterrupted, true, t.halt(ctx)
}

// paused asks how to go on.
func (t *talk) paused(ctx context.Context) (int, bool, error) {
	text, how := t.ask("Paused. Type a message, Enter to continue, Ctrl-C to quit:")
	switch {
	case how != aLine:
		return t.endEarly(ctx, how)
	case text != "":
		return 0, false, t.say(ctx, text)
	}
	return 0, false, t.refused(t.Conversations.Resume(ctx, t.Owner, t.ID))
}

// approve asks about the call that waits.
func (t *talk) approve(ctx context.Context, call string) (int, bool, error) {
	d := conversation.Decision{CallID: call}
	if t.in == nil {
		if !t.json {
			t.Problem("this call needs approval (" + terminal.Risk(t.call.Risk) + ") but there is no terminal to ask on, so it is rejected; use --yes to approve all calls")
		}
		return 0, false, t.give(ctx, d)
	}
	q := terminal.Question{Risk: t.call.Risk, Pattern: t.question.Pattern}
	question := q.Text()
	if q.Pattern != "" {
		question += ", [a]lways " + terminal.Inline(q.Pattern)
	}
	for {
		text, how := t.ask(question + ":")
		switch how {
		case anInterrupt:
			_, err := t.Conversations.Pause(ctx, t.Owner, t.ID, false)
			return 0, false, t.refused(err)
		case anOrder, tooLate:
			return t.endEarly(ctx, how)
		case anEnd:
			return 0, false, t.give(ctx, d)
		}
		again, err := t.choose(q, text, &d)
		if err != nil {
			t.Problem(err.Error())
		}
		if !again && err == nil {
			return 0, false, t.give(ctx, d)
		}
	}
}

// choose turns what was typed into a decision; again if it was none.
func (t *talk) choose(q terminal.Question, text string, d *conversation.Decision) (again bool, err error) {
	kind, reason, err := q.Parse(text)
	if err != nil {
		return true, err
	}
	switch kind {
	case terminal.Approve:
		d.Approve = true
	case terminal.Always:
		d.Approve, d.Always, d.Pattern = true, true, &t.question.Pattern
	case terminal.Reject:
		d.Reason = reason
	case terminal.AskReason:
		why, how := t.ask("Reason for the agent (Enter to end the turn):")
		if how != aLine {
			return true, nil
		}
		d.Reason = why
	case terminal.EditCall:
		args, err := t.edit()
		if err != nil || args == nil || sameArguments(args, t.call.Args) {
			return true, err
		}
		if q.High() {
			if text, how := t.ask(terminal.SureText); how != aLine || !terminal.Sure(text) {
				return true, terminal.ErrNotSure
			}
		}
		d.Args, d.Approve = args, true
	}
	return false, nil
}

// give decides. A decision that comes too late is refused.
func (t *talk) give(ctx context.Context, d conversation.Decision) error {
	return t.refused(t.Conversations.Decide(ctx, t.Owner, t.ID, d))
}

// edit lets the person change the arguments, in their editor or in a line; nil
// if they did not.
func (t *talk) edit() (json.RawMessage, error) {
	var b bytes.Buffer
	if json.Indent(&b, t.call.Args, "", "  ") != nil {
		return nil, errors.New("the arguments are not JSON")
	}
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor != "" {
		return t.inEditor(editor, b.Bytes())
	}
	question := "New arguments as JSON:"
	main, _, one := tool.Main(t.call.Name, t.call.Args)
	if one {
		question = "New " + main + ":"
	}
	text, how := t.ask(question)
	if how != aLine || text == "" {
		return nil, nil
	}
	if one && !strings.HasPrefix(text, "{") {
		return tool.WithMain(t.call.Name, t.call.Args, text)
	}
	return checkArguments([]byte(text))
}

// sameArguments reports whether two objects have the same fields and values.
func sameArguments(a, b json.RawMessage) bool {
	var x, y map[string]any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func checkArguments(text []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	return json.Marshal(object)
}

// inEditor has the person edit the arguments as a file. Leaving it unchanged
// decides nothing.
func (t *talk) inEditor(editor string, now []byte) (json.RawMessage, error) {
	f, err := os.CreateTemp("", "deckhand-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(now, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	cmd := exec.Command("sh", "-c", editor+` "$1"`, "sh", f.Name()) // as programs do: it may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor failed: %w", err)
	}
	for len(t.signals) > 0 { // what was pressed in it was meant for it
		<-t.signals
	}
	text, err := os.ReadFile(f.Name())
	if err != nil || bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(now)) {
		return nil, err
	}
	return checkArguments(text)
}
