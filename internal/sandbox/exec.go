package sandbox

import (
	"context"
	"io"
	"sync"
	"time"
)

// Command is one use of a shell. It is idempotent by its ID: a second Exec with the same
// ID runs nothing, waits for the first and returns its result.
type Command struct {
	// ID identifies this use; the runner keeps the result until Ack.
	ID string `json:"id"`
	// Shell is the name of the shell, "" for the main one. Each keeps its working
	// directory, environment and jobs between commands.
	Shell string `json:"shell,omitempty"`
	// Text is the command. If empty, Exec waits for more output of the running command.
	Text string `json:"text"`
	// Input sends Text to the running command instead: a line, or a key such as C-c,
	// C-d, C-z.
	Input bool `json:"input,omitempty"`
	// Soft ends the wait after this time without new output, Hard in any case. The
	// command continues. 0 is no limit.
	Soft time.Duration `json:"soft,omitempty"`
	Hard time.Duration `json:"hard,omitempty"`
	// Again means that this ID may have been sent before. If the machine was restarted
	// or the sandbox recreated since, an unknown ID is a Lost result, not a new run.
	Again bool `json:"again,omitempty"`
	// Shrink runs the command outside of the shell with no right to make or write files:
	// the sandbox is above its disk limit.
	Shrink bool `json:"shrink,omitempty"`
	// Acks are uses that AckLater was called for.
	Acks []string `json:"acks,omitempty"`
	// Mark is the turn whose files are recorded before the command is run, see MarkTurn.
	Mark *GitMarkParams `json:"mark,omitempty"`
}

// StillRuns is the refusal of a command while the shell is busy.
const StillRuns = "the previous command still runs, so this one was not run: wait for it with an empty command, send it input, or end it with the input C-c"

// SoftTimeout is how long a command may be silent before its caller gets an interim result.
const SoftTimeout = 10 * time.Second

// Result is the result of a Command, or its progress.
type Result struct {
	ID string `json:"id"`
	// Exit is the exit code; 128+n if signal n ended it; -1 if it is running or unknown.
	Exit int `json:"exit"`
	// Wait is why there is no exit code yet.
	Wait Wait `json:"wait,omitempty"`
	// Dir is the working directory of the shell, PID the process of the shell, or of the
	// running command.
	Dir string `json:"dir"`
	PID int    `json:"pid"`
	// Output is the output since the last result of this shell, with the middle removed
	// if it is longer than MaxOutput characters. In that case Whole is the file in the
	// sandbox with all of it. It is valid UTF-8.
	Output string `json:"output"`
	Whole  string `json:"whole,omitempty"`
	// Bytes is the length of the whole output.
	Bytes int64 `json:"bytes"`
	// Previous is true if the output is that of an earlier command.
	Previous bool `json:"previous,omitempty"`
	// Refused says why nothing was run: another command is running, or there is nothing
	// to wait for.
	Refused string `json:"refused,omitempty"`
	// NewShell is true if the shell ended with this command (exit, killed); the next
	// command gets a new one.
	NewShell bool `json:"new_shell,omitempty"`
	// Lost is true if the runner died while the command ran: the outcome is unknown.
	Lost bool `json:"lost,omitempty"`
	// Shrink is true if the command could not make or write files.
	Shrink  bool      `json:"shrink,omitempty"`
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended"`
}

// Wait is why a result has no exit code.
type Wait string

// The two limits.
const (
	SoftWait Wait = "soft"
	HardWait Wait = "hard"
)

// MaxOutput is the maximum number of characters of output in a result.
const MaxOutput = 30_000

// buffers are for output on its way: most commands have little, and there are many.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Exec runs a command and waits for its result. Output is passed to live as it arrives
// (live may be nil, and must not keep it); a second Exec of the same ID repeats earlier
// output. When ctx ends, only the wait ends: the command continues.
func (s *Sandbox) Exec(ctx context.Context, c Command, live func([]byte)) (r Result, err error) {
	c.Again = c.Again && !s.only
	c.Shrink = c.Shrink || s.isFull()
	c.Acks = s.acks.take()
	if s.info.Marks {
		c.Mark = s.mark.take()
	}
	s.markNow(ctx)
	if c.Mark != nil {
		defer func() {
			if err != nil {
				s.mark.marked.Store(0) // it may not have been recorded
			}
		}()
	}
	call, err := s.peer.Open(ctx, "exec", s.fence, c)
	if err != nil {
		return r, err
	}
	defer call.Close()
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	came := false
	for {
		n, err := call.Read(buf[:])
		if n > 0 && live != nil {
			live(buf[:n])
		}
		came = came || n > 0
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, err
		}
	}
	err = call.Answer(&r)
	if !came && live != nil && r.Output != "" {
		live([]byte(r.Output)) // the command had ended before any of it was sent
	}
	return r, err
}

// Ack tells the runner that the result of a command is stored elsewhere, so that it can
// forget it. It is idempotent.
func (s *Sandbox) Ack(ctx context.Context, id string) error {
	return s.peer.Call(ctx, "ack", s.fence, idParam{id}, nil)
}

// AckLater is Ack with the next command, or after a moment. It reports false if the runner is of
// an older version, which knows Ack only.
func (s *Sandbox) AckLater(id string) bool {
	if !s.info.Acks {
		return false
	}
	s.acks.add(id, func(ids []string) {
		ctx, cancel := context.WithTimeout(context.Background(), ackAfter)
		defer cancel()
		for _, id := range ids {
			_ = s.Ack(ctx, id)
		}
	})
	return true
}

// ackAfter is how long an acknowledgement waits for a command that it can go with.
const ackAfter = 2 * time.Second

// acks are the acknowledgements of a connection that wait.
type acks struct {
	mu    sync.Mutex
	ids   []string
	last  time.Time
	armed bool
}

// add has an acknowledgement wait. send is called if no command comes.
func (a *acks) add(id string, send func([]string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids, a.last = append(a.ids, id), time.Now()
	if !a.armed {
		a.armed = true
		a.arm(ackAfter, send)
	}
}

func (a *acks) arm(wait time.Duration, send func([]string)) {
	time.AfterFunc(wait, func() {
		a.mu.Lock()
		if left := ackAfter - time.Since(a.last); left > 0 && len(a.ids) > 0 {
			a.arm(left, send)
			a.mu.Unlock()
			return
		}
		ids := a.ids
		a.ids, a.armed = nil, false
		a.mu.Unlock()
		send(ids)
	})
}

// take returns the acknowledgements that wait, which are sent now.
func (a *acks) take() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := a.ids
	a.ids = nil
	return ids
}

type idParam struct {
	ID string `json:"id"`
}

// Interrupt ends the running command of a shell: Ctrl-C first, then, after grace, SIGKILL
// for the whole foreground job. It returns when the shell is idle.
func (s *Sandbox) Interrupt(ctx context.Context, shell string, grace time.Duration) error {
	return s.peer.Call(ctx, "interrupt", s.fence, InterruptParams{Shell: shell, Grace: grace}, nil)
}

// InterruptParams are the parameters of Interrupt.
type InterruptParams struct {
	Shell string        `json:"shell,omitempty"`
	Grace time.Duration `json:"grace"`
}

// KillAll ends every process except the runner. Shells restart with their next command.
func (s *Sandbox) KillAll(ctx context.Context) error {
	return s.peer.Call(ctx, "killall", s.fence, nil, nil)
}

// EndAll is KillAll with a reason, which is added to the output of running commands.
func (s *Sandbox) EndAll(ctx context.Context, why string) error {
	return s.peer.Call(ctx, "killall", s.fence, KillParams{Why: why}, nil)
}

// KillParams are the parameters of EndAll.
type KillParams struct {
	Why string `json:"why,omitempty"`
}

// Vitals checks that the runner responds, and returns the load of the sandbox. limit is how many
// processes and threads the sandbox may have: the runner ends what keeps it at this limit.
func (s *Sandbox) Vitals(ctx context.Context, limit int) (Vitals, error) {
	var v Vitals
	return v, s.peer.Call(ctx, "vitals", 0, VitalsParams{Limit: limit}, &v)
}

// Load returns the load of the sandbox with its CPU time and memory.
func (s *Sandbox) Load(ctx context.Context) (Vitals, error) {
	var v Vitals
	return v, s.peer.Call(ctx, "vitals", 0, VitalsParams{Load: true}, &v)
}

// VitalsParams are the parameters of Vitals and Load.
type VitalsParams struct {
	Limit int  `json:"limit,omitempty"`
	Load  bool `json:"load,omitempty"`
}

// Vitals is the load of a sandbox.
type Vitals struct {
	// Processes is the number of processes and threads, including the runner's.
	Processes int `json:"processes"`
	// Ended says which processes the runner ended at the limit since the last Vitals, "" for none.
	Ended string `json:"ended,omitempty"`
	// CPU is the processor time of all processes so far, and Memory the bytes that they do not share with
	// files. Both are 0 if they were not requested, or if the runner is too old to know them.
	CPU    time.Duration `json:"cpu,omitempty"`
	Memory int64         `json:"memory,omitempty"`
}

// Process is a program that runs outside of a shell. Its result is not stored.
type Process struct {
	Args []string          `json:"args"`
	Dir  string            `json:"dir,omitempty"` // default the workspace
	Env  map[string]string `json:"env,omitempty"`
	// Stdin means that data follows.
	Stdin bool `json:"stdin,omitempty"`
	// Own means that the server runs it on its own behalf: system programs come first in
	// PATH. Offline prevents it from opening sockets.
	Own     bool `json:"own,omitempty"`
	Offline bool `json:"offline,omitempty"`
	// Shrink prevents it from making and writing files.
	Shrink bool `json:"shrink,omitempty"`
	// Limit truncates stdout and stderr to this many bytes each; the default is 1 MiB.
	Limit int64 `json:"limit,omitempty"`
}

// ProcessResult is the result of a Process.
type ProcessResult struct {
	Exit   int    `json:"exit"`
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
	// Cut is true if output was truncated.
	Cut bool `json:"cut,omitempty"`
}

// Run runs a program to completion. When ctx ends, it is killed with its children.
func (s *Sandbox) Run(ctx context.Context, p Process, stdin io.Reader) (ProcessResult, error) {
	var r ProcessResult
	p.Stdin = stdin != nil
	call, err := s.open(ctx, "run", s.fence, p)
	if err != nil {
		return r, err
	}
	defer call.Close()
	if stdin != nil {
		// The process may end before it has read everything, and the reader may block,
		// so Run does not wait for it.
		go func() {
			_, _ = io.Copy(call, stdin)
			_ = call.CloseWrite()
		}()
	}
	return r, call.Answer(&r)
}

// TerminalParams opens a terminal for a user: a login shell with its own PTY.
type TerminalParams struct {
	// Name identifies the terminal, which stays open when the connection ends.
	Name string `json:"name"`
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Terminal is an open terminal. If it was open before, Read starts with the last few
// screens. Read ends when the shell does.
type Terminal struct {
	io.ReadWriteCloser
	sandbox *Sandbox
	name    string
}

// Terminal opens a terminal, or joins the open one with this name.
func (s *Sandbox) Terminal(ctx context.Context, p TerminalParams) (*Terminal, error) {
	call, err := s.peer.Open(ctx, "terminal", 0, p)
	if err != nil {
		return nil, err
	}
	if err := call.Answer(nil); err != nil {
		call.Close()
		return nil, err
	}
	return &Terminal{call.Raw(), s, p.Name}, nil
}

// Resize sets the size of the terminal.
func (t *Terminal) Resize(ctx context.Context, rows, cols uint16) error {
	return t.sandbox.peer.Call(ctx, "resize", 0, TerminalParams{Name: t.name, Rows: rows, Cols: cols}, nil)
}
