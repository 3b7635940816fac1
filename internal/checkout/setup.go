package checkout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// setUpScript is what a repository wants to be run before the work.
const setUpScript = ".openhands/setup.sh"

// setUpID names the run of the script for the runner, so that a server that was
// killed meanwhile finds its result.
const setUpID = "deckhand-setup"

// grace is how long a script may take to obey Ctrl-C.
const grace = 2 * time.Second

// setUp runs the repository's script in the agent's own shell, so that what it
// sets there is kept, and records how it ended. That it fails is told, and keeps
// nobody from working. again says that it may have been begun before.
func (w *work) setUp(ctx context.Context, done session.CheckedOut, again bool) error {
	w.tell(sandbox.Progress{Step: sandbox.SetUp, Message: "Running " + done.Script})
	r, err := w.box.Exec(ctx, sandbox.Command{ID: setUpID, Text: source(done), Hard: w.SetUpTime, Again: again}, nil)
	out := session.SetUp{Script: done.Script, Exit: r.Exit, Output: w.mask.String(r.Output)}
	if words, refused := sandbox.Refusal(err); refused {
		out.Exit, out.Problem = -1, done.Script+" could not be run: "+words
	} else if err != nil {
		return err
	}
	switch {
	case r.Lost:
		out.Problem = "The sandbox ended while " + done.Script + " ran in it; nobody knows how far it came."
	case r.Refused != "":
		out.Problem = done.Script + " was not run: " + r.Refused
	case r.Wait == sandbox.HardWait:
		out.Problem = fmt.Sprintf("%s did not end within %s, and was ended.", done.Script, w.SetUpTime)
		if err := w.end(ctx); err != nil {
			return err
		}
	case r.NewShell:
		out.Problem = done.Script + " ended the shell that it ran in; what it had set there is lost."
	}
	if err := w.hooks(ctx, done.Folder); err != nil && !unavailable(err) { // the script may have brought hooks of its own
		return err
	}
	_, err = w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) { return s.EndSetUp(out) })
	if err == nil {
		_ = w.box.Ack(ctx, setUpID) // only disk space depends on it
	}
	return err
}

// end ends a script, and takes what it still had to say: it is not the agent's to read.
func (w *work) end(ctx context.Context) error {
	if err := w.box.Interrupt(ctx, "", grace); err != nil {
		return err
	}
	const rest = setUpID + "-rest"
	if _, err := w.box.Exec(ctx, sandbox.Command{ID: rest, Hard: grace}, nil); err != nil {
		return w.refused(err)
	}
	_ = w.box.Ack(ctx, rest)
	return nil
}

func unavailable(err error) bool {
	_, ok := errors.AsType[*sandbox.Unavailable](err)
	return ok
}

// source is the command: whatever the script does to the shell's folder and
// options, the next command begins in the repository and survives a failure.
// Nobody is there to answer what the script may ask.
func source(done session.CheckedOut) string {
	dir := "'" + strings.ReplaceAll(done.Dir, "'", `'\''`) + "'"
	return "cd " + dir + "\n. ./" + done.Script + " </dev/null\ndeckhand_status=$?; set +eu; cd " + dir + "; (exit $deckhand_status)"
}
