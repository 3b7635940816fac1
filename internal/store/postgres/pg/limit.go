package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// Limit is how long a caller waits for the database at most, unless its context ends before: the time of a statement,
	// and of its answer on a slow network.
	Limit = StatementTimeout + 5*time.Second
	// pingLimit is the same for a question that only asks whether the database responds.
	pingLimit = 2 * time.Second
	// maxWaiting is how many callers wait for a connection. More are refused at once: they would hold memory for as long
	// as the database does not respond.
	maxWaiting = 1024
)

// Limits are how long callers wait. Tests set shorter ones before the first use.
type Limits struct{ Call, Ping time.Duration }

// Within runs do with a limit. If the limit ends it, and not the caller, the error is ErrSilent: the caller has not left,
// and waits for an answer.
func Within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err := do(limited)
	if err == nil || errors.Is(err, ErrSilent) || ctx.Err() != nil || !late(err) && (limited.Err() == nil || !Lost(err) && !Unconnected(err)) {
		return err
	}
	return failure{fmt.Errorf("%w (%w)", ErrSilent, brief{err})}
}

// late reports whether time was up. A connection can notice that a moment before the context does.
func late(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
