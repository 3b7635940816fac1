package session

import "strings"

// What interrupts calls that are in progress.
const (
	byStop   = "stop"
	byPause  = "pause"
	byDelete = "delete"
	failed   = "failed" // they may have been begun
)

// unreachable is the result of a call that was in progress in a sandbox that is lost.
const unreachable = "The sandbox cannot be reached. The result of this call is unknown."

// notBegun is the result of a call or command of which the log proves that it was not begun.
const notBegun = "Not run: the conversation stopped with an error first."

// close settles everything, the commands of people too.
func (s State) close(why string) []Payload { return append(s.settle(why), s.settleTyped(why)...) }

// settle closes the agent's open work, so that Paused may follow.
func (s State) settle(why string) []Payload {
	var out []Payload
	if s.Ask != nil {
		// The call is aborted; what the provider counted until then is unknown, so the reservation is what it may have cost.
		f := s.lost("cancelled", "Interrupted by "+why+".", s.Ask.Reserved)
		if s.Ask.Purpose == "" {
			f.Text = s.partial(s.Ask.Call)
		}
		out = append(out, f)
	}
	for _, c := range s.Open {
		r := ToolReturned{ID: c.ID, Name: c.Name, Cause: c.Number, Outcome: Cancelled, Origin: c.Origin}
		written := s.partial(c.ID)
		r.Output = interrupted(why, written)
		switch {
		case c.Denied:
			r.Outcome = Rejected
		case c.Awaits(): // and so it was not begun
			r.Output = "Not run: approval was still pending. Interrupted by " + why + "."
		case why == failed && c.Approved && s.Claim < c.Since: // only an owner that claims after the approval begins it
			r.Output = notBegun
		case why == failed:
			r.Outcome, r.Output, r.Partial = Unknown, lostAfter(written, unreachable), written != ""
		case written != "":
			r.Partial, r.Args = true, c.Given
			if c.Args != nil {
				r.Args = c.Args
			}
		}
		out = append(out, r)
	}
	return out
}

// interrupted is the result of a command that wrote this before it was interrupted.
func interrupted(why, written string) string {
	if written == "" {
		return "Interrupted by " + why + "."
	}
	return strings.TrimSuffix(written, "\n") + "\n[Interrupted by " + why + "; the output ends here.]"
}

// lostAfter is the result of a command that wrote this before its sandbox was lost.
func lostAfter(written, why string) string {
	if written == "" {
		return why
	}
	return strings.TrimSuffix(written, "\n") + "\n[The output ends here. " + why + "]"
}

func (s State) lost(class, message string, cost Money) ModelFailed {
	return ModelFailed{Call: s.Ask.Call, Class: class, Message: message, Cost: cost, Totals: s.Totals.plus(Usage{}, cost)}
}

// maxPartial is how many characters of what an interrupted call had written are kept: as many as of a result.
const maxPartial = 30_000

const cutPartial = "\n[... Observation truncated due to length ...]\n"

// Written sets where to find what a call that is in progress has written so far,
// so that it is kept when the call is interrupted. Call it before the first change.
func (s *Sessions) Written(find func(id ID, call string) string) { s.written = find }

// asked is the state as rules see it.
func (s *Sessions) asked(st State) State {
	if s.written != nil {
		st.written = func(call string) string { return s.written(st.ID, call) }
	}
	return st
}

// partial is what a call in progress has written: both ends of it, if it is long.
func (s State) partial(call string) string {
	if s.written == nil {
		return ""
	}
	text := s.written(call)
	if r := []rune(text); len(r) > maxPartial {
		return string(r[:maxPartial/2]) + cutPartial + string(r[len(r)-maxPartial/2:])
	}
	return text
}
