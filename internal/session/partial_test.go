package session_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"deckhand/internal/session"
	"deckhand/internal/session/memlog"
)

// What a call has written when it is interrupted is part of what is recorded.
func TestPartialOutputIsKept(t *testing.T) {
	t.Parallel()
	long := "first" + strings.Repeat("é", 40_000) + "last"
	for name, c := range map[string]struct {
		at    []session.Payload
		rule  decision
		wrote string
		check func(p session.Payload) bool
	}{
		"a command, stop": {with(calling, session.ToolCalled{ToolCall: session.ToolCall{ID: "a", Name: "bash", Args: []byte(`{"command":"make"}`)}}), stop, "one\ntwo\n", func(p session.Payload) bool {
			r := p.(session.ToolReturned)
			return r.Output == "one\ntwo\n[Interrupted by stop; the output ends here.]" && r.Partial && string(r.Args) == `{"command":"make"}`
		}},
		"a command, pause": {running, pause, "one", func(p session.Payload) bool {
			return p.(session.ToolReturned).Output == "one\n[Interrupted by pause; the output ends here.]"
		}},
		"a silent command": {running, pause, "", func(p session.Payload) bool {
			r := p.(session.ToolReturned)
			return r.Output == "Interrupted by pause." && !r.Partial
		}},
		"a long output": {running, pause, long, func(p session.Payload) bool {
			out := p.(session.ToolReturned).Output
			return utf8.RuneCountInString(out) < 30_200 && strings.HasPrefix(out, "first") && strings.Contains(out, "last\n[Interrupted") && utf8.ValidString(out)
		}},
		"a typed command, stop": {with(owned, session.CommandTyped{Command: "make"}), stop, "one\n", func(p session.Payload) bool {
			return p.(session.CommandEnded).Output == "one\n[Interrupted by stop; the output ends here.]"
		}},
		"a command, sandbox lost": {running, fail, "one\ntwo: ", func(p session.Payload) bool {
			r := p.(session.ToolReturned)
			return r.Output == "one\ntwo: \n[The output ends here. The sandbox cannot be reached. The result of this call is unknown.]" && r.Partial && r.Outcome == session.Unknown
		}},
		"a command, runner killed": {running, func(s session.State) ([]session.Payload, error) {
			return s.Returned(owner, session.ToolReturned{ID: "a", Outcome: session.Unknown, Output: "The sandbox ended."})
		}, "one\ntwo: ", func(p session.Payload) bool {
			r := p.(session.ToolReturned)
			return r.Output == "one\ntwo: \n[The output ends here. The sandbox ended.]" && r.Partial
		}},
		"a typed command, runner killed": {with(owned, session.CommandTyped{Command: "make"}), func(s session.State) ([]session.Payload, error) {
			return s.TypedEnded(s.Claim, session.CommandEnded{Cause: 4, Outcome: session.Unknown, Output: "The sandbox ended."})
		}, "two: ", func(p session.Payload) bool {
			return p.(session.CommandEnded).Output == "two: \n[The output ends here. The sandbox ended.]"
		}},
		"a call that waits": {awaiting, stop, "", func(p session.Payload) bool {
			return p.(session.ToolReturned).Output == "Not run: approval was still pending. Interrupted by stop."
		}},
		"an answer, stop": {asking, stop, "As I was say", func(p session.Payload) bool {
			f := p.(session.ModelFailed)
			return f.Text == "As I was say" && f.Message == "Interrupted by stop." && !f.Retried
		}},
		"an answer, pause": {asking, pause, "As I was say", func(p session.Payload) bool {
			f := p.(session.ModelFailed)
			return f.Text == "As I was say" && f.Retried
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sessions := session.New(memlog.New())
			sessions.Written(func(id session.ID, call string) string {
				if id != theID || call != "a" && call != "m" && !session.IsTyped(call) {
					t.Errorf("asked for %q of %q", call, id)
				}
				return c.wrote
			})
			if _, err := sessions.Update(t.Context(), theID, do(c.at...)); err != nil {
				t.Fatal(err)
			}
			var recorded []session.Payload
			if _, err := sessions.Update(t.Context(), theID, func(s session.State) ([]session.Payload, error) {
				out, err := c.rule(s)
				recorded = out
				return out, err
			}); err != nil {
				t.Fatal(err)
			}
			if !c.check(recorded[0]) {
				t.Errorf("recorded %.300v", recorded)
			}
		})
	}
}
