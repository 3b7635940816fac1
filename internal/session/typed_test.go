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
	at := given(t, with(owned, session.CommandTyped{Command: "make"}))
	for name, c := range map[string]struct {
		rule    decision
		outcome session.Outcome
		output  string
	}{
		"stopped": {stop, session.Cancelled, "Interrupted by stop."},
		"failed": {func(s session.State) ([]session.Payload, error) { return s.Fail(s.Claim, "STATUS$ERROR", "lost") }, session.Unknown,
			"The sandbox cannot be reached. The result of this call is unknown."},
	} {
		out, err := c.rule(at)
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
