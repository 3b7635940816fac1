package conversation

import (
	"context"
	"errors"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

// Admission keeps the queue of conversations that wait for a free place.
type Admission interface {
	// Reserve reserves room for one message to each conversation before anything is stored. If the queue is full, the
	// error has a method QueueFull that says when to try again. release must be called after the messages were stored.
	Reserve(user string, ids ...session.ID) (release func(), err error)
	// Arrived queues a conversation whose message is stored. It never blocks.
	Arrived(st session.State)
	// Place is the position of a conversation in the queue, nil if it does not wait.
	Place(id session.ID) *api.QueuePlace
}

// reserve is Admission.Reserve with a refusal.
func (s *Service) reserve(user string, ids ...session.ID) (release func(), err error) {
	release, err = s.Admission.Reserve(user, ids...)
	var full interface {
		error
		QueueFull() time.Duration
	}
	if errors.As(err, &full) {
		err = &Refusal{Kind: TooMany, Code: api.CodeQueueFull, Text: full.Error(), RetryAfter: full.QueueFull()}
	}
	return release, err
}

// arrived queues a conversation, unless the loop has looked at it since.
func (s *Service) arrived(st session.State) {
	if now, ok := s.Sessions.Peek(st.ID); ok && now.Last == st.Last {
		s.Admission.Arrived(st)
	}
}

// CheckRoom refuses to start so many more conversations of a user at once if the queue has no room for them.
func (s *Service) CheckRoom(_ context.Context, user string, ids ...session.ID) error {
	release, err := s.reserve(user, ids...)
	release()
	return err
}

// unlimited is an Admission with room for all.
type unlimited struct{}

func (unlimited) Reserve(string, ...session.ID) (func(), error) { return func() {}, nil }
func (unlimited) Arrived(session.State)                         {}
func (unlimited) Place(session.ID) *api.QueuePlace              { return nil }
