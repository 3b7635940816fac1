package v0

import (
	"fmt"

	"deckhand/internal/session"
)

// commandTyped is a command of the person's own. Front ends show it in their terminal
// and, by its source, leave it out of the chat.
func commandTyped(e session.Event, p session.CommandTyped) Frame {
	w := newWriter(384 + 4*len(p.Command))
	w.head(e, fromUser, "Running command: "+p.Command)
	w.action("run")
	w.str("command", p.Command)
	w.flag("is_input", false)
	w.str("thought", "")
	w.flag("blocking", false)
	w.flag("is_static", false)
	w.lit("cwd", "null")
	w.flag("hidden", false)
	w.num("security_risk", int64(session.RiskUnknown))
	w.shut('}')
	return w.end()
}

func commandEnded(e session.Event, p session.CommandEnded) Frame {
	d := details[RunDetails](p.Details)
	code, pid := -1, -1
	if d.ExitCode != nil {
		code = *d.ExitCode
	}
	if d.PID != nil {
		pid = *d.PID
	}
	output := p.Output
	if p.Outcome == session.Unknown {
		output = or(output, textUnknown)
	}
	message := fmt.Sprintf("Command `%s` executed with exit code %d.", p.Command, code)
	if p.Outcome == session.Cancelled {
		code, message = exitInterrupted, fmt.Sprintf("Command `%s` was interrupted.", p.Command)
	}
	w := newWriter(640 + 2*len(output) + 3*len(p.Command) + len(p.Details))
	w.head(e, fromUser, message)
	w.observation("run", output, p.Cause)
	w.ran(p.Command, code, pid, d)
	return w.end()
}
