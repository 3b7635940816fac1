package conversation

import (
	"context"
	"errors"

	"deckhand/api"
	"deckhand/internal/session"
)

// StartAttempts is the command to try a task in several forks of a conversation. Package attempts carries it out.
type StartAttempts struct {
	User string
	From session.ID
	// Trigger says who asks for it.
	Trigger string
	// RetryKey is as in Create.
	RetryKey string
	Request  api.StartAttempts
}

// Note adds a notice for the readers of a conversation. The first words of task, if there are any, become the title of a
// conversation that has none. A conversation that was deleted is left alone.
func (s *Service) Note(ctx context.Context, user string, id session.ID, n session.Noted, task string) error {
	_, err := s.change(ctx, user, id, func(st session.State) ([]session.Payload, error) {
		if st.Deleted {
			return nil, session.ErrDeleted
		}
		title, err := s.firstWords(ctx, st, user, task)
		return append([]session.Payload{n}, title...), err
	})
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrDeleted) {
		return nil
	}
	return err
}
