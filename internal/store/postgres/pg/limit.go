package pg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

const (
	// Limit is the maximum time that a caller waits for the database, unless its context ends before: the time of a
	// statement, and of its response on a slow network.
	Limit = StatementTimeout + 5*time.Second
	// pingLimit is the same for Ping.
	pingLimit = 2 * time.Second
	// maxWaiting is how many callers may wait for a connection. Others are refused at once, because they would hold memory
	// while the database does not respond.
	maxWaiting = 1024
)

// Limits are how long callers wait. Tests set shorter ones before the first use.
type Limits struct{ Call, Ping time.Duration }

// Within runs do with a time limit. If the limit ends it, and not the context of the caller, the error is ErrTimeout, because the
// caller still waits for a result.
func Within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	err := do(limited)
	if err == nil || errors.Is(err, ErrTimeout) || ctx.Err() != nil || !late(err) && (limited.Err() == nil || !Lost(err) && !Unconnected(err)) {
		return err
	}
	return failure{fmt.Errorf("%w (%w)", ErrTimeout, brief{err})}
}

// late reports whether an error is a timeout. A connection can notice the deadline a moment before the context does.
func late(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
