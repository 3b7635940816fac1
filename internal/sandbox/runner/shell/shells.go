// Package shell runs commands in a sandbox: in shells that keep their state between
// commands, in terminals for users, and as plain processes.
//
// A shell is one interactive bash (or sh) with its own terminal. A command runs in it
// until it ends, however long that takes; the calls that start it, wait for it and send
// it input are independent, each with its own result. No call waits for a slow reader,
// and an idle shell uses no CPU time.
package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/processlimit"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/sandbox/runner/shell/whole"
	"deckhand/internal/sandbox/runner/spawn"
)

// What one sandbox may have at a time.
const (
	maxShells    = 32
	maxTerminals = 16
	maxName      = 200
	// maxText is how long a command may be.
	maxText = 4 << 20
)

// Config is what Shells are made of.
type Config struct {
	Spawner *spawn.Spawner
	Results *results.Store
	// Dir is the runner's own folder. When processes are Confined they cannot
	// see it, and what they must read goes to Output.
	Dir      string
	Confined bool
	// Output is a folder that processes can read, for the whole of long outputs.
	Output string
	// Seen is what processes call Output, if they call it otherwise.
	Seen string
	// Workspace is where shells begin.
	Workspace string
	// Env is the environment of a new process; it is asked each time.
	Env func() []string
	// Secrets are values that are replaced in the files of long outputs. It is asked
	// for each file, and may be nil.
	Secrets func() []string
}

// Shells are all shells and terminals of a sandbox.
type Shells struct {
	config  Config
	keep    *whole.Folder
	scripts *os.Root // where a shell that is not bash reads its commands
	dir     string   // what processes call that folder
	tasks   sync.WaitGroup
	// ProcessLimit ends what keeps the sandbox at its limit of processes.
	ProcessLimit *processlimit.Watch
	// Mark records the files of a turn before its first command; nil does not. Set it before the first command.
	Mark   func(context.Context, sandbox.GitMarkParams)
	starts atomic.Pointer[string] // where shells begin, nil for the workspace
	ending sync.RWMutex           // locked while killAll ends everything; calls begin after that

	mu        sync.Mutex
	closed    bool
	shells    map[string]*shell
	terminals map[string]*terminal
	calls     map[string]*call    // those that have no recorded result yet
	running   map[string]struct{} // the ids of the commands that run
	sessions  map[int]struct{}    // of all shells and terminals that were started
}

// New makes Shells. Nothing is started before it is used.
func New(c Config) (*Shells, error) {
	if c.Seen == "" {
		c.Seen = c.Output
	}
	k, err := whole.Open(c.Output, c.Seen, c.Secrets)
	if err != nil {
		return nil, fmt.Errorf("the folder for whole outputs: %w", err)
	}
	s := &Shells{
		config: c, keep: k, dir: c.Dir, shells: map[string]*shell{}, terminals: map[string]*terminal{},
		calls: map[string]*call{}, running: map[string]struct{}{}, sessions: map[int]struct{}{},
	}
	s.ProcessLimit = processlimit.New(func() bool { return c.Spawner.CanStart() }, s.Relieve)
	folder := c.Dir
	if c.Confined {
		folder, s.dir = c.Output, c.Seen
	}
	if err = os.MkdirAll(folder, 0o700); err == nil {
		s.scripts, err = os.OpenRoot(folder)
	}
	if err != nil {
		k.Close()
		return nil, fmt.Errorf("the folder for commands: %w", err)
	}
	return s, nil
}

// Handlers are the operations, by method.
func (s *Shells) Handlers() (map[string]rpc.Handler, map[string]rpc.RawHandler) {
	return map[string]rpc.Handler{
		"exec": s.exec, "ack": s.ack, "interrupt": s.interrupt, "killall": s.killAll, "run": s.run, "resize": s.resize,
	}, map[string]rpc.RawHandler{"terminal": s.terminal}
}

// Begin says where shells and terminals begin from now on: in a folder of the
// workspace.
func (s *Shells) Begin(folder string) {
	dir := filepath.Join(s.config.Workspace, folder)
	if old := s.starts.Swap(&dir); old == nil || *old != dir {
		s.Cool()
	}
}

// Program is what shells are: bash, or sh where there is none.
func (s *Shells) Program() string { return s.dialect().args[0] }

func (s *Shells) dialect() *dialect {
	if _, err := spawn.Look(spawn.Attr{Args: bash.args, Dir: s.config.Workspace, Env: s.config.Env()}); err != nil {
		return &plain
	}
	return &bash
}

// Current is the ID of the command that runs, if just one does: whatever happens
// in the sandbox now is probably its doing.
func (s *Shells) Current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) == 1 {
		for id := range s.running {
			return id
		}
	}
	return ""
}

// Busy says whether a command runs.
func (s *Shells) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.running) > 0
}

// Close kills everything in the shells and terminals, and returns when the
// results of what ran are recorded.
func (s *Shells) Close() {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		s.ProcessLimit.Close()
		s.giveUp("")
		s.kill(false)
	}
	s.tasks.Wait()
	if !closed {
		s.keep.Close()
		s.scripts.Close()
	}
}

// goOn runs a task that Close waits for.
func (s *Shells) goOn(task func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.tasks.Go(task)
	return nil
}

var errClosed = fmt.Errorf("the sandbox is ending: %w", os.ErrClosed)

// shell finds a shell by its name. If there is none it is made, unless nothing
// is to be started: then it is nil.
func (s *Shells) shell(name string, start bool) (*shell, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	sh := s.shells[name]
	if sh != nil || !start {
		return sh, nil
	}
	if len(s.shells) >= maxShells {
		return nil, fmt.Errorf("%w: the limit of %d open shells is reached; use one of them", rpc.ErrBusy, maxShells)
	}
	sh = &shell{owner: s, name: name, dir: s.home()}
	s.shells[name] = sh
	return sh, nil
}

// forget makes room when a shell has ended and nothing is to be told of it. The
// caller holds its lock.
func (s *Shells) forget(sh *shell) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shells[sh.name] == sh {
		delete(s.shells, sh.name)
		sh.gone = true
	}
}

func (s *Shells) setRunning(id string, yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if yes {
		s.running[id] = struct{}{}
	} else {
		delete(s.running, id)
	}
}

// ack forgets a result.
func (s *Shells) ack(_ context.Context, c *rpc.Call) (any, error) {
	var p struct {
		ID string `json:"id"`
	}
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	return nil, s.config.Results.Ack(p.ID)
}

// interrupt ends what runs in a shell.
func (s *Shells) interrupt(ctx context.Context, c *rpc.Call) (any, error) {
	var p sandbox.InterruptParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	sh, err := s.shell(p.Shell, false)
	if err != nil || sh == nil {
		if errors.Is(err, os.ErrClosed) {
			err = nil // everything is being ended
		}
		return nil, err
	}
	return nil, sh.interrupt(ctx, p.Grace)
}
