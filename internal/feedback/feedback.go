// Package feedback is the port for what people say of the agent's work: a verdict on
// a whole conversation, or stars for one of its events. It stays on this server, for
// its operator to read. The API uses it, a database implements it.
package feedback

import (
	"context"
	"time"
)

// Kept is how many entries one conversation has at most; older ones give way.
const Kept = 500

// Entry is one piece of feedback.
type Entry struct {
	// ID is given by the store. It grows, and is never used twice.
	ID      int64
	User    string
	Session string
	At      time.Time
	// Rating is 1 to 5 stars. 0 marks a verdict, which has a Polarity instead.
	Rating int
	// Event is what the stars are for; 0 is the conversation as a whole.
	Event  int64
	Reason string
	// Metadata is a JSON object that came with the stars; nil if none did.
	Metadata []byte
	// Polarity is positive or negative.
	Polarity string
	// Permissions say whether the person would have others see it: public or private.
	Permissions string
	Email       string
	// Version is that of the client.
	Version string
}

// Store keeps entries durably. Times survive to the microsecond.
type Store interface {
	// Add keeps an entry and returns it with its id. Stars replace those that the
	// same user gave to the same event of the same conversation before.
	Add(ctx context.Context, e Entry) (Entry, error)
	// Ratings are the stars that a user gave in a conversation, by event.
	Ratings(ctx context.Context, user, session string) ([]Entry, error)
	// Page returns the entries of all users, newest first: those with an ID below before, or
	// from the newest on if it is 0.
	Page(ctx context.Context, before int64, limit int) ([]Entry, error)
	// Forget removes what was said about a conversation.
	Forget(ctx context.Context, session string) error
}
