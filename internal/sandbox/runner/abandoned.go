package runner

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

const (
	// AbandonedAfter is how long a runner waits for a server to come back after the
	// last command.
	AbandonedAfter = time.Hour
	// busyFactor times as long it waits while a command runs.
	busyFactor = 24
	// suspendedAfter is how long it waits before it tries to be suspended, and then tries again.
	suspendedAfter = time.Minute
	// lookEvery is how often the runner looks whether it was abandoned.
	lookEvery = 5 * time.Second
)

// Abandoned returns when no server will come back, and says why: the folder of the
// runner was removed, or no server was attached for so long after the last command. A runner
// with nothing to do is suspended before that.
func (r *Runner) Abandoned(after time.Duration) string {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	tried := time.Now()
	for now := range tick.C {
		if why := r.abandoned(now, after); why != "" {
			return why
		}
		if r.config.Exit != nil && now.Sub(tried) >= suspendedAfter && r.alone(now) >= suspendedAfter {
			if tried = now; r.Suspend(context.Background(), r.results, 0) == nil {
				r.config.Exit()
			}
		}
	}
	return ""
}

// alone is how long no server has asked for anything, 0 while one is connected.
func (r *Runner) alone(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.peers) > 0 {
		return 0
	}
	return now.Sub(r.used)
}

func (r *Runner) abandoned(now time.Time, after time.Duration) string {
	if removed(r.config.State) {
		return "its folder was removed"
	}
	busy := r.shells.Busy()
	r.mu.Lock()
	defer r.mu.Unlock()
	if busy {
		after *= busyFactor
	}
	if len(r.peers) > 0 || now.Sub(r.used) < after {
		return ""
	}
	return "no server was attached for " + now.Sub(r.used).Round(time.Second).String()
}

// removed says whether a folder does not exist any more, also by a path that leads
// through an open descriptor.
func removed(dir string) bool {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	if err != nil {
		return false // it may be there, and only not for us
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 0
}

// Alone waits until the last server has left, and returns what is closed when one attaches;
// nil when the runner ends. Before the first server came, there is nothing to wait for.
func (r *Runner) Alone() <-chan struct{} {
	for {
		r.mu.Lock()
		left, attached, over := r.left, r.attached, r.closed
		r.mu.Unlock()
		if over {
			return nil
		}
		if closed(left) {
			return attached
		}
		<-left
	}
}

// Busy says whether a command runs.
func (r *Runner) Busy() bool { return r.shells.Busy() }

// EndAll ends everything but the runner, and tells what ran why.
func (r *Runner) EndAll(ctx context.Context, why string) error { return r.shells.EndAll(ctx, why) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// touch remembers that something was asked for.
func (r *Runner) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used = time.Now()
}

// vitals counts what runs, and takes the limit of that.
func (r *Runner) vitals(_ context.Context, c *rpc.Call) (any, error) {
	var p sandbox.VitalsParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	if p.Load { // it is for people, and takes nothing from the keeper
		cpu, memory := r.shells.ProcessLimit.Load()
		return sandbox.Vitals{Processes: r.shells.ProcessLimit.Count(), CPU: cpu, Memory: memory}, nil
	}
	if os.Getpid() == 1 { // otherwise processes are counted that are not the sandbox's
		r.shells.ProcessLimit.Limit(p.Limit)
	}
	return sandbox.Vitals{Processes: r.shells.ProcessLimit.Count(), Ended: r.shells.ProcessLimit.Ended()}, nil
}
