package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"deckhand/internal/sandbox/runner/processes"
	"deckhand/internal/sandbox/runner/shell/heredoc"
	"deckhand/internal/sandbox/runner/shell/marks"
	"deckhand/internal/sandbox/runner/spawn"
)

// shell is one that keeps its state between commands. Its process is started by
// the first command, and again by the first one after it ended.
type shell struct {
	owner *Shells
	name  string

	mu   sync.Mutex
	gone bool // it was forgotten; look for it again
	proc *process
	job  *job // the command that runs
	// over is a command that ended without a waiting call, until a call gets it.
	over  *outcome
	calls []*call // those that wait, oldest first
	// unread is the output that came without a waiting call.
	unread  *window
	dir     string
	saved   *Saved // what a new process is given before its first command; nil for nothing
	pid     int
	last    time.Time // of output
	counted int64
}

// job is a command that runs in a shell.
type job struct {
	id     string
	text   string
	number int64
	script string        // its file, in a shell that reads it from one
	begun  chan struct{} // closed when the shell has begun it
	done   chan struct{} // closed when it has ended and its results are recorded
	once   bool          // no other shell may run it if this one ends before it begins
	// interrupts is how often it was sent Ctrl-C.
	interrupts int
	// A signal may reach the shell just when it has ended the command, and make it
	// drop the line that it reads next. So that this is not the next command, one
	// that does nothing is sent after a signal: check is its number, over how the
	// command ended before.
	signalled bool
	check     int64
	over      outcome
	checks    int
	watch     *time.Timer   // see shell.watch
	stopped   time.Time     // since when its shell is seen to be stopped
	continued bool          // it was told that its shell was stopped
	dump      *bytes.Buffer // its output, if it is the runner's own command
	since     int64         // when it was given to the shell, as processes.Now counts time
	why       string        // why it was ended; said last, since it may have printed much
}

// outcome is how a job ended.
type outcome struct {
	exit     int
	newShell bool
}

// process is the running half of a shell. Only its reader reads the terminal.
type process struct {
	*spawn.Process
	tty     *tty
	dialect *dialect
	lines   *os.File // what the shell reads its lines from
	names   *os.File // and the names of files, if it reads commands from them
	typed   bool     // something was sent to the terminal since it was tidied
	ready   bool     // it has read its first line; before, its output is its greeting
	hello   []byte
	line    bool     // a plain shell has taken a line since its prompt was last seen
	waits   bool     // and waits for a name
	queue   []string // the names it has not been told
	idle    int      // prompts since it last took a line
	errexit bool     // "set -e" was on when the last command ended
	traced  bool     // "set -x" or "set -v" may have been
	hooked  bool     // it may have traps, see hooks
	mayERR  bool     // and one of ERR
	traceTo string   // the descriptor that "set -x" writes to, if it was changed
	scanner *marks.Scanner
	// redirected is true if its standard output was not the terminal when the last command ended.
	redirected bool
	// pipe and namePipe are what the kernel calls the pipes of lines and of names,
	// program is what the process runs as long as it is a shell.
	pipe     string
	namePipe string
	program  string
	broken   bool     // it was ended during a command because it cannot be used any more
	env      []string // that it was started with
	status   int      // exit code of the last command
	// restoring is the number of the command that gave it the saved state, 0 before, -1 when
	// that has ended.
	restoring int64
}

// add gives output to those who wait, or keeps it for who comes next. The caller
// holds the lock.
func (sh *shell) add(b []byte) {
	sh.last = time.Now()
	if len(sh.calls) == 0 {
		if sh.unread == nil {
			sh.unread = newWindow(sh.owner.keep)
		}
		sh.unread.add(b)
	}
	for _, c := range sh.calls {
		c.window.add(b)
	}
}

// run starts a command. The caller holds the lock and knows that none runs.
func (sh *shell) run(j *job) error {
	if sh.proc == nil {
		if err := sh.launch(); err != nil {
			return err
		}
	}
	p := sh.proc
	before := sh.restoring(p)
	sh.counted++
	j.number, j.since = sh.counted, processes.Now()
	p.tty.tidy(p.typed)
	p.typed = false
	p.scanner.Hides = p.traced || mayTrace(j.text)
	if j.dump == nil {
		p.noteHooks(j.text)
	}
	if p.dialect == &bash {
		if err := sh.tell(p, p.lines, before+bashLine(p, j.number, j.text)); err != nil {
			return err
		}
	} else {
		if err := sh.script(j); err != nil {
			return err
		}
		if err := sh.point(p, plainName(j.number, filepath.Join(sh.owner.dir, j.script))); err != nil {
			return err
		}
	}
	// A shell that ended just now has not begun it; its reader sees to that.
	if sh.job == nil {
		sh.job = j
		sh.owner.setRunning(j.id, true)
		sh.watch(j)
	}
	return nil
}

// tell writes a line to the shell, which usually waits for it. The write must not block on a
// shell that does not.
func (sh *shell) tell(p *process, to *os.File, line string) error {
	if len(line) > pipeBuf { // the shell may have to read some of it before the rest fits
		_ = to.SetWriteDeadline(time.Time{})
		return sh.owner.goOn(func() { _, _ = to.WriteString(line) }) // ends with the pipe at the latest
	}
	_ = to.SetWriteDeadline(time.Now().Add(patience))
	_, err := to.WriteString(line)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the shell takes no commands: %w", err)
	}
	if err != nil { // it ends, or at least it cannot be spoken to any more
		_ = p.Signal(syscall.SIGKILL)
	}
	return nil
}

// point tells a plain shell which file to read next, now or when it asks.
func (sh *shell) point(p *process, line string) error {
	if !p.waits {
		p.queue = append(p.queue, line)
		return nil
	}
	p.waits = false
	return sh.tell(p, p.names, line)
}

// pipeBuf is how much is written to a pipe in one piece or not at all.
const pipeBuf = 4096

// script writes the command to a file for the shell to read.
func (sh *shell) script(j *job) error {
	j.script = "command-" + marks.Word()
	f, err := sh.owner.scripts.OpenFile(j.script, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text := heredoc.Close(j.text, plainClose, sh.proc.errexit) + "\n"
	if sh.proc.traced {
		text = plainTrace + text
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// launch starts the process.
func (sh *shell) launch() error {
	s := sh.owner
	p := &process{dialect: s.dialect(), line: true}
	t, inside, err := openTTY(50, 200)
	if err != nil {
		return err
	}
	defer inside.Close()
	p.tty = t
	var ends []*os.File
	for _, to := range []**os.File{&p.lines, &p.names} {
		var from *os.File
		if from, *to, err = os.Pipe(); err != nil {
			p.close()
			return err
		}
		defer from.Close()
		ends = append(ends, from)
	}
	env := []string{"TERM=dumb", "PAGER=cat", "GIT_PAGER=cat"}
	if p.dialect == &plain {
		env = append(env, "ENV=") // a file that it would read first
	}
	p.env = s.environ(env...)
	if err = t.setPlain(); err == nil {
		p.Process, err = s.config.Spawner.Start(spawn.Attr{
			Args: p.dialect.args, Dir: s.home(), Env: p.env,
			Files: []*os.File{inside, inside, inside, ends[0], ends[1]}, TTY: true,
		})
	}
	if err != nil {
		p.close()
		return fmt.Errorf("the shell cannot be started: %w", err)
	}
	mark := marks.Word()
	p.scanner = marks.New(mark, p.dialect.ourLines())
	p.pipe, p.namePipe = pipeName(p.lines), pipeName(p.names)
	first := p.dialect.ready(mark)
	if p.dialect == &plain {
		first += plainLine
	}
	_, _ = p.lines.WriteString(first)
	if p.dialect.takePipes != "" {
		_ = t.send([]byte(p.dialect.takePipes), time.Second)
	}
	sh.proc, sh.pid = p, p.PID
	s.started(p.PID)
	if err := s.goOn(func() { sh.read(p, p.scanner) }); err != nil {
		_ = p.Signal(syscall.SIGKILL)
		sh.proc = nil
		p.close()
		return err
	}
	return nil
}

func (p *process) close() {
	for _, f := range []*os.File{p.tty.File, p.lines, p.names} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// folder is where processes begin; a workspace that was removed must not keep
// them from starting.
func (s *Shells) folder() string {
	if info, err := os.Stat(s.config.Workspace); err != nil || !info.IsDir() {
		return "/"
	}
	return s.config.Workspace
}

// home is where shells and terminals begin: the folder that Begin named, as long
// as it is there.
func (s *Shells) home() string {
	if dir := s.starts.Load(); dir != nil {
		if info, err := os.Stat(*dir); err == nil && info.IsDir() {
			return *dir
		}
	}
	return s.folder()
}

// read is the only reader of a shell's terminal. It ends with the process.
func (sh *shell) read(p *process, s *marks.Scanner) {
	hurry := make(chan struct{})
	go func() { // background processes may hold the terminal open
		defer close(hurry)
		<-p.Done()
		_ = p.tty.SetReadDeadline(time.Unix(1, 0))
	}()
	buf := make([]byte, 16<<10)
	take := func(n int) {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		s.Scan(buf[:n], func(b []byte) { sh.output(p, b) }, func(m marks.Mark) { sh.marked(p, m) })
	}
	for {
		n, err := p.tty.Read(buf)
		if n > 0 {
			take(n)
		}
		if err != nil {
			break
		}
	}
	<-hurry
	for n := rest(p.tty.File, buf); n > 0; n = rest(p.tty.File, buf) {
		take(n)
	}
	sh.ended(p, s.Rest())
}

// output takes what the shell and its commands write.
func (sh *shell) output(p *process, b []byte) {
	if j := sh.job; j != nil && j.dump != nil && closed(j.begun) {
		if j.dump.Len() < maxState {
			j.dump.Write(b)
		}
	} else if p.ready {
		sh.add(b)
	} else if len(p.hello) < 4<<10 {
		p.hello = append(p.hello, b...)
	}
}

// marked is where the shell says what it does.
func (sh *shell) marked(p *process, m marks.Mark) {
	if p.dialect == &plain {
		sh.feed(p, m)
	}
	if m.Kind == marks.Ended || m.Kind == marks.Prompted && p.dialect == &bash {
		p.errexit = m.Errexit
	}
	sh.noteTrace(p, m)
	sh.restored(p, m)
	j := sh.job
	if m.Number == marks.Unknown && j != nil && closed(j.begun) {
		m.Number = j.number
	}
	switch {
	case m.Kind == marks.Took && (j == nil || j.number != m.Number || !closed(j.begun)):
	case m.Number == 0:
		p.ready, p.hello = true, nil
		p.program = command(p.PID)
	case j == nil:
	case j.check != 0 && m.Number == j.check && m.Kind != marks.Began:
		sh.finish(j.over)
	case j.check != 0 && m.Kind != marks.Began && j.checks < maxChecks:
		sh.checkIn(p, j)
	case j.number != m.Number:
		// An older command's.
	case m.Kind == marks.Began:
		if !closed(j.begun) {
			close(j.begun)
			sh.saved = nil
		}
	default:
		if dir, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/cwd"); err == nil {
			sh.dir = dir
		}
		j.over, p.status = outcome{exit: m.Status}, m.Status
		skipped := !closed(j.begun) && !j.signalled
		if skipped || m.Damaged || p.deaf() {
			why := brokenShell
			if skipped {
				why, j.over.exit = notBegun, 128+int(syscall.SIGKILL) // what it reported is not the command's
			}
			j.over.newShell = true
			sh.say(why)
			sh.finish(j.over)
			_ = p.Signal(syscall.SIGKILL)
			return
		}
		if j.dump == nil {
			sh.remark(p, m)
		}
		if j.signalled {
			sh.checkIn(p, j)
			return
		}
		sh.finish(j.over)
	}
}

// feed writes a line ahead for each that a plain shell has taken: when it says
// so, and when it is back at its prompt without having said it, as after an
// interrupt.
func (sh *shell) feed(p *process, m marks.Mark) {
	switch m.Kind {
	case marks.Took:
		p.line, p.idle = true, 0
	case marks.Prompted:
		p.waits = false
		if p.idle++; p.idle > maxIdle { // it reads lines and does nothing, as after "set -n"
			_ = p.Signal(syscall.SIGKILL)
			return
		}
		if p.line {
			p.line = false
			return
		}
	default:
		return
	}
	_ = control(p.lines, func(fd int) error { // without waiting: it may have enough
		_, err := unix.Write(fd, []byte(plainLine))
		return err
	})
	if m.Kind == marks.Took {
		p.waits = true
		if len(p.queue) > 0 {
			next := p.queue[0]
			p.queue = p.queue[1:]
			_ = sh.point(p, next)
		}
	}
}

// maxIdle is how many prompts a plain shell may show without taking a line. Each
// signal costs one.
const maxIdle = 100

// maxChecks is how often a line that does nothing is repeated.
const maxChecks = 20

// checkIn sends it.
func (sh *shell) checkIn(p *process, j *job) {
	if j.check == 0 {
		sh.counted++
		j.check = sh.counted
	}
	j.checks++
	if p.dialect == &plain {
		_ = sh.point(p, plainName(j.check, "-"))
		return
	}
	_ = sh.tell(p, p.lines, bashCheck(j.check))
}

// signal does something that may send a signal to the shell too, if the command
// still runs.
func (sh *shell) signal(j *job, p *process, send func()) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.job == j && j.check == 0 && sh.proc == p {
		j.signalled = true
		send()
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
