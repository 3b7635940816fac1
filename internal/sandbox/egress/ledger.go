package egress

import (
	"context"
	"time"
)

// Verdict is how a request or tunnel ended.
type Verdict string

// The verdicts.
const (
	// Allowed: it reached its host, whatever became of it there.
	Allowed Verdict = "allowed"
	// Refused: the policy, the address or a limit was against it. With bytes, it
	// was cut when the policy changed.
	Refused Verdict = "refused"
	// Failed: it was allowed, and the host was not reached or stopped answering.
	Failed Verdict = "failed"
)

// StillOpen is the Reason of an entry for a part of something that went on.
const StillOpen = "still open"

// Entry is one request or tunnel that left, or wanted to leave, a sandbox.
//
// Something that takes longer than a minute has several: one for each part of
// it, with the bytes of that part, the first after a minute and the next after
// twice the time, up to an hour. All but the last have the Reason StillOpen. So
// sums are right at any time, and a server that dies loses little.
type Entry struct {
	// ID is given by the ledger. It grows from entry to entry of a sandbox.
	ID   int64
	At   time.Time
	Took time.Duration
	// Call is the tool call that ran when the connection was made, "" if unknown.
	Call string
	// Method is the one of HTTP, CONNECT for tunnels.
	Method string
	// Host is a name in lower case or an address; "" if it was neither.
	Host string
	Port uint16
	// Sent and Received count what went to the host and came from it, all that was
	// on the wire: heads as well as bodies, and TLS as it is.
	Sent, Received int64
	Verdict        Verdict
	// Reason is for people; "" if there is nothing to say.
	Reason string
}

// KeptEntries is how many entries of a sandbox a Ledger keeps: the last ones.
const KeptEntries = 10_000

// Ledger keeps entries. All methods may be called concurrently. Times are kept
// to the microsecond at least.
type Ledger interface {
	// Record adds entries in this order, giving them IDs above all that the
	// sandbox had, and drops the oldest beyond KeptEntries. All are stored or
	// none. The ID in an entry is ignored.
	Record(ctx context.Context, sandboxID string, entries []Entry) error
	// Entries returns at most limit entries with an ID below before, or the last
	// ones if before is 0; the newest first. A sandbox that is not known has none.
	Entries(ctx context.Context, sandboxID string, before int64, limit int) ([]Entry, error)
	// Forget removes all entries of a sandbox. It is idempotent.
	Forget(ctx context.Context, sandboxID string) error
}
