package v0

import (
	"deckhand/internal/session"
	"deckhand/internal/v0/form"
)

// commandTyped is a command of the person's own. Front ends show it in their terminal
// and, by its source, leave it out of the chat.
func commandTyped(e session.Event, p session.CommandTyped) Frame {
	w := newWriter(384 + 4*len(p.Command))
	w.Head(e, fromUser, "Running command: "+p.Command)
	w.Action("run")
	w.Str("command", p.Command)
	w.Flag("is_input", false)
	w.Str("thought", "")
	w.Flag("blocking", false)
	w.Flag("is_static", false)
	w.Lit("cwd", "null")
	w.Flag("hidden", false)
	w.Num("security_risk", int64(session.RiskUnknown))
	w.Shut('}')
	return w.end()
}

func commandEnded(e session.Event, p session.CommandEnded) Frame {
	d := form.Details[form.RunDetails](p.Details)
	output := p.Output
	if p.Outcome == session.Unknown {
		output = form.Or(output, textUnknown)
	}
	code, pid, message := d.Ended(p.Command, p.Outcome, -1)
	w := newWriter(640 + 2*len(output) + 3*len(p.Command) + len(p.Details))
	w.Head(e, fromUser, message)
	w.Observation("run", output, p.Cause)
	w.Ran(p.Command, code, pid, d)
	return w.end()
}
