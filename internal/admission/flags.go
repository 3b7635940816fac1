package admission

import (
	"cmp"
	"errors"

	"deckhand/internal/machine"
)

// LimitFlags are the flags for Limits; 0 is the default.
type LimitFlags struct {
	MaxRunning        int `name:"max-running" env:"DECKHAND_MAX_RUNNING" placeholder:"N" help:"Maximum number of running conversations on this server; others wait in a queue. Default (0): one per 64 MiB of this machine's memory, but at least 100."`
	MaxRunningPerUser int `name:"max-running-per-user" env:"DECKHAND_MAX_RUNNING_PER_USER" placeholder:"N" help:"Maximum number of running conversations per user, on all servers together. Default (0): half of --max-running, but not more than --user-sandboxes."`
	MaxQueued         int `name:"max-queued" env:"DECKHAND_MAX_QUEUED" placeholder:"N" help:"Maximum number of queued conversations on all servers together; above it, messages are refused with status 429. Default (0): 10,000."`
	MaxQueuedPerUser  int `name:"max-queued-per-user" env:"DECKHAND_MAX_QUEUED_PER_USER" placeholder:"N" help:"Maximum number of queued conversations per user, on all servers together. Default (0): half of --max-queued."`
}

// CheckLimits returns an error if a limit is negative.
func (f LimitFlags) CheckLimits() error {
	if min(f.MaxRunning, f.MaxRunningPerUser, f.MaxQueued, f.MaxQueuedPerUser) < 0 {
		return errors.New("--max-running, --max-running-per-user, --max-queued and --max-queued-per-user must not be negative; 0 is the default")
	}
	return nil
}

// defaultQueued is the default of --max-queued.
const defaultQueued = 10_000

// Limits returns the limits, with the defaults for this machine where a flag is 0. sandboxes is the maximum number of
// running sandboxes per user.
func (f LimitFlags) Limits(sandboxes int) Limits {
	l := Limits{Running: cmp.Or(f.MaxRunning, max(100, int(machine.Memory()/(64<<20)))), Queued: cmp.Or(f.MaxQueued, defaultQueued)}
	l.RunningPerUser = cmp.Or(f.MaxRunningPerUser, max(1, min(l.Running/2, sandboxes)))
	l.QueuedPerUser = cmp.Or(f.MaxQueuedPerUser, max(1, l.Queued/2))
	if l.Running > 1 && l.RunningPerUser < l.Running {
		l.Kept = 1
	}
	return l
}
