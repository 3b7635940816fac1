package shell

import (
	"errors"
	"io/fs"

	"deckhand/internal/sandbox"
)

// ended is called when the process has ended and all it wrote was read.
func (sh *shell) ended(p *process, held []byte) {
	status := p.Wait()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.output(p, held)
	if p.broken { // said last: it may have printed without end
		sh.say(brokenShell)
	}
	p.close()
	sh.proc = nil
	j := sh.job
	if j != nil && !closed(j.begun) && !j.once {
		// It ended before it saw the command, which therefore can be run in a new one.
		j.once = true
		sh.dropScript(j)
		if err := sh.run(j); err == nil {
			return
		}
	}
	// The result is not needed if nothing ran or a call gets it now. That call finds the room
	// that it leaves.
	over := sh.over == nil && sh.saved == nil && (j == nil || len(sh.calls) > 0)
	if over {
		sh.owner.forget(sh)
	}
	if j != nil {
		if !p.ready {
			sh.add(p.hello) // it says why there is no shell
		}
		sh.finish(outcome{exit: status.Code, newShell: true})
	}
	sh.dir = sh.owner.home()
	if over && sh.unread != nil {
		sh.unread.discard()
	}
}

func (sh *shell) dropScript(j *job) {
	if j.script != "" {
		if err := sh.owner.scripts.Remove(j.script); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
		j.script = ""
	}
}

// finish ends the job and every call that waits for it.
func (sh *shell) finish(o outcome) {
	j := sh.job
	sh.job = nil
	j.watch.Stop()
	sh.dropScript(j)
	sh.say(j.why)
	sh.owner.setRunning(j.id, false)
	if len(sh.calls) == 0 && (j.dump == nil || o.newShell) {
		sh.over = &o
	}
	for len(sh.calls) > 0 {
		c := sh.calls[0]
		sh.answer(c, sandbox.Result{Exit: o.exit, NewShell: o.newShell, Previous: c.command.ID != j.id})
	}
	close(j.done)
}
