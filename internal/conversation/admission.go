package conversation

import (
	"context"
	"errors"
	"time"

	"deckhand/api"
	"deckhand/internal/session"
)

// Admission is the queue of conversations that wait for a free slot.
type Admission interface {
	// Reserve reserves room for one message to each conversation before it is stored. If the queue is full, the error has
	// a method QueueFull that returns when to try again. release must be called after the messages were stored.
	Reserve(user string, ids ...session.ID) (release func(), err error)
	// Arrived queues a conversation whose message is stored. It never blocks.
	Arrived(st session.State)
	// Place returns the position of a conversation in the queue, nil if it does not wait.
	Place(id session.ID) *api.QueuePlace
}

// reserve calls Admission.Reserve and returns a Refusal if the queue is full.
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

// arrived queues a conversation, unless it has changed since.
func (s *Service) arrived(st session.State) {
	if now, ok := s.Sessions.Peek(st.ID); ok && now.Last == st.Last {
		s.Admission.Arrived(st)
	}
}

// CheckRoom returns a Refusal if the queue has no room for these conversations of a user.
func (s *Service) CheckRoom(_ context.Context, user string, ids ...session.ID) error {
	release, err := s.reserve(user, ids...)
	release()
	return err
}

// unlimited is an Admission without limits.
type unlimited struct{}

func (unlimited) Reserve(string, ...session.ID) (func(), error) { return func() {}, nil }
func (unlimited) Arrived(session.State)                         {}
func (unlimited) Place(session.ID) *api.QueuePlace              { return nil }
