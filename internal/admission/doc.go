// Package admission decides which conversations run: how many at once on the server and per user, who is next when a
// place becomes free, and when the queue is full. The rule is in line.go and needs neither a clock nor a database.
//
// A conversation runs while its agent has a turn in progress. One that waits for a person does not count. A conversation
// and the tasks that its agent delegates share one place, so a delegated task never waits for the place of the
// conversation that waits for it.
package admission

import "deckhand/internal/session"

// Needs is true for a session whose agent has a turn to begin or to continue: it runs, or waits for a place.
func Needs(st session.State) bool {
	if !st.Wants() || st.Paused {
		return false
	}
	if _, asked := st.Awaiting(); asked {
		return false
	}
	if st.Pausing && len(st.Open) == 0 && st.Ask == nil && st.Over == "" { // all that is left is to record the pause
		return false
	}
	return st.InTurn || st.Pending() || st.Again || st.Compact != nil || st.Replaying() && st.ErrorID == ""
}

// EntryOf is the entry of a session that Needs a place. root is the topmost session above it, or itself.
func EntryOf(st session.State, root session.ID) Entry {
	return Entry{ID: st.ID, Root: root, Owner: st.Owner, Automated: st.Automated, Began: st.InTurn, Since: st.UpdatedAt}
}
