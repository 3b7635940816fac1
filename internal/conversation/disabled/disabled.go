// Package disabled stops the conversations of users who were disabled.
package disabled

import (
	"context"
	"errors"
	"fmt"

	"deckhand/internal/conversation"
	"deckhand/internal/session"
)

// reason is shown in a conversation that was stopped.
const reason = "the user was disabled"

// page is how many conversations are read at once.
const page = 100

// Stopper returns a function that stops all conversations of disabled users, with their agents and sandboxes. It may be
// called at any time, and again after an error.
func Stopper(users func(context.Context) ([]string, error), s *conversation.Service) func(context.Context) error {
	return func(ctx context.Context) error {
		names, err := users(ctx)
		if err != nil {
			return fmt.Errorf("list disabled users: %w", err)
		}
		for _, name := range names {
			for _, status := range []session.Status{session.Starting, session.Running} {
				if err := stop(ctx, s, session.Query{Owner: name, Status: status, Limit: page}); err != nil {
					return fmt.Errorf("stop the conversations of %s: %w", name, err)
				}
			}
		}
		return nil
	}
}

func stop(ctx context.Context, s *conversation.Service, q session.Query) error {
	for {
		rows, err := s.Index.Rows(ctx, q)
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			_, _, err := s.Stop(ctx, q.Owner, row.ID, reason)
			if err != nil && !errors.Is(err, session.ErrDeleted) && !errors.Is(err, session.ErrNotFound) {
				return err
			}
		}
		last := rows[len(rows)-1]
		q.Before = &session.Cursor{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
