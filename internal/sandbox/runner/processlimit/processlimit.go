// Package processlimit notices that a sandbox is full of processes and stays so, as with a fork bomb,
// and finds out which of them to end.
package processlimit

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/sandbox/runner/processes"
)

const (
	// sustained is how long a sandbox must be unable to start a process. A build that meets the
	// limit for a moment goes on.
	sustained = 4 * time.Second
	// lookEvery is how often the processes are counted, and lookSoon how often while there are many.
	lookEvery = 3 * time.Second
	lookSoon  = 250 * time.Millisecond
	// again is how soon after it was relieved a sandbox is taken to be full for the same reason,
	// and attempts how often the rest of it is spared.
	again    = 20 * time.Second
	attempts = 2
	// settled is how long a shell may still wait after the sandbox was full: bash tries to
	// start a process again after up to 16 seconds, and before that after half of that.
	settled = 35 * time.Second
)

// Watch ends what keeps a sandbox full of processes.
type Watch struct {
	// CanStart reports whether a process can be started now.
	CanStart func() bool
	// Relieve ends what takes up the most processes, and says what it has done, and whether that
	// was a command, which cannot start more of them then. If all is true it ends everything.
	Relieve func(limit int, all bool) (why string, command bool)

	limit atomic.Int64
	seen  atomic.Int64 // when the sandbox was last seen to be full, in nanoseconds
	begin sync.Once
	quit  chan struct{}
	done  sync.WaitGroup

	mu    sync.Mutex
	ended string
}

// New makes a Watch. It begins with the first Limit.
func New(canStart func() bool, relieve func(limit int, all bool) (why string, command bool)) *Watch {
	return &Watch{CanStart: canStart, Relieve: relieve, quit: make(chan struct{})}
}

// Limit says how many processes and threads the sandbox may have.
func (w *Watch) Limit(n int) {
	if n <= 0 {
		return
	}
	w.limit.Store(int64(n))
	w.begin.Do(func() { w.done.Go(w.loop) })
}

// Ended is what was ended since it was last asked for, in words; "" for nothing.
func (w *Watch) Ended() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.ended
	w.ended = ""
	return was
}

// Count counts the processes and threads of the sandbox.
func (w *Watch) Count() int { return processes.Count() }

// Load is the processor time and the memory of the processes of the sandbox.
func (w *Watch) Load() (cpu time.Duration, memory int64) { return processes.Load(os.Getpid()) }

// Close ends the watch. It may be called once.
func (w *Watch) Close() {
	close(w.quit)
	w.begin.Do(func() {})
	w.done.Wait()
}

// Lately reports whether processes may wait because the sandbox is full, or was a moment ago.
func (w *Watch) Lately() bool {
	limit := int(w.limit.Load())
	if limit == 0 {
		return false
	}
	if near(processes.Count(), limit) {
		w.seen.Store(time.Now().UnixNano())
		return true
	}
	return time.Since(time.Unix(0, w.seen.Load())) < settled
}

func near(n, limit int) bool { return n*10 >= limit*9 }

func (w *Watch) loop() {
	var p pressure
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-w.quit:
			return
		}
		limit := int(w.limit.Load())
		n := processes.Count()
		// With the last few processes a shell cannot do much, though it can start one.
		full := n*100 >= limit*98 || near(n, limit) && !w.CanStart()
		if full {
			w.seen.Store(time.Now().UnixNano())
		}
		if p.look(time.Now(), full) {
			why, command := w.Relieve(limit, p.times >= attempts)
			p.relieved(time.Now(), command)
			w.mu.Lock()
			w.ended = why
			w.mu.Unlock()
		}
		wait := lookEvery
		if n*2 >= limit || p.full > 0 {
			wait = lookSoon
		}
		timer.Reset(wait)
	}
}

// pressure is for how long a sandbox could start no process.
type pressure struct {
	full  time.Duration
	at    time.Time // of the last look
	last  time.Time // when the sandbox was last relieved
	times int       // how often it was in vain, each time not long after the one before
}

// look records a look, and reports whether the sandbox must be relieved. The time in which a
// process could be started counts against the time in which none could: a bomb whose processes
// come and go leaves gaps.
func (p *pressure) look(now time.Time, full bool) bool {
	span := now.Sub(p.at)
	p.at = now
	if !full {
		p.full = max(0, p.full-span)
		return false
	}
	p.full += min(span, time.Second) // of a longer time not much is known
	if now.Sub(p.last) >= again {
		p.times = 0
	}
	if p.times > 0 {
		return p.full >= sustained/2
	}
	return p.full >= sustained
}

func (p *pressure) relieved(now time.Time, command bool) {
	p.full, p.at, p.last = 0, now, now
	if p.times++; command {
		p.times = 0
	}
}

// Reason says in words whose processes were ended and what to do.
func Reason(limit int, whose string) string {
	return fmt.Sprintf("Process limit reached: %s used all %d processes and threads of the sandbox for several seconds and were ended. "+
		"Other commands may have failed in that time. Start fewer processes at once.", whose, limit)
}
