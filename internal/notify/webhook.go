package notify

import (
	"context"
	"errors"
	"strings"
	"time"

	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// Limits for each user.
const (
	// MaxWebhooks is how many a user may have, of each kind.
	MaxWebhooks = 20
	// MaxWaiting is how many deliveries may wait for one webhook. With the last of
	// them the webhook is disabled, so that a receiver that is away for good does
	// not fill the disk.
	MaxWaiting = 10_000
	// KeptDeliveries is how many deliveries of a webhook are kept to be looked at,
	// and KeptFor how long.
	KeptDeliveries = 1000
	KeptFor        = 30 * 24 * time.Hour
)

// What can go wrong, for errors.Is.
var (
	ErrNotFound = errors.New("webhook not found")
	ErrTooMany  = errors.New("the user has reached the limit of webhooks")
	ErrDisabled = errors.New("the webhook is disabled")
)

// Kind says how a receiver is told: it is the first part of the receiver's ID.
type Kind string

// The kinds of receivers. A user's webhooks are told what happened; browsers and e-mail are for
// the person, so an Announcer decides what they are told, and when.
const (
	KindWebhook Kind = "wh"
	KindPush    Kind = "pu"
	KindMail    Kind = "em"
)

// KindOf is the kind of the receiver with an ID.
func KindOf(id string) Kind {
	switch kind, _, _ := strings.Cut(id, "_"); Kind(kind) {
	case KindPush:
		return KindPush
	case KindMail:
		return KindMail
	}
	return KindWebhook
}

// Webhook is an address of a user's that is told of news: a webhook, or another receiver.
type Webhook struct {
	ID          string
	User        string
	Description string
	Events      Events
	Enabled     bool
	// Sealed is its Target; only the user's key opens it.
	Sealed    []byte
	CreatedAt time.Time
	// ChangedAt is when its user changed it last. It grows with every change, so
	// that an attempt made before one does not count after it.
	ChangedAt time.Time
	Health    Health
	// Waiting is how many deliveries wait. The store counts them.
	Waiting int
}

// Health is how a webhook's attempts went lately.
type Health struct {
	// Failures is how many attempts failed since the last success, and
	// FailingSince when the first of them did; zero if none.
	Failures     int
	FailingSince time.Time
	// QuietUntil is when the next attempt may be made, whatever waits.
	QuietUntil time.Time
	// Disabled is why we disabled the webhook; "" if we did not.
	Disabled string
}

// Delivery is one piece of news on its way to one webhook.
type Delivery struct {
	// ID is the same for every attempt: receivers recognise a second one by it.
	ID string
	// Seq is its place among its webhook's, without gaps.
	Seq     int64
	Webhook string
	Type    string
	// Session and Event say what it is about; none for a test.
	Session   session.ID
	Event     int64
	Body      []byte
	CreatedAt time.Time
	State     State
	Attempts  int
	// NextAt is when it is tried next, if State is Waiting.
	NextAt time.Time
	// The last attempt: zero before the first. Status is 0 without an answer.
	LastAt time.Time
	Took   time.Duration
	Status int
	Error  string
	// Claim is the one under which it is sent. It is not stored.
	Claim queue.Claim
}

// State is where a delivery stands.
type State string

// The states of a delivery.
const (
	Waiting   State = "waiting"
	Delivered State = "delivered"
	GivenUp   State = "failed"
	// Skipped was not sent, because the person does not want it or has seen it.
	Skipped State = "skipped"
)

// Store keeps webhooks. Implementations pass notifytest. Times survive to the
// microsecond.
type Store interface {
	// AddWebhook stores a new one; ErrTooMany. It replaces one with the same ID. If that was
	// another user's, its deliveries are removed.
	AddWebhook(ctx context.Context, w Webhook) error
	// Webhooks lists a user's receivers of a kind, the oldest first.
	Webhooks(ctx context.Context, user string, kind Kind) ([]Webhook, error)
	// ChangeWebhook applies a change to one and returns it as it is then;
	// ErrNotFound. An error of change is returned, and nothing changed. It may be
	// called more than once and must not block; it may not touch ID, User,
	// CreatedAt and Waiting. ChangedAt is set to at, or later if need be. When the
	// change takes failures away, whatever waits is due at once.
	ChangeWebhook(ctx context.Context, user, id string, at time.Time, change func(*Webhook) error) (Webhook, error)
	// RemoveWebhook removes one with its deliveries; ErrNotFound.
	RemoveWebhook(ctx context.Context, user, id string) error
}

// Deliveries is the record of what was sent, or is to be.
type Deliveries interface {
	// Deliveries lists those of a webhook, newest first, below a Seq (0: all);
	// ErrNotFound if the user has no such webhook.
	Deliveries(ctx context.Context, user, webhook string, before int64, limit int) ([]Delivery, error)
	// Queue adds one that is due at its CreatedAt, and gives it its Seq;
	// ErrNotFound, ErrDisabled.
	Queue(ctx context.Context, user string, d Delivery) (Delivery, error)
	// Requeue makes one due, with all attempts before it; ErrNotFound, ErrDisabled.
	Requeue(ctx context.Context, user, webhook, id string, at time.Time) (Delivery, error)
}

// Outbox is the Dispatcher's side of the store.
type Outbox interface {
	// A lane of the queue is a webhook, by its ID. It is due when a delivery is, the webhook
	// is enabled and its receiver need not be left alone.
	queue.Store
	// Next is the delivery that is due first for a webhook, and the webhook; false
	// if there is none.
	Next(ctx context.Context, webhook string, now time.Time) (Webhook, Delivery, bool, error)
	// Settle records an attempt: the delivery as it is now, and the health of its
	// webhook. The latter is ignored if the webhook was changed since w.ChangedAt, and
	// all of it if the claim was lost. The lane is given back.
	// Of deliveries that wait no more, the webhook keeps the newest KeptDeliveries.
	Settle(ctx context.Context, w Webhook, d Delivery) error
	// RemoveWebhook is as in Store.
	RemoveWebhook(ctx context.Context, user, id string) error
	// Trim drops deliveries made before a moment.
	Trim(ctx context.Context, before time.Time) error
	// Added has a value when something may have become due, after the commit.
	Added() <-chan struct{}
}
