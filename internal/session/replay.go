package session

import (
	"fmt"
	"strings"
)

// replayKey begins the keys of messages that a replay says.
const replayKey = "replay:"

// Recorded is true for a message that a replay says.
func (m UserSaid) Recorded() bool { return strings.HasPrefix(m.Key, replayKey) }

// ReplayStep records one step of the recorded trajectory: the message said, or nothing if it was the agent's; done when
// it was the last one. Then follows the message that waited for it.
func (s State) ReplayStep(claim int64, said *UserSaid, done bool) ([]Payload, error) {
	if err := s.owned(claim); err != nil {
		return nil, err
	}
	if !s.Replaying() || s.Paused {
		return nil, fmt.Errorf("%w: nothing is being replayed", ErrRefused)
	}
	var out []Payload
	next := s.Replay
	if said != nil {
		m := *said
		m.Key = fmt.Sprintf("%s%d", replayKey, next)
		out = append(out, m)
		next++
	}
	out = append(out, Replayed{Next: next, Done: done})
	then := s.Created.Then
	switch {
	case !done:
	case then != nil && (then.Key == "" || !s.Delivered(then.Key)):
		out = append(out, *then)
	case s.Agent == AgentLoading && said == nil && !s.InTurn && !s.Pending() && s.Spoke == 0:
		out = append(out, StateChanged{State: AgentAwaitingUser})
	}
	return out, nil
}
