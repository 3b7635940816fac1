package trigger

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"deckhand/internal/gitprovider"
	"deckhand/internal/queue"
	"deckhand/internal/session"
)

// Limits for each user.
const (
	// MaxIntegrations is how many a user may have.
	MaxIntegrations = 20
	// KeptDeliveries is how many deliveries of an integration are kept at least, and
	// KeptFor how long all of them are. What happened longer ago than that is not
	// acted upon, so that nothing is done twice although it is forgotten.
	KeptDeliveries = 1000
	KeptFor        = 7 * 24 * time.Hour
)

// What can go wrong, for errors.Is.
var (
	ErrNotFound = errors.New("integration not found")
	ErrTooMany  = errors.New("the user has reached the limit of integrations")
	// ErrUnsigned says that no secret fits what was sent.
	ErrUnsigned = errors.New("the signature does not match any integration")
	// ErrUnreadable says that it is signed, but not what such a provider sends.
	ErrUnreadable = errors.New("the delivery cannot be read")
)

// InvalidError says what is wrong with a given value.
type InvalidError struct{ Field, Msg string }

func (e *InvalidError) Error() string { return e.Msg }

// BusyError says that the queue of conversations is full, and when to try again.
type BusyError struct {
	Msg   string
	After time.Duration
}

func (e *BusyError) Error() string { return e.Msg }

// RefusedError says why a conversation cannot be started, in words for people.
type RefusedError struct {
	Msg string
	// Code names the reason for machines, as the API does; "" if there is none.
	Code string
	// Branch is true when the branch is what is missing.
	Branch bool
}

func (e *RefusedError) Error() string { return e.Msg }

// AllUsers in AllowedUsers admits all users of the provider.
const AllUsers = "*"

// Integration is a user's wish to be asked for work at a provider.
type Integration struct {
	ID, User string
	// Provider and Host are those of the token that the user stored.
	Provider, Host string
	// Mention is what calls the bot, with its @, and Label what an issue is given
	// to be worked on; "" if labels do not count.
	Mention, Label string
	// Repositories are the only ones that count; all of them if there are none.
	Repositories []string
	// AllowedUsers are the logins that may start work, or "*".
	AllowedUsers []string
	Enabled      bool
	// Sealed is the secret; only the user's key opens it.
	Sealed    []byte
	CreatedAt time.Time
	// ChangedAt grows with every change.
	ChangedAt time.Time
}

// listed is true for a repository that counts.
func (in Integration) listed(repository string) bool {
	return len(in.Repositories) == 0 || slices.ContainsFunc(in.Repositories, func(r string) bool { return strings.EqualFold(r, repository) })
}

// admits is true if a user with one of these names may start work.
func (in Integration) admits(names []string) bool {
	return slices.ContainsFunc(in.AllowedUsers, func(allowed string) bool {
		return allowed == AllUsers || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, allowed) })
	})
}

// Thread is an issue or a pull request. Providers count them together or apart.
type Thread = gitprovider.Thread

// Delivery is something that a provider told, and what became of it.
type Delivery struct {
	Integration string
	// ID is the provider's, and Print that of the content. Neither comes twice.
	ID, Print string
	// Seq is its place among its integration's.
	Seq   int64
	Event string // as the provider calls it
	Thread
	Actor     string
	CreatedAt time.Time
	State     State
	// Reason is why it was ignored or failed, or what went wrong the last time.
	Reason string
	// Task is what is to be done, until it is.
	Task []byte
	// Session is the conversation, and Said the number of the message in it.
	Session session.ID
	Said    int64
	// Posting is the event whose answer may have been posted, 0 before that is tried.
	Posting  int64
	Attempts int
	// NextAt is when it is taken up next; zero if nothing is to be done now.
	NextAt time.Time
	DoneAt time.Time
	// Claim is the one under which it is worked on. It is not stored.
	Claim queue.Claim
}

// State is where a delivery stands.
type State string

// The states of a delivery.
const (
	Waiting  State = "waiting"  // recorded
	Working  State = "working"  // the agent was told
	Answered State = "answered" // the answer is posted
	Ignored  State = "ignored"  // nothing was to be done
	Failed   State = "failed"
)

// Store keeps integrations. Implementations pass triggertest. Times survive to
// the microsecond.
type Store interface {
	// AddIntegration stores a new one; ErrTooMany.
	AddIntegration(ctx context.Context, in Integration) error
	// Integrations lists a user's, the oldest first.
	Integrations(ctx context.Context, user string) ([]Integration, error)
	// ChangeIntegration applies a change to one and returns it as it is then;
	// ErrNotFound. An error of change is returned, and nothing changed. It must not
	// block and may not touch ID, User, Provider and CreatedAt. ChangedAt is set to
	// at, or later if need be.
	ChangeIntegration(ctx context.Context, user, id string, at time.Time, change func(*Integration) error) (Integration, error)
	// RemoveIntegration removes one with all that came for it; ErrNotFound.
	RemoveIntegration(ctx context.Context, user, id string) error
	// Deliveries lists those of an integration, newest first, below a Seq (0: all);
	// ErrNotFound if the user has no such integration.
	Deliveries(ctx context.Context, user, integration string, before int64, limit int) ([]Delivery, error)
}

// Inbox is the Receiver's and the Worker's side of the store.
type Inbox interface {
	// A lane of the queue is an issue or a pull request, for what is Waiting, and a
	// conversation, for what is Working.
	queue.Store
	// Listening lists the enabled integrations with a provider of users who are
	// not disabled; with an id that one alone.
	Listening(ctx context.Context, provider, id string) ([]Integration, error)
	// Integration returns one by ID, of any user; ErrNotFound.
	Integration(ctx context.Context, id string) (Integration, error)
	// Record stores a delivery and gives it its Seq; false if the integration has
	// one with this ID or this Print. Of those that are settled, it drops what is
	// neither among the newest KeptDeliveries nor younger than KeptFor.
	Record(ctx context.Context, d Delivery) (fresh bool, err error)
	// Next is the delivery that is due first in a lane; false if there is none.
	Next(ctx context.Context, lane string, now time.Time) (Delivery, bool, error)
	// AtWork lists the deliveries that are Working on a session, or on any if it
	// is "", in order.
	AtWork(ctx context.Context, id session.ID) ([]Delivery, error)
	// Settle stores deliveries as they are now, all or none, but for those whose claim was
	// lost. One that is Working makes its session the thread's.
	Settle(ctx context.Context, ds ...Delivery) error
	// SessionOf is the session of a thread, "" if it has none.
	SessionOf(ctx context.Context, integration string, t Thread) (session.ID, error)
}
