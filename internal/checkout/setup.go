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

// setUpScript is the repository's script that runs before the work starts.
const setUpScript = ".openhands/setup.sh"

// setUpID is the ID of the run, so that a server that was restarted finds its result.
const setUpID = "deckhand-setup"

// grace is how long a script may take to end after Ctrl-C.
const grace = 2 * time.Second

// setUp runs the repository's script and records its result. A failure is reported, but
// the work goes on. again is set if it may have been started before.
//
// A trusted script runs in the agent's shell, so that its environment is kept. Any other
// script has its own shell without network access, and everything that it started is
// killed.
func (w *work) setUp(ctx context.Context, st session.State, again bool) error {
	done, confined := *st.Checkout, st.SettingUp.Confined
	shell := ""
	if confined {
		shell = setUpID
	}
	w.tell(sandbox.Progress{Step: sandbox.SetUp, Message: "Running " + done.Script})
	r, err := w.box.Exec(ctx, sandbox.Command{ID: setUpID, Shell: shell, Text: source(done), Hard: w.SetUpTime, Again: again}, nil)
	out := session.SetUp{Script: done.Script, Exit: r.Exit, Output: w.mask.String(r.Output)}
	if words, refused := sandbox.Refusal(err); refused {
		out.Exit, out.Problem = -1, done.Script+" could not be run: "+words
	} else if err != nil {
		return err
	}
	switch {
	case r.Lost:
		out.Problem = "The sandbox ended while " + done.Script + " was running; it may have run only in part."
	case r.Refused != "":
		out.Problem = done.Script + " was not run: " + r.Refused
	case r.Wait == sandbox.HardWait:
		out.Problem = fmt.Sprintf("%s did not finish within %s and was stopped.", done.Script, w.SetUpTime)
		if err := w.end(ctx, shell); err != nil {
			return err
		}
	case r.NewShell && !confined:
		out.Problem = done.Script + " ended the shell that it ran in; what it had set there is lost."
	}
	if err := w.tidy(ctx, st); err != nil && !unavailable(err) {
		return err
	}
	_, err = w.Sessions.Update(context.WithoutCancel(ctx), w.id, func(s session.State) ([]session.Payload, error) { return s.EndSetUp(out) })
	if err == nil {
		_ = w.box.Ack(ctx, setUpID) // only frees disk space
	}
	return err
}

// tidy cleans up after a script, before network access is restored.
func (w *work) tidy(ctx context.Context, st session.State) error {
	folder := st.Checkout.Folder
	if st.SettingUp.Confined {
		if err := w.box.KillAll(ctx); err != nil {
			return err
		}
		return w.unhook(ctx, folder)
	}
	if st.Hook != nil && st.Hook.Installed { // the script may have added hooks
		text, err := w.text(ctx, folder, commitScript)
		if err != nil {
			return err
		}
		if sandbox.Sum(text) != st.Hook.Hash { // changed by the script, so it is not run
			text = nil
		}
		if _, err := w.hooks(ctx, folder, text); err != nil {
			return err
		}
	}
	return w.sign(ctx, folder)
}

// end ends a script and discards its remaining output, which is not for the agent.
func (w *work) end(ctx context.Context, shell string) error {
	if err := w.box.Interrupt(ctx, shell, grace); err != nil {
		return err
	}
	const rest = setUpID + "-rest"
	if _, err := w.box.Exec(ctx, sandbox.Command{ID: rest, Shell: shell, Hard: grace}, nil); err != nil {
		return w.refused(err)
	}
	_ = w.box.Ack(ctx, rest)
	return nil
}

func unavailable(err error) bool {
	_, ok := errors.AsType[*sandbox.Unavailable](err)
	return ok
}

// source returns the command. Whatever the script does to the working directory and the
// options of the shell, the next command starts in the repository and survives a failure.
// Prompts of the script get no input.
func source(done session.CheckedOut) string {
	dir := "'" + strings.ReplaceAll(done.Dir, "'", `'\''`) + "'"
	return "cd " + dir + "\n. ./" + done.Script + " </dev/null\ndeckhand_status=$?; set +eu; cd " + dir + "; (exit $deckhand_status)"
}
