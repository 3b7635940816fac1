package conversation

import (
	"context"
	"fmt"
	"slices"

	"deckhand/api"
	"deckhand/internal/session"
)

// Queued reads the messages that the agent has not read yet; each is a session.UserSaid.
func (s *Service) Queued(ctx context.Context, st session.State) ([]session.Event, error) {
	numbers := st.Queued()
	if len(numbers) == 0 {
		return nil, nil
	}
	var out []session.Event
	for e, err := range s.Log.Read(ctx, st.ID, numbers[0]-1) {
		if err != nil {
			return nil, err
		}
		if len(out) == len(numbers) || e.Number > st.Last {
			break
		}
		if e.Number == numbers[len(out)] {
			out = append(out, e)
		}
	}
	return out, nil
}

// QueueChange is what happens to a queued message.
type QueueChange struct {
	// Text replaces the text of the message; nil keeps it.
	Text *string
	// Position is the new place in the queue, 0 is first; nil keeps it.
	Position *int
	// Delete withdraws the message.
	Delete bool
	// SendNow interrupts the agent's step in progress, so that it reads the message next.
	SendNow bool
}

// ChangeQueue edits, moves or withdraws a message that the agent has not read. The messages behind it are withdrawn and
// said again in the new order, so their numbers change.
func (s *Service) ChangeQueue(ctx context.Context, user string, id session.ID, message int64, c QueueChange) (session.State, error) {
	if _, err := s.Row(ctx, user, id); err != nil {
		return session.State{}, err
	}
	return s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		queued, err := s.Queued(ctx, st)
		if err != nil {
			return nil, err
		}
		from := slices.IndexFunc(queued, func(e session.Event) bool { return e.Number == message })
		if from < 0 {
			return nil, fmt.Errorf("%w: the agent has already read this message, or it was withdrawn", session.ErrRefused)
		}
		rules := []func(session.State) ([]session.Payload, error){func(st session.State) ([]session.Payload, error) {
			return requeue(st, queued, from, c)
		}}
		if c.SendNow {
			rules = append(rules, session.State.SendNow)
		}
		return session.Chain(rules...)(st)
	})
}

// requeue is the change of one message in the list.
func requeue(st session.State, queued []session.Event, at int, c QueueChange) ([]session.Payload, error) {
	one := queued[at]
	said := one.Payload.(session.UserSaid)
	if c.Delete {
		return st.Requeue([]int64{one.Number})
	}
	if c.Text != nil {
		said.Text = *c.Text
		if err := CheckMessage(said, "content"); err != nil {
			return nil, err
		}
	}
	to := at
	if c.Position != nil {
		to = min(*c.Position, len(queued)-1)
	}
	if to == at && (c.Text == nil || *c.Text == one.Payload.(session.UserSaid).Text) {
		return nil, nil
	}
	one.Payload = said
	list := slices.Insert(slices.Delete(slices.Clone(queued), at, at+1), to, one)
	first := min(at, to)
	var gone []int64
	var again []session.UserSaid
	for i := first; i < len(queued); i++ {
		gone, again = append(gone, queued[i].Number), append(again, list[i].Payload.(session.UserSaid))
	}
	return st.Requeue(gone, again...)
}

// QueueChangeOf reads the body of a request.
func QueueChangeOf(b api.ChangeQueuedMessage) QueueChange {
	c := QueueChange{SendNow: b.SendNow.Value}
	if b.Content.Set {
		c.Text = &b.Content.Value
	}
	if b.Position.Set {
		c.Position = &b.Position.Value
	}
	return c
}
