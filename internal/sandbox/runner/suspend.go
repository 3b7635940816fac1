package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/results"
	"deckhand/internal/sandbox/runner/shell"
)

// A runner in whose sandbox nothing runs can be suspended: it writes down the state of its
// shells and ends. The next runner of the sandbox continues where it was. The file stays
// until a command comes that may change what it says, so that whatever ends a runner before
// that loses nothing.

// suspension is what a runner knows of its own suspension.
type suspension struct {
	// gate is held by each call, and by the suspension from then on.
	gate sync.RWMutex

	mu sync.Mutex
	// file is what the runner before has written, until it is used; nil without one. opened is
	// true when the shells have what it says.
	file   *suspendedFile
	opened bool
}

// suspendedFile is the file. Boot is how the runner was called and is called again: to the
// server it is the same one.
type suspendedFile struct {
	Boot   string `json:"boot"`
	Sealed []byte `json:"sealed"`
}

// kept is what is sealed: variables of shells may be secret.
type kept struct {
	Secrets []string      `json:"secrets,omitempty"`
	Shells  []shell.Saved `json:"shells,omitempty"`
}

const (
	// gateTime is how long a suspension waits for calls to end.
	gateTime = 500 * time.Millisecond
	gateStep = 5 * time.Millisecond
)

func (r *Runner) suspendedPath() string { return filepath.Join(r.config.State, sandbox.SuspendedFile) }

// readSuspended finds what the runner before has written.
func (r *Runner) readSuspended() error {
	b, err := os.ReadFile(r.suspendedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var f suspendedFile
	if err := json.Unmarshal(b, &f); err != nil || f.Boot == "" {
		return os.Remove(r.suspendedPath()) // it has another name then, so the server notices
	}
	r.boot, r.suspension.file = f.Boot, &f
	return nil
}

// openSuspended gives the shells their state, when the key is known.
func (r *Runner) openSuspended(done *results.Store) {
	r.suspension.mu.Lock()
	defer r.suspension.mu.Unlock()
	if r.suspension.file == nil || r.suspension.opened {
		return
	}
	b, err := done.OpenFile(sandbox.SuspendedFile, r.suspension.file.Sealed)
	var k kept
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil {
		return // useSuspended says so, unless another key comes
	}
	r.suspension.opened = true
	r.mu.Lock()
	r.secrets = append(k.Secrets, r.secrets...)
	r.mu.Unlock()
	r.shells.Restore(k.Shells)
}

// changes are the calls after which the file does not hold any more.
var changes = map[string]bool{"exec": true, "run": true, "terminal": true, "killall": true, "mcp/start": true, "mcp/call": true}

// useSuspended removes the file before a call that changes what it says. It is gone for good: a
// machine that goes down must not bring it back.
func (r *Runner) useSuspended() error {
	r.suspension.mu.Lock()
	defer r.suspension.mu.Unlock()
	if r.suspension.file == nil {
		return nil
	}
	err := os.Remove(r.suspendedPath())
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = syncDir(r.config.State)
	}
	if err != nil {
		return fmt.Errorf("the sandbox cannot continue: %w", err)
	}
	if !r.suspension.opened {
		r.shells.Lose()
	}
	r.suspension.file = nil
	return nil
}

// admitted does a call while no suspension is under way.
func (r *Runner) admitted(method string, serve func()) error {
	r.suspension.gate.RLock()
	defer r.suspension.gate.RUnlock()
	if changes[method] {
		if err := r.useSuspended(); err != nil {
			return err
		}
	}
	serve()
	return nil
}

// suspend is Suspend for the server, which learns of success when the connection ends.
func (r *Runner) suspend(done *results.Store) rpc.Handler {
	return func(ctx context.Context, c *rpc.Call) (any, error) {
		if err := r.admit(c.Fence); err != nil {
			return nil, err
		}
		if err := r.Suspend(ctx, done, 1); err != nil {
			return nil, err
		}
		r.config.Exit()
		return nil, nil
	}
}

// Suspend writes down what the next runner needs to continue, if nothing runs here and no
// more than so many servers are connected; otherwise the error is rpc.ErrBusy. From then on
// no call is served: the caller ends the process.
func (r *Runner) Suspend(ctx context.Context, done *results.Store, servers int) (err error) {
	if r.config.Exit == nil {
		return fmt.Errorf("%w: this sandbox cannot be suspended", rpc.ErrBusy)
	}
	for end := time.Now().Add(gateTime); !r.suspension.gate.TryLock(); time.Sleep(gateStep) {
		if time.Now().After(end) {
			return fmt.Errorf("%w: the sandbox is in use", rpc.ErrBusy)
		}
	}
	defer func() {
		if err != nil {
			r.suspension.gate.Unlock()
		}
	}()
	r.mu.Lock()
	k, peers := kept{Secrets: slices.Clone(r.secrets)}, len(r.peers)
	r.mu.Unlock()
	switch {
	case peers > servers:
		return fmt.Errorf("%w: another server is connected", rpc.ErrBusy)
	case r.tools.Serving() || visitors():
		return fmt.Errorf("%w: a process runs", rpc.ErrBusy)
	case shared():
		return fmt.Errorf("%w: there is shared memory", rpc.ErrBusy)
	}
	if k.Shells, err = r.shells.Save(ctx); err != nil {
		return err
	}
	r.suspension.mu.Lock()
	defer r.suspension.mu.Unlock()
	if r.suspension.file != nil { // nothing has changed since it was written
		return nil
	}
	b, err := json.Marshal(k)
	if err != nil {
		return err
	}
	f := suspendedFile{Boot: r.boot}
	if f.Sealed, err = done.SealFile(sandbox.SuspendedFile, b); err != nil {
		return fmt.Errorf("%w: %v", rpc.ErrBusy, err)
	}
	if err := done.Sync(); err != nil {
		return err
	}
	return r.writeSuspended(f)
}

// writeSuspended writes the file so that it is there as a whole or not at all.
func (r *Runner) writeSuspended(f suspendedFile) error {
	b, err := json.Marshal(f)
	if err != nil {
		return err
	}
	tmp := r.suspendedPath() + ".new"
	file, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = os.Rename(tmp, r.suspendedPath())
	}
	if err == nil {
		err = syncDir(r.config.State)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp), os.RemoveAll(r.suspendedPath()))
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// shared reports whether memory is shared that outlives processes and would be lost.
func shared() bool {
	if entries, _ := os.ReadDir("/dev/shm"); len(entries) > 0 {
		return true
	}
	for _, kind := range []string{"shm", "sem", "msg"} {
		if b, _ := os.ReadFile("/proc/sysvipc/" + kind); strings.Count(string(b), "\n") > 1 {
			return true
		}
	}
	return false
}

// visitors reports whether a process runs here that came from outside and is not the
// server's connection, as one that a person started in a container.
func visitors() bool {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil || os.Getpid() != 1 {
		return false
	}
	for _, pid := range shell.Guests() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe != own {
			return true
		}
	}
	return false
}
