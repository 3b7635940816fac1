package session_test

import (
	"errors"
	"testing"

	"deckhand/internal/session"
)

// A person's command that is open when the session ends gets a result that says
// why. In a sandbox that is lost, it may have been run.
func TestOpenTypedCommandsAreSettled(t *testing.T) {
	t.Parallel()
	typed := session.CommandTyped{Command: "make"}
	lost := func(s session.State) ([]session.Payload, error) { return s.Fail(s.Claim, "STATUS$ERROR", "lost") }
	const unknown, notRun = "The sandbox cannot be reached. The result of this call is unknown.", "Not run: the conversation stopped with an error first."
	for name, c := range map[string]struct {
		stage   payloads
		rule    decision
		outcome session.Outcome
		output  string
	}{
		"stopped":              {with(owned, typed), stop, session.Cancelled, "Interrupted by stop."},
		"failed":               {with(owned, ready, typed, claimed), lost, session.Unknown, unknown},
		"failed, not claimed":  {with(owned, ready, typed), lost, session.Cancelled, notRun},
		"failed, no sandbox":   {with(owned, typed, claimed), lost, session.Cancelled, notRun},
		"failed, of a subtask": {payloads{session.Created{Owner: "maria", Parent: "above"}, claimed, typed, claimed}, lost, session.Unknown, unknown},
	} {
		out, err := c.rule(given(t, c.stage))
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := out[0].(session.CommandEnded); !ok || end.Outcome != c.outcome || end.Output != c.output || end.Command != "make" {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

// A command opens a stopped session. A key does not: there is nothing that it could reach.
func TestTypingIntoAStoppedSession(t *testing.T) {
	t.Parallel()
	at := given(t, with(owned, session.Stopped{}))
	for _, key := range []string{"", " ", "\x03", "C-c", " c-d\n", "\x03 \x03"} {
		if out, err := at.Type(key); !errors.Is(err, session.ErrRefused) {
			t.Errorf("%q: %+v, %v", key, out, err)
		}
	}
	for _, command := range []string{"ls", "\x03ls", "C-cc"} {
		if out, err := at.Type(command); err != nil || len(out) != 2 {
			t.Errorf("%q: %+v, %v", command, out, err)
		}
	}
}
