package reserve

import "deckhand/internal/session"

// Final says that a batch records that a conversation is stopped, deleted or failed.
func Final(b session.Batch) bool {
	for _, e := range b.Events {
		switch e.Payload.(type) {
		case session.Stopped, session.Deleted, session.Failed:
			return true
		}
	}
	return false
}

// Closing says that a batch only records how something ended. These may use the reserve.
func Closing(b session.Batch) bool {
	for _, e := range b.Events {
		switch e.Payload.(type) {
		case session.Stopped, session.Deleted, session.Failed, session.Noted, session.ToolReturned, session.CommandEnded, session.ModelFailed,
			session.TurnEnded, session.StateChanged, session.PauseRequested, session.Paused, session.Settled, session.ApprovalGiven:
		default:
			return false
		}
	}
	return true
}
