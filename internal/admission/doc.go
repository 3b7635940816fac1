// Package admission decides which conversations run: how many at once on the server and per user, which is next when a
// slot becomes free, and when the queue is full. The rule is in line.go and needs neither a clock nor a database.
//
// A conversation needs a slot while its agent has a turn in progress, but not while it waits for a person. A
// conversation and the tasks that its agent delegates share one slot, so they cannot wait for each other's slots.
//
// Each server has its own slots. The limits per user and of the queue apply to all servers together: see Gate.Share.
package admission

import "deckhand/internal/session"

// Needs reports whether a session needs a slot: its agent has a turn to begin or to continue.
func Needs(st session.State) bool {
	if !st.Wants() || st.Paused {
		return false
	}
	if _, asked := st.Awaiting(); asked {
		return false
	}
	if st.Pausing && len(st.Open) == 0 && st.Ask == nil && st.Over == "" { // only the pause remains to be recorded
		return false
	}
	return st.InTurn || st.Pending() || st.Again || st.Compact != nil || st.Replaying() && st.ErrorID == ""
}

// EntryOf returns the entry of a session that needs a slot. root is its topmost ancestor, or itself.
func EntryOf(st session.State, root session.ID) Entry {
	return Entry{ID: st.ID, Root: root, Owner: st.Owner, Automated: st.Automated, Began: st.InTurn, Since: st.UpdatedAt,
		Bound: st.ClaimedBy != "" || len(st.Handle) > 0 || st.Created.Machine != "" || st.Created.Forked != nil || root != st.ID}
}
