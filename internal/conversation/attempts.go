package conversation

import (
	"context"
	"errors"

	"deckhand/api"
	"deckhand/internal/session"
)

// StartAttempts is the command to try a task in several forks of a conversation. Package attempts implements it.
type StartAttempts struct {
	User string
	From session.ID
	// Trigger is the entry point that sent the command.
	Trigger string
	// RetryKey is the same as in Create.
	RetryKey string
	Request  api.StartAttempts
}

// Note adds a notice to a conversation. If the conversation has no title, the first words of task, if any, become the
// title. It does nothing for a deleted conversation.
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
