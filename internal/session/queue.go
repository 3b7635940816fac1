package session

import (
	"fmt"
	"slices"
)

// Queued are the numbers of messages that wait for the agent, oldest first. A turn has taken up what was said before it
// began; one that ended in an error has not.
func (s State) Queued() []int64 {
	after := s.Seen
	switch {
	case s.Replaying() && s.Spoke == 0:
		return nil
	case s.Replaying():
		after = s.Spoke - 1 // what people say waits for the end of a recording
	case s.InTurn:
		after = max(s.Seen, s.Shown, s.Began)
	}
	at, _ := slices.BinarySearch(s.said, after+1)
	return s.said[at:]
}

// Requeue withdraws queued messages and says others in their place, in one step: an edit or a new order must not lose a message, nor show one twice.
func (s State) Requeue(withdrawn []int64, again ...UserSaid) ([]Payload, error) {
	out := []Payload{Withdrawn{Messages: withdrawn}}
	if s.Check(out[0]) != nil {
		return nil, fmt.Errorf("%w: the agent has already read this message", ErrRefused)
	}
	for _, m := range again {
		m.Key = "" // it was delivered once
		out = append(out, m)
	}
	return out, nil
}

// SendNow interrupts the step in progress, so that the agent reads queued messages next.
func (s State) SendNow() ([]Payload, error) { return Chain(State.PauseNow, State.Resume)(s) }

func (s State) checkWithdrawn(p Withdrawn) error {
	queued := s.Queued()
	for i, n := range p.Messages {
		if s.Replaying() || n <= s.Shown || !slices.Contains(queued, n) || slices.Contains(p.Messages[:i], n) {
			return s.no(p, "a message is withdrawn once, before the model is shown it")
		}
	}
	return nil
}

// without is the state after messages were withdrawn.
func (s State) without(messages []int64) State {
	s.said = slices.DeleteFunc(slices.Clone(s.said), func(n int64) bool { return slices.Contains(messages, n) })
	if slices.Contains(messages, s.LastSaid) {
		if s.LastSaid = s.heard; len(s.said) > 0 {
			s.LastSaid = max(s.heard, s.said[len(s.said)-1])
		}
	}
	return s
}
