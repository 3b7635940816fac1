// Package origin decides whose changes a checkpoint of a workspace has: the agent's, those of others, or possibly both.
package origin

import (
	"slices"

	"deckhand/internal/sandbox"
	"deckhand/internal/session"
)

// Moment is when a checkpoint is made.
type Moment struct {
	// Start is true if the agent's tools have not used the sandbox since its work began or went on: they wait for the checkpoint.
	Start bool
	// Stop is true if the agent has just stopped working, or waits for an approval.
	Stop bool
	// Waited is true if the agent waited for an approval until now, and none of its calls was running.
	Waited bool
	// Look is true if the checkpoint is made for a comparison.
	Look bool
	// Last is an event that the session has.
	Last int64
}

// Place is what is known of the workspace.
type Place struct {
	// Open is true if people can change the files while the server does not run.
	Open bool
	// Passed is true if a command did not wait for the checkpoint.
	Passed bool
	// Looked is the last checkpoint made for a comparison, which no event has. What it has of changes is not the agent's.
	Looked int
}

// Waits reports whether the agent waits for an approval and none of its calls is running.
func Waits(st session.State) bool {
	return len(st.Open) > 0 && !slices.ContainsFunc(st.Open, func(c session.OpenCall) bool { return !c.Awaits() })
}

// Due reports whether a checkpoint is made now, and not at the end of the turn.
func (m Moment) Due(st session.State) bool {
	return !m.Stop || !st.InTurn || st.Paused || st.Answer < st.Began || Waits(st)
}

// Of sets whose changes a checkpoint has, and the event up to which it has them. st is the state when the checkpoint was begun.
func (m Moment) Of(st session.State, c sandbox.Checkpoint, p Place) (out session.Checkpointed) {
	ran := st.Ran
	if m.Start && st.InTurn {
		ran = st.RanBefore
	}
	// A call may have run if it does not wait for this checkpoint.
	calls := !m.Waited && slices.ContainsFunc(st.Open, func(c session.OpenCall) bool {
		return !c.Awaits() && (!m.Start || c.Number < st.Claim)
	})
	known := c.Previous > 0 && c.Previous <= max(st.Checkpoint, p.Looked, 1) && !p.Passed
	working := st.InTurn && !st.Paused && !Waits(st) && !m.Start
	switch {
	case known && !calls && c.Verified.After(ran):
		out.BetweenTurns = true
	case p.Open && !m.Stop && !working && c.Previous > 0:
		out.Mixed = true // the agent changed files, and then people could
	}
	if out.UpTo = st.Last; out.BetweenTurns || out.Mixed && !calls {
		out.UpTo = st.BeforeTurn()
	}
	return out
}
