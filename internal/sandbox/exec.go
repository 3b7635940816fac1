package sandbox

import (
	"context"
	"io"
	"sync"
	"time"
)

// Command is one use of a shell. It is idempotent by its ID: a second Exec with
// the same ID runs nothing, but waits for the first and gives its result.
type Command struct {
	// ID names this use; the runner keeps the result under it until Ack.
	ID string `json:"id"`
	// Shell names the shell, "" for the main one. Each keeps its folder, its
	// environment and its jobs between commands.
	Shell string `json:"shell,omitempty"`
	// Text is what to run. Empty, it waits for more of the command that runs.
	Text string `json:"text"`
	// Input sends Text to the command that runs instead: a line, or a key such
	// as C-c, C-d, C-z.
	Input bool `json:"input,omitempty"`
	// Soft ends the wait after so long without new output, Hard in any case.
	// The command itself runs on. 0 is never.
	Soft time.Duration `json:"soft,omitempty"`
	Hard time.Duration `json:"hard,omitempty"`
	// Again says that this ID may have been sent before. If the machine was
	// restarted since, or the sandbox made anew, an ID that is not known is a Lost
	// result, not a new run.
	Again bool `json:"again,omitempty"`
}

// StillRuns is why a command is refused while the shell is busy.
const StillRuns = "the previous command still runs, so this one was not run: wait for it with an empty command, send it input, or end it with the input C-c"

// SoftTimeout is how long a command may be silent before its caller is told that it still runs.
const SoftTimeout = 10 * time.Second

// Result is how a Command ended, or how far it is.
type Result struct {
	ID string `json:"id"`
	// Exit is the exit code; 128+n if signal n ended it; -1 if it still runs or nobody knows.
	Exit int `json:"exit"`
	// Wait says why there is no exit code yet.
	Wait Wait `json:"wait,omitempty"`
	// Dir is the shell's folder, PID the shell's process, or that of the command while it runs.
	Dir string `json:"dir"`
	PID int    `json:"pid"`
	// Output is what came since the last result of this shell, with the middle
	// cut out if it is longer than MaxOutput characters. Then Whole names the
	// file in the sandbox that has all of it. It is valid UTF-8.
	Output string `json:"output"`
	Whole  string `json:"whole,omitempty"`
	// Bytes is how long the whole output is.
	Bytes int64 `json:"bytes"`
	// Previous is true when the output is of a command that was started earlier.
	Previous bool `json:"previous,omitempty"`
	// Refused says why nothing was run: another command still runs, nothing to wait for.
	Refused string `json:"refused,omitempty"`
	// NewShell is true when the shell ended with this command (exit, killed);
	// the next command gets a fresh one.
	NewShell bool `json:"new_shell,omitempty"`
	// Lost is true when the runner died while the command ran: it may have done
	// its work or not.
	Lost    bool      `json:"lost,omitempty"`
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

// MaxOutput is how many characters of output a result holds.
const MaxOutput = 30_000

// buffers are for output on its way: most commands have little, and there are many.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// Exec runs a command and waits for its result. Output is given to live as it
// comes (live may be nil, and must not keep it); what came before a second Exec
// of the same ID is given again. When ctx ends only the wait ends: the command runs on.
func (s *Sandbox) Exec(ctx context.Context, c Command, live func([]byte)) (Result, error) {
	var r Result
	c.Again = c.Again && !s.only
	call, err := s.peer.Open(ctx, "exec", s.fence, c)
	if err != nil {
		return r, err
	}
	defer call.Close()
	buf := buffers.Get().(*[32 << 10]byte)
	defer buffers.Put(buf)
	for {
		n, err := call.Read(buf[:])
		if n > 0 && live != nil {
			live(buf[:n])
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, err
		}
	}
	return r, call.Answer(&r)
}

// Ack says the result of a command is safe elsewhere; the runner forgets it.
// What it does not know is forgotten already.
func (s *Sandbox) Ack(ctx context.Context, id string) error {
	return s.peer.Call(ctx, "ack", s.fence, idParam{id}, nil)
}

type idParam struct {
	ID string `json:"id"`
}

// Interrupt ends what runs in a shell: Ctrl-C first, then, after grace, SIGKILL
// for the whole foreground job. It returns when the shell is free, and does
// nothing if it is.
func (s *Sandbox) Interrupt(ctx context.Context, shell string, grace time.Duration) error {
	return s.peer.Call(ctx, "interrupt", s.fence, InterruptParams{Shell: shell, Grace: grace}, nil)
}

// InterruptParams is what Interrupt sends.
type InterruptParams struct {
	Shell string        `json:"shell,omitempty"`
	Grace time.Duration `json:"grace"`
}

// KillAll ends every process but the runner. Shells start anew at their next command.
func (s *Sandbox) KillAll(ctx context.Context) error {
	return s.peer.Call(ctx, "killall", s.fence, nil, nil)
}

// EndAll is KillAll with a reason, which is added to the output of what ran.
func (s *Sandbox) EndAll(ctx context.Context, why string) error {
	return s.peer.Call(ctx, "killall", s.fence, KillParams{Why: why}, nil)
}

// KillParams is what EndAll sends.
type KillParams struct {
	Why string `json:"why,omitempty"`
}

// Vitals says that the runner answers, and how much runs in the sandbox.
func (s *Sandbox) Vitals(ctx context.Context) (Vitals, error) {
	var v Vitals
	return v, s.peer.Call(ctx, "vitals", 0, nil, &v)
}

// Vitals is what a runner says of what runs in its sandbox.
type Vitals struct {
	// Processes counts processes and threads, the runner's own included.
	Processes int `json:"processes"`
}

// Process is a program run by itself, not in a shell: nothing is kept of it.
type Process struct {
	Args []string          `json:"args"`
	Dir  string            `json:"dir,omitempty"` // default the workspace
	Env  map[string]string `json:"env,omitempty"`
	// Stdin says that data follows.
	Stdin bool `json:"stdin,omitempty"`
	// Own says that the server runs it by itself, for nobody who asked: programs of the
	// system come first in PATH. Offline keeps it from opening sockets.
	Own     bool `json:"own,omitempty"`
	Offline bool `json:"offline,omitempty"`
	// Limit cuts stdout and stderr each to so many bytes; default 1 MiB.
	Limit int64 `json:"limit,omitempty"`
}

// ProcessResult is how a Process ended.
type ProcessResult struct {
	Exit   int    `json:"exit"`
	Stdout []byte `json:"stdout"`
	Stderr []byte `json:"stderr"`
	// Cut is true when there was more output than Limit.
	Cut bool `json:"cut,omitempty"`
}

// Run runs a program to its end. When ctx ends it is killed with its children.
func (s *Sandbox) Run(ctx context.Context, p Process, stdin io.Reader) (ProcessResult, error) {
	var r ProcessResult
	p.Stdin = stdin != nil
	call, err := s.peer.Open(ctx, "run", s.fence, p)
	if err != nil {
		return r, err
	}
	defer call.Close()
	if stdin != nil {
		// The process may end before it has read everything: nobody waits for the
		// reader, which may block for as long as it likes.
		go func() {
			_, _ = io.Copy(call, stdin)
			_ = call.CloseWrite()
		}()
	}
	return r, call.Answer(&r)
}

// TerminalParams opens a terminal for a person: a login on a PTY of its own.
type TerminalParams struct {
	// Name finds the same terminal again; it lives on when the connection ends.
	Name string `json:"name"`
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Terminal is an open terminal. Reading starts with the last screenfuls when it
// was open before. Reading ends when its shell does.
type Terminal struct {
	io.ReadWriteCloser
	sandbox *Sandbox
	name    string
}

// Terminal opens a terminal, or the one of that name that is open.
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

// Resize tells the terminal its size.
func (t *Terminal) Resize(ctx context.Context, rows, cols uint16) error {
	return t.sandbox.peer.Call(ctx, "resize", 0, TerminalParams{Name: t.name, Rows: rows, Cols: cols}, nil)
}
