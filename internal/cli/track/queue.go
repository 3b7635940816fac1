package track

import (
	"slices"

	"deckhand/internal/session"
)

// Queue has the messages that the agent has not read yet, oldest first.
type Queue struct{ Messages []session.Event }

// Take processes the next event and returns the events to show now: a message that is sent during a turn is shown when the
// agent reads it. state is the state before the event.
func (q *Queue) Take(e session.Event, state session.AgentState) []session.Event {
	switch p := e.Payload.(type) {
	case session.UserSaid:
		inTurn := state == session.AgentRunning || state == session.AgentUserYes || state == session.AgentUserNo || state == session.AgentRateLimited
		if inTurn || len(q.Messages) > 0 {
			q.Messages = append(q.Messages, e)
			return nil
		}
	case session.Withdrawn:
		q.Messages = slices.DeleteFunc(q.Messages, func(m session.Event) bool { return slices.Contains(p.Messages, m.Number) })
	case session.ModelAsked:
		if p.Purpose == "" {
			n := slices.IndexFunc(q.Messages, func(m session.Event) bool { return m.Number > p.UpTo })
			if n < 0 {
				n = len(q.Messages)
			}
			read := slices.Clone(q.Messages[:n])
			q.Messages = q.Messages[n:]
			return append(read, e)
		}
	}
	return []session.Event{e}
}
