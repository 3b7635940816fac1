package shell

import (
	"context"
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"

	"deckhand/internal/sandbox/runner/processes"
	"deckhand/internal/sandbox/runner/processlimit"
)

const (
	// relieveTime is how long ending processes at the limit may take.
	relieveTime = 10 * time.Second
	// startTime is how long a command waits for a shell that cannot be started at the limit.
	startTime  = 20 * time.Second
	startPause = 50 * time.Millisecond
)

// Relieve ends the command or the background processes that take up the most of a sandbox in
// which no process can be started, and says what was ended. All other processes, the shells
// among them, continue. If all is true everything is ended. This process must be the first.
func (s *Shells) Relieve(limit int, all bool) (why string, command bool) {
	ctx, cancel := context.WithTimeout(context.Background(), relieveTime)
	defer cancel()
	why = processlimit.Reason(limit, "commands and background processes")
	if all {
		_ = s.EndAll(ctx, why) // what is left is found at the next look
		return why, false
	}
	s.ending.Lock()
	defer s.ending.Unlock()
	ended, release := processlimit.End(limit, s.leaders)
	for _, u := range ended {
		why, command = s.relieved(u, limit), command || u.Running
	}
	release()
	return why, command
}

// leaders are the processes that the runner started.
func (s *Shells) leaders() []processlimit.Leader {
	found := map[int]processlimit.Leader{}
	for _, pid := range s.config.Spawner.Running() {
		found[pid] = processlimit.Leader{PID: pid}
	}
	for _, sh := range s.all() {
		sh.mu.Lock()
		if p := sh.proc; p != nil {
			l := processlimit.Leader{PID: p.PID, Foreground: p.tty.foreground()}
			if sh.job != nil {
				l.Began = sh.job.since
			}
			found[p.PID] = l
		}
		sh.mu.Unlock()
	}
	return slices.Collect(maps.Values(found))
}

func (s *Shells) all() []*shell {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.shells))
}

// relieved tells a shell what was ended, and ends the command that was.
func (s *Shells) relieved(u processlimit.Unit, limit int) string {
	why := processlimit.Reason(limit, "background processes of an earlier command")
	if u.Running {
		why = processlimit.Reason(limit, "the processes of this command")
	}
	for _, sh := range s.all() {
		sh.mu.Lock()
		led := sh.proc != nil && sh.proc.PID == u.Leader
		switch {
		case led && u.Running && sh.job != nil:
			sh.job.why = why
			if closed(sh.job.begun) && sh.job.check == 0 { // before it goes on with the rest of its line
				sh.job.signalled = true
				sh.proc.kill()
			}
			sh.last = time.Now()                                             // the soft limit must not expire before the command ends
			_ = s.goOn(func() { _ = sh.interrupt(context.Background(), 0) }) // kills the shell at last
		case led, u.Leader == 0 && (sh.job != nil || sh.name == ""):
			sh.say(why)
		}
		sh.mu.Unlock()
	}
	return why
}

// begin hands a new call to its shell. If there are too many processes to start one, it waits
// for their end.
func (s *Shells) begin(c *call) {
	for end := time.Now().Add(startTime); ; time.Sleep(startPause) {
		err := s.tryBegin(c)
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EAGAIN) || time.Now().After(end) || !s.ProcessLimit.Lately() {
			_ = s.config.Results.Finish(c.command.ID, nil)
			_ = s.config.Results.Ack(c.command.ID)
			s.settle(c, err)
			return
		}
	}
}

// Guests is processes.Guests.
var Guests = processes.Guests
