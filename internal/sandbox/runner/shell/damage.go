package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/runner/shell/marks"
)

// A command can break the shell's connection to the runner: it closes the descriptor of the
// shell's pipe, or disables a builtin that the runner's lines call. Such a shell is ended, so
// that no command waits for it forever.

// What people are told of it, and of other things that a command did to its shell.
const (
	brokenShell = "A command closed or disabled something that the shell needs, so the shell was ended. A new one replaces it."
	notBegun    = "The command was probably not run: an earlier one redefined or trapped something that the shell needs, such as \"builtin\". A new shell replaces it. Run the command again."
	skippedPart = "The DEBUG trap failed and \"shopt -s extdebug\" is on, so the shell skipped a command. To remove the trap: trap - DEBUG"
	redirected  = "The standard output of this shell is redirected, so the output of later commands may not be shown. To undo this: exec >/dev/tty"
	// stoppedShell is about a shell that stopped itself, as with "suspend". No key would reach
	// it, and there is no other shell that could continue it.
	stoppedShell = "The shell was stopped while the command ran. It was continued."
)

// remark tells what a command did to a shell that can still be used.
func (sh *shell) remark(p *process, m marks.Mark) {
	if m.Skipped {
		sh.say(skippedPart)
	}
	now := m.Redirected && p.traceTo != "1" // else it is our own line that redirects it
	if now && !p.redirected {
		sh.say(redirected)
	}
	p.redirected = now
}

const (
	// firstWatch is how soon a shell that runs a command is looked at, and then at times
	// that double up to lastWatch.
	firstWatch = 200 * time.Millisecond
	lastWatch  = 4 * time.Second
	// idleTime is how long a shell may wait for its next line although it has not told
	// how its command ended.
	idleTime = time.Second
	// stoppedTime is how long a shell stays stopped before it is continued. What stops a whole
	// sandbox to end it, as the disk guard does, calls EndAll well within that time.
	stoppedTime = time.Second
)

// watch has a shell looked at while it runs a command. The caller holds the lock.
func (sh *shell) watch(j *job) {
	var idle time.Time
	wait := firstWatch
	j.watch = time.AfterFunc(wait, func() {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		if sh.job != j {
			return
		}
		p := sh.proc
		wait = min(2*wait, lastWatch)
		if p != nil {
			wait = min(wait, sh.stopped(j, p))
		}
		if p == nil || !p.quiet() && !p.astray(j) || sh.owner.ProcessLimit.Lately() {
			idle = time.Time{}
		} else if idle.IsZero() {
			idle = time.Now()
		}
		if p != nil && !p.broken && (p.deaf() || !idle.IsZero() && time.Since(idle) >= idleTime) {
			// It may have been run without our being told, unless the shell did not read it.
			j.once = j.once || closed(j.begun) || !p.unread()
			p.broken = true
			_ = p.Signal(syscall.SIGKILL)
		}
		j.watch.Reset(wait)
	})
}

// stopped continues a shell that stopped itself, and says when to look at it next. A shell
// that EndAll is about to end stays stopped: the rest of its command must not run.
func (sh *shell) stopped(j *job, p *process) time.Duration {
	if p.state() != 'T' {
		j.stopped = time.Time{}
		return lastWatch
	}
	if j.stopped.IsZero() {
		j.stopped = time.Now()
	}
	if left := stoppedTime - time.Since(j.stopped); left > 0 {
		return left
	}
	if sh.owner.ending.TryRLock() {
		defer sh.owner.ending.RUnlock()
		if p.Signal(syscall.SIGCONT) == nil && !j.continued {
			j.continued = true
			sh.say(stoppedShell)
		}
		j.stopped = time.Time{}
	}
	return lastWatch
}

// deaf reports whether no descriptor of the shell leads to its pipe of lines. A program
// that took the place of the shell needs none.
func (p *process) deaf() bool {
	if !p.ready || p.reads() {
		return false
	}
	fds := procFile(p.PID, "fd")
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if to, _ := os.Readlink(filepath.Join(fds, e.Name())); to == p.pipe {
			return false
		}
	}
	// The command may have ended by now, and with it the redirection of its input.
	return !p.reads() && p.program != "" && command(p.PID) == p.program
}

// quiet reports whether the shell waits for its next line or name, with nothing of it to
// be read.
func (p *process) quiet() bool {
	return p.reads() && waiting(p.names) == 0 && (p.dialect != &bash || waiting(p.lines) == 0) && p.sleeps()
}

// astray reports whether the shell waits for the command elsewhere than at its pipe.
func (p *process) astray(j *job) bool { return !closed(j.begun) && !p.reads() && p.sleeps() }

// sleeps reports whether the shell does nothing, and no other process has its terminal.
func (p *process) sleeps() bool {
	if !p.ready || waiting(p.tty.File) != 0 {
		return false
	}
	if group := p.tty.foreground(); group != p.PID && syscall.Kill(-group, 0) == nil {
		return false
	}
	return p.state() == 'S'
}

// state is what the kernel says the shell does: S if it sleeps, T if it is stopped.
func (p *process) state() byte {
	stat, _ := os.ReadFile(procFile(p.PID, "stat"))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return (rest + " ")[0]
}

// unread reports whether the shell has not read which command is next. Of a line of bash
// only the empty one after it may be left when the command runs.
func (p *process) unread() bool {
	if p.dialect == &bash {
		return waiting(p.lines) > 1
	}
	return len(p.queue) > 0
}

// reads reports whether the standard input of the shell is one of its pipes, and so
// not a command's.
func (p *process) reads() bool {
	to, err := os.Readlink(procFile(p.PID, "fd/0"))
	return err == nil && (to == p.pipe || to == p.namePipe)
}

// waiting is how much of what was written into a pipe or came from a terminal was not
// read yet.
func waiting(file *os.File) int {
	n := 0
	_ = control(file, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	return n
}

// pipeName is what links in /proc call a pipe.
func pipeName(file *os.File) string {
	var st unix.Stat_t
	_ = control(file, func(fd int) error { return unix.Fstat(fd, &st) })
	return fmt.Sprintf("pipe:[%d]", st.Ino)
}

// command is what a process runs: the program and its arguments.
func command(pid int) string {
	args, err := os.ReadFile(procFile(pid, "cmdline"))
	if err != nil {
		return ""
	}
	return program(pid) + "\x00" + string(args)
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// mayTrace reports whether a command may turn on "set -v".
func mayTrace(text string) bool {
	return strings.Contains(text, "set ") || strings.Contains(text, "verbose") || strings.Contains(text, "setopt")
}

// noteTrace remembers whether the shell may show what it does, and so our lines.
func (sh *shell) noteTrace(p *process, m marks.Mark) {
	switch {
	case m.Kind == marks.Ended, m.Kind == marks.Prompted && p.dialect == &bash:
		p.traced = m.Traced
	case m.Kind == marks.Prompted && sh.job != nil && sh.job.number == m.Number:
		// A command that was broken off has not told; its shell may show the next line.
		p.traced, p.scanner.Hides = p.traced || mayTrace(sh.job.text), true
	}
}
