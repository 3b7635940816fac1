package shell

import (
	"context"
	"errors"
	"maps"
	"os"
	"strconv"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/processes"
)

// A signal has no effect on a shell that is just starting a program, nor on the
// copy of the shell that will be the program in a moment. So what it met is
// looked at again.
const (
	// firstLook is how soon that happens first, and then at times that double up
	// to lastLook.
	firstLook = 2 * time.Millisecond
	lastLook  = 100 * time.Millisecond
	// killRounds is how often the foreground is killed before the shell is.
	killRounds = 25
	killPause  = 20 * time.Millisecond
)

// interrupt ends what runs, by more and more force.
func (sh *shell) interrupt(ctx context.Context, grace time.Duration) error {
	sh.mu.Lock()
	j := sh.job
	sh.mu.Unlock()
	if j == nil {
		return nil
	}
	grace = max(grace, 0)
	select { // a signal must not meet the shell while it still reads the command
	case <-j.begun:
		if free, err := sh.urge(ctx, j, grace); free || err != nil {
			return err
		}
	case <-time.After(max(grace, patience)):
		// It does not read at all.
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	sh.mu.Lock()
	j.once = true
	sh.mu.Unlock()
	if p := sh.at(j); p != nil {
		_ = p.Signal(syscall.SIGKILL)
	}
	select {
	case <-j.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// urge sends Ctrl-C and, when the time is over, kills the foreground.
func (sh *shell) urge(ctx context.Context, j *job, grace time.Duration) (free bool, err error) {
	again, over := time.NewTimer(grace/2), time.NewTimer(grace)
	defer again.Stop()
	defer over.Stop()
	if free, err := sh.ask(ctx, j, again.C, over.C); free || err != nil {
		return free, err
	}
	for range killRounds {
		if p := sh.at(j); p != nil {
			sh.signal(j, p, p.kill)
		}
		select {
		case <-j.done:
			return true, nil
		case <-time.After(killPause):
		}
	}
	return false, nil
}

// at is the process that runs a command, nil when it has ended.
func (sh *shell) at(j *job) *process {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.job != j {
		return nil
	}
	return sh.proc
}

// ask sends Ctrl-C and waits, until the time is over. As a person would, it
// presses it again after a while.
func (sh *shell) ask(ctx context.Context, j *job, again, over <-chan time.Time) (free bool, err error) {
	p := sh.at(j)
	if p == nil {
		return true, nil
	}
	var hit target
	look := firstLook
	for {
		// A program that was hit once is left to its own way of ending.
		if now := p.target(); now != hit {
			sh.signal(j, p, func() { p.tty.signal(syscall.SIGINT) })
			hit = now
		}
		select {
		case <-j.done:
			return true, nil
		case <-again:
			hit = target{}
		case <-over:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(look):
			look = min(2*look, lastLook)
		}
	}
}

// target is what a signal hits: the foreground group, and what its leader runs.
type target struct {
	group   int
	program string
}

func (p *process) target() target {
	group := p.tty.foreground()
	return target{group, program(group)}
}

func program(pid int) string {
	name, _ := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return name
}

// chase sends a signal of the keyboard. If it meets the shell as it is starting
// a program, it is for that.
func (sh *shell) chase(j *job, p *process, sig syscall.Signal) {
	for look := firstLook; ; look = 2 * look {
		hit := p.target()
		itself := hit.group == p.PID || hit.program != "" && hit.program == program(p.PID)
		sh.signal(j, p, func() { p.tty.signal(sig) })
		for now := hit; now == hit; look = 2 * look {
			if !itself || look > lastLook {
				return
			}
			select {
			case <-j.done:
				return
			case <-time.After(look):
			}
			now = p.target()
		}
	}
}

// kill kills the foreground job. The shell is told first that this is the user's
// wish, or it would go on with what follows in the command.
func (p *process) kill() {
	_ = syscall.Kill(p.PID, syscall.SIGINT)
	if group := p.tty.foreground(); group > 1 && group != p.PID {
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}
}

// killAll is EndAll for the server.
func (s *Shells) killAll(ctx context.Context, c *rpc.Call) (any, error) {
	var p sandbox.KillParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	return nil, s.EndAll(ctx, p.Why)
}

// EndAll ends every process but this one, and adds the reason to the output of what ran.
func (s *Shells) EndAll(ctx context.Context, why string) error {
	s.ending.Lock()
	defer s.ending.Unlock()
	jobs := s.giveUp(why)
	if os.Getpid() == 1 && len(Guests()) == 0 {
		if err := syscall.Kill(-1, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	} else {
		s.kill(true)
	}
	for _, j := range jobs {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	// What was killed takes a moment to end, and holds its locks and files until then.
	for len(s.victims(true)) > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// giveUp makes sure that what runs is not started again in another shell, and adds
// the reason to its output.
func (s *Shells) giveUp(why string) []*job {
	var jobs []*job
	for _, sh := range s.all() {
		sh.mu.Lock()
		if sh.job != nil {
			sh.job.once = true
			jobs = append(jobs, sh.job)
			sh.say(why)
			sh.last = time.Now() // the soft limit must not expire before the command ends
		}
		sh.mu.Unlock()
	}
	return jobs
}

// say adds a remark to the output of what runs. The caller holds the lock.
func (sh *shell) say(remark string) {
	if remark == "" {
		return
	}
	text := []byte("\n[" + remark + "]\n")
	for _, c := range sh.calls {
		c.window.add(text)
	}
	if len(sh.calls) == 0 {
		if sh.unread == nil {
			sh.unread = newWindow(sh.owner.keep)
		}
		sh.unread.add(text)
	}
}

// started remembers the session that a shell or a terminal leads.
func (s *Shells) started(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[pid] = struct{}{}
}

// kill ends everything in our sessions, which it is in for good even when the
// shell that started it has ended, and if all is true every other descendant.
// It looks again until nothing is left, because what is being killed may still
// start something.
func (s *Shells) kill(all bool) {
	for range 100 {
		victims := s.victims(all)
		// Stopped first, so that no process reacts to the death of another, by starting it again
		// or reporting it: and parents before their children, because a shell reports a stopped
		// job, too.
		for _, sig := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range victims {
				_ = syscall.Kill(pid, sig)
			}
		}
		if len(victims) == 0 {
			return
		}
	}
}

// victims are the processes that kill means, parents before their children.
func (s *Shells) victims(all bool) []int {
	s.mu.Lock()
	before := maps.Clone(s.sessions)
	s.mu.Unlock()
	found, gone := processes.Below(os.Getpid(), before, all)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range gone { // its number may be given away again
		delete(s.sessions, id)
	}
	return found
}
