package shell

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"deckhand/internal/sandbox"
)

const (
	tooLong  = "the line is too long for a terminal, so nothing was sent: it may have 4094 bytes; put more into a file"
	notTaken = "the command does not read what it is sent: not all of it was taken"
	// patience is how long a program may leave its input unread.
	patience = 2 * time.Second
)

func nothingRuns(c sandbox.Command) string {
	if c.Input {
		return "nothing runs in this shell that could take input"
	}
	return "nothing runs in this shell, so there is nothing to wait for"
}

// use does what a call asks for, as far as it can be done at once. The shell is gone if it was
// removed concurrently. With an error nothing was done.
func (sh *shell) use(c *call) (gone bool, err error) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.gone {
		return true, nil
	}
	switch {
	case c.command.Input:
		sh.input(c)
	case strings.TrimSpace(c.command.Text) == "":
		sh.wait(c)
	default:
		err = sh.start(c)
	}
	return false, err
}

// start runs a new command.
func (sh *shell) start(c *call) error {
	if sh.job != nil {
		sh.refuse(c, sandbox.StillRuns)
		return nil
	}
	sh.open(c)
	j := &job{id: c.command.ID, text: c.command.Text, begun: make(chan struct{}), done: make(chan struct{})}
	if err := sh.run(j); err != nil {
		sh.dropScript(j)
		sh.calls = sh.calls[:0]
		sh.unread = newWindow(sh.owner.keep)
		sh.unread.take(c.window)
		if sh.proc == nil && sh.over == nil && sh.saved == nil {
			sh.owner.forget(sh)
		}
		return err
	}
	if sh.over != nil {
		c.window.add(fmt.Appendf(nil, "[The previous command has ended with exit code %d.]\n", sh.over.exit))
		sh.over = nil
	}
	sh.limit(c)
	return nil
}

// wait waits for more of what runs, or tells how it ended.
func (sh *shell) wait(c *call) {
	switch {
	case sh.job != nil:
		sh.open(c)
		sh.limit(c)
	case sh.over != nil:
		over := sh.over
		sh.over = nil
		sh.open(c)
		sh.answer(c, sandbox.Result{Exit: over.exit, NewShell: over.newShell, Previous: true})
	default:
		sh.refuse(c, nothingRuns(c.command))
	}
}

// input sends a line or a key to what runs, and then waits.
func (sh *shell) input(c *call) {
	keys, isKey := key(c.command.Text)
	if !isKey {
		keys = []byte(c.command.Text + "\n")
	}
	j, p := sh.job, sh.proc
	switch {
	case j == nil || p == nil:
		sh.refuse(c, nothingRuns(c.command))
		return
	case !isKey && longLine(keys) && p.tty.byLine():
		sh.refuse(c, tooLong)
		return
	}
	sh.open(c)
	sh.limit(c)
	p.typed = true
	send := func() {
		var err error
		if isKey {
			err = sh.press(j, keys)
		} else {
			err = p.tty.send(keys, patience)
		}
		if err != nil {
			sh.mu.Lock()
			defer sh.mu.Unlock()
			if slices.Contains(sh.calls, c) {
				sh.answer(c, sandbox.Result{Exit: -1, Refused: notTaken, Previous: true})
			}
		}
	}
	if err := sh.owner.goOn(send); err != nil {
		sh.answer(c, sandbox.Result{Exit: -1, Refused: err.Error(), Previous: true})
	}
}

// press sends a key.
func (sh *shell) press(j *job, key []byte) error {
	select { // a signal must not meet the shell while it still reads the command
	case <-j.begun:
	case <-j.done:
	case <-time.After(patience):
	}
	p := sh.at(j)
	if p == nil {
		return nil // it has ended
	}
	if key[0] == ctrlC && sh.tooOften(j) {
		return p.Signal(syscall.SIGKILL)
	}
	if sig := p.tty.signalOf(key[0]); sig != 0 {
		sh.chase(j, p, sig)
		return nil
	}
	return p.tty.send(key, patience)
}

const (
	ctrlC = 'C' - '@'
	// lastInterrupt is the Ctrl-C that ends the shell together with a command that ignored
	// those before: a shell that was stopped, or has no descriptors left, heeds none.
	lastInterrupt = 3
)

// tooOften counts an interrupt and says whether it was the last that the command gets.
func (sh *shell) tooOften(j *job) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	j.interrupts++
	j.once = j.once || j.interrupts >= lastInterrupt
	return j.interrupts >= lastInterrupt
}

func longLine(b []byte) bool {
	for line := range strings.Lines(string(b)) {
		if len(line) > maxLine {
			return true
		}
	}
	return false
}

// key is the byte of a key like C-c.
func key(text string) ([]byte, bool) {
	name, ok := strings.CutPrefix(strings.TrimSpace(text), "C-")
	if !ok || len(name) != 1 {
		return nil, false
	}
	c := name[0]
	if c >= 'a' && c <= 'z' {
		c -= 'a' - 'A'
	}
	if c < '@' || c > '_' {
		return nil, false
	}
	return []byte{c - '@'}, true
}

// open lets a call have the output from now on and, if no other has it, what
// came since the last result.
func (sh *shell) open(c *call) {
	if len(sh.calls) == 0 && sh.unread != nil {
		c.window.take(sh.unread)
		sh.unread = nil
	}
	sh.calls = append(sh.calls, c)
}

// limit starts the clocks of a call that waits.
func (sh *shell) limit(c *call) {
	if !slices.Contains(sh.calls, c) {
		return
	}
	if d := c.command.Soft; d > 0 {
		c.soft = time.AfterFunc(d, func() { sh.expire(c, sandbox.SoftWait) })
	}
	if d := c.command.Hard; d > 0 {
		c.hard = time.AfterFunc(d-time.Since(c.began), func() { sh.expire(c, sandbox.HardWait) })
	}
}

// expire ends the wait of a call. Output moves the soft limit on.
func (sh *shell) expire(c *call, why sandbox.Wait) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !slices.Contains(sh.calls, c) || sh.job == nil {
		return
	}
	if why == sandbox.SoftWait {
		since := c.began
		if sh.last.After(since) {
			since = sh.last
		}
		if left := c.command.Soft - time.Since(since); left > 0 {
			c.soft.Reset(left)
			return
		}
	}
	sh.answer(c, sandbox.Result{Exit: -1, Wait: why, Previous: c.command.ID != sh.job.id})
}

// refuse answers that nothing was done, with what came since the last result.
func (sh *shell) refuse(c *call, why string) {
	r := sandbox.Result{Exit: -1, Refused: why, Previous: sh.job != nil}
	if over := sh.over; over != nil {
		sh.over = nil
		r.Exit, r.NewShell, r.Previous = over.exit, over.newShell, true
	}
	sh.open(c)
	sh.answer(c, r)
}

// answer ends a call that is open. The caller holds the lock.
func (sh *shell) answer(c *call, r sandbox.Result) {
	sh.calls = slices.DeleteFunc(sh.calls, func(o *call) bool { return o == c })
	for _, t := range []*time.Timer{c.soft, c.hard} {
		if t != nil {
			t.Stop()
		}
	}
	if sh.job != nil && len(sh.calls) == 0 {
		if rest := c.window.torn(); rest != nil {
			sh.unread = newWindow(sh.owner.keep)
			sh.unread.add(rest)
		}
	}
	r.ID, r.Dir, r.PID = c.command.ID, sh.dir, sh.pid
	if sh.job != nil && sh.proc != nil {
		if group := sh.proc.tty.foreground(); group > 0 {
			r.PID = group
		}
	}
	r.Output, r.Whole, r.Bytes = c.window.text()
	r.Started, r.Ended = c.began, time.Now()
	sh.owner.record(c, r)
}

// environ is the environment of a new process: that of the sandbox, with some
// variables in place of its own.
func (s *Shells) environ(more ...string) []string {
	var env []string
	for _, e := range s.config.Env() {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(more, func(m string) bool { return strings.HasPrefix(m, name+"=") }) {
			env = append(env, e)
		}
	}
	return append(env, more...)
}
