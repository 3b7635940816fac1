package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"deckhand/internal/sandbox/rpc"
)

// Sandbox is a connection to a running sandbox. It may be used concurrently.
// Losing it loses nothing inside: everything runs on and can be attached to
// again.
type Sandbox struct {
	peer  *rpc.Peer
	fence int64
	info  Info
	close func()
	acks  *acks
	// since is the number of the event after which calls can only have been sent to
	// this runner; nil if that is not known. only says that of the calls at hand.
	since *int64
	only  bool
	full  func() bool // see WhenFull
	ended string      // see After
	told  *told
	// restarted is true until the agent was told, see Restarted.
	restarted *atomic.Bool
	mark      *mark // see MarkTurn
}

// told is the environment that the runner was told over a connection, if known.
type told struct {
	mu    sync.Mutex
	known bool
	env   map[string]string
}

// After says how the runner before this one ended. Call it before the first command.
func (s *Sandbox) After(ended string) { s.ended = ended }

// Ended is how the runner before this one ended, the beginning of a sentence. Calls whose
// result is Lost were lost with it.
func (s *Sandbox) Ended() string { return cmp.Or(s.ended, "The sandbox ended") }

// Restarted notes that the runner before this one ended by itself, while no command ran. Call it before the first command.
func (s *Sandbox) Restarted() { s.restarted.Store(true) }

// TellRestart reports once that the sandbox was restarted: the agent must know that its variables and processes are gone.
func (s *Sandbox) TellRestart() bool { return s.restarted != nil && s.restarted.Swap(false) }

// WhenFull has commands run without the right to make and write files while full
// returns true, and edits and Save refused. Call it before the first command.
func (s *Sandbox) WhenFull(full func() bool) { s.full = full }

// Full is the refusal of a write to a sandbox while nothing may be written there.
const Full = "The sandbox is above its disk limit, or the server's disk is nearly full, so nothing was written. Delete files to continue."

func (s *Sandbox) isFull() bool { return s.full != nil && s.full() }

// Info is what a runner says of itself.
type Info struct {
	// Boot differs between two runs of the runner: a new value means that everything inside was
	// started again.
	Boot    string `json:"boot"`
	Version string `json:"version"`
	// Shell is what commands run in: bash, or sh where there is none.
	Shell string `json:"shell"`
	User  string `json:"user"`
	Host  string `json:"host"`
	// Workspace is the path of the workspace, without links; "" from older runners.
	Workspace string `json:"workspace,omitempty"`
	// Acks says that the runner takes acknowledgements with commands.
	Acks bool `json:"acks,omitempty"`
	// Marks says that the runner records the files of a turn with its first command.
	Marks bool `json:"marks,omitempty"`
}

// Connect speaks to the runner at the other end of the link.
func Connect(ctx context.Context, l Link) (*Sandbox, error) {
	peer, err := rpc.Dial(l.Conn, rpc.Handlers{Raw: map[string]rpc.RawHandler{"outward": l.outward}})
	if err != nil {
		l.Conn.Close()
		return nil, err
	}
	s := &Sandbox{peer: peer, close: l.OnClose, acks: &acks{}, told: &told{}, restarted: &atomic.Bool{}}
	if err := peer.Call(ctx, "hello", 0, nil, &s.info); err != nil {
		s.Close()
		return nil, fmt.Errorf("the runner does not answer: %w", err)
	}
	return s, nil
}

// dyingTime is how long a sandbox may take to end: so long it is found running
// and cannot be attached to.
const dyingTime = 2 * time.Second

// Open starts a sandbox, or finds it running, and attaches to it. ErrSilent if its runner
// does not answer within spec.Silence.
func Open(ctx context.Context, d Driver, spec Spec, progress func(Progress)) (s *Sandbox, h Handle, err error) {
	for wait := time.Millisecond; ; wait *= 2 {
		if h, err = d.Start(ctx, spec, progress); err != nil {
			return nil, h, err
		}
		err = Answers(ctx, spec.Silence, func(ctx context.Context) error {
			if s, err = d.Attach(ctx, h); err != nil {
				return err
			}
			if err = s.welcome(ctx, spec); err != nil {
				s.Close()
			}
			return err
		})
		if err == nil {
			return s, h, nil
		}
		if wait > dyingTime || !errors.Is(err, ErrGone) && !errors.Is(err, ErrLost) {
			return nil, h, err
		}
		select {
		case <-ctx.Done():
			return nil, h, err
		case <-time.After(wait):
		}
	}
}

// DefaultSilence is how long a runner may take to answer before it is ended.
const DefaultSilence = 30 * time.Second

// Answers asks a runner something, which is ErrSilent if it takes longer than silence; 0 is no
// limit.
func Answers(ctx context.Context, silence time.Duration, ask func(context.Context) error) error {
	if silence <= 0 {
		return ask(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	err := ask(limited)
	limit, _ := limited.Deadline()
	callers, ok := ctx.Deadline()
	// The error can come a moment before the context is done: a connection has timers of its own.
	late := limited.Err() != nil || errors.Is(err, context.DeadlineExceeded)
	if err != nil && late && ctx.Err() == nil && (!ok || limit.Before(callers)) {
		return fmt.Errorf("%w: %w", ErrSilent, err)
	}
	return err
}

// SealParams is the key under which a runner seals what it writes down.
type SealParams struct {
	Key []byte `json:"key"`
}

// seal gives the runner its key. One of an older version has no use for it.
func (s *Sandbox) seal(ctx context.Context, key []byte) error {
	if len(key) == 0 {
		return nil
	}
	err := s.peer.Call(ctx, "seal", 0, SealParams{key}, nil)
	if _, refused := Refusal(err); refused {
		return nil
	}
	return err
}

// WelcomeParams are what a runner is told by a server that attaches to it: see seal, Remember and SetEnv.
type WelcomeParams struct {
	Key    []byte            `json:"key,omitempty"`
	Values []string          `json:"values,omitempty"`
	Env    map[string]string `json:"env,omitempty"`
}

// welcome tells the runner how to set up its sandbox, and the caller which secrets are inside
// already. A runner of an older version is told the same in three calls.
func (s *Sandbox) welcome(ctx context.Context, spec Spec) error {
	var out RememberParams
	err := s.peer.Call(ctx, "welcome", 0, WelcomeParams{Key: spec.Seal, Values: spec.Secrets, Env: spec.Env}, &out)
	if _, refused := Refusal(err); refused {
		return s.welcomeOlder(ctx, spec)
	}
	if err != nil {
		return err
	}
	s.told.mu.Lock()
	s.told.known, s.told.env = true, maps.Clone(spec.Env)
	s.told.mu.Unlock()
	if spec.Inside != nil {
		spec.Inside(out.Values)
	}
	return nil
}

func (s *Sandbox) welcomeOlder(ctx context.Context, spec Spec) error {
	if err := s.seal(ctx, spec.Seal); err != nil {
		return err
	}
	inside, err := s.Remember(ctx, spec.Secrets)
	if err != nil {
		return err
	}
	if spec.Inside != nil {
		spec.Inside(inside)
	}
	return s.SetEnv(ctx, spec.Env)
}

// RememberParams are values that must not be shown.
type RememberParams struct {
	Values []string `json:"values"`
}

// Remember tells the runner which values of the environment are secret, and returns all
// that it was told since it was started: processes that run may have any of them. A
// runner of an older version knows none.
func (s *Sandbox) Remember(ctx context.Context, values []string) ([]string, error) {
	var out RememberParams
	err := s.peer.Call(ctx, "remember", 0, RememberParams{values}, &out)
	if _, refused := Refusal(err); refused {
		err = nil
	}
	return out.Values, err
}

// SetEnv says what is added to the environment of everything that is started
// from now on, in place of what was said before.
func (s *Sandbox) SetEnv(ctx context.Context, env map[string]string) error {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	return s.setEnv(ctx, env)
}

func (s *Sandbox) setEnv(ctx context.Context, env map[string]string) error {
	s.told.known = false
	return s.peer.Call(ctx, "setenv", 0, env, nil)
}

// Equip has the runner remember the values of an environment that are secret, and sets the environment. It
// does nothing if that is the one that was set over this connection last.
func (s *Sandbox) Equip(ctx context.Context, secrets []string, env map[string]string) error {
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if s.told.known && maps.Equal(s.told.env, env) {
		return nil
	}
	if _, err := s.Remember(ctx, secrets); err != nil {
		return err
	}
	if err := s.setEnv(ctx, env); err != nil {
		return err
	}
	s.told.known, s.told.env = true, maps.Clone(env)
	return nil
}

// Begin says in which folder shells and terminals begin that are started from
// now on: one of the workspace, relative to it.
func (s *Sandbox) Begin(ctx context.Context, folder string) error {
	return s.peer.Call(ctx, "begin", 0, InWorkspace(folder), nil)
}

// Refusal returns what the runner itself answered instead of a result, false for errors of the
// connection: the caller can learn from a refusal, and retrying would not help.
func Refusal(err error) (string, bool) {
	var e *rpc.Error
	if errors.As(err, &e) && !errors.Is(err, ErrFenced) {
		return e.Message, true
	}
	return "", false
}

// outward hands a connection to the proxy.
func (l Link) outward(ctx context.Context, c *rpc.RawCall) {
	var p OutwardParams
	if err := c.Into(&p); err != nil || l.Outward == nil {
		c.Conn.Close()
		return
	}
	l.Outward(ctx, l.ID, p.Call, c.Conn)
}

// OutwardParams comes with a connection that leaves the sandbox.
type OutwardParams struct {
	// Call is the ID of the Command that was running, if just one was.
	Call string `json:"call,omitempty"`
}

// Info is what the runner said when it was connected to.
func (s *Sandbox) Info() Info { return s.info }

// Same reports whether both are one connection, under whatever claim and for whatever call.
func (s *Sandbox) Same(o *Sandbox) bool { return o != nil && s.peer == o.peer }

// Under is the same connection with the claim that every command carries. The
// runner refuses what comes under an older claim than it has seen: ErrFenced.
func (s *Sandbox) Under(claim int64) *Sandbox {
	c := *s
	c.fence = claim
	return &c
}

// Since is the same connection, to a runner that is the only one to which calls were
// sent that the session's log has after this event. Since(0) is for the only runner that
// the session ever had.
func (s *Sandbox) Since(event int64) *Sandbox {
	c := *s
	c.since = &event
	return &c
}

// For is the same connection for the call that the session's log has at this number, 0
// for a call that another log has. If the call can have been sent to this runner only,
// the runner is not told that it may have been sent before: it knows the call, or the
// call was never begun.
func (s *Sandbox) For(event int64) *Sandbox {
	c := *s
	c.only = s.since != nil && (*s.since == 0 || event > *s.since)
	return &c
}

// Done is closed when the connection is lost.
func (s *Sandbox) Done() <-chan struct{} { return s.peer.Done() }

// Close lets go of the connection. The sandbox runs on.
func (s *Sandbox) Close() error {
	err := s.peer.Close()
	if s.close != nil {
		s.close()
	}
	return err
}

// DialPort connects to a port that something in the sandbox listens on.
func (s *Sandbox) DialPort(ctx context.Context, port int) (net.Conn, error) {
	call, err := s.peer.Open(ctx, "dial", 0, PortParams{Port: port})
	if err != nil {
		return nil, err
	}
	if err := call.Answer(nil); err != nil {
		call.Close()
		return nil, err
	}
	return call.Raw(), nil
}

// PortParams names a port.
type PortParams struct {
	Port int `json:"port"`
}

// Ports lists the TCP ports that something in the sandbox listens on, but for the proxy's and those of
// the agents' browsers.
func (s *Sandbox) Ports(ctx context.Context) ([]int, error) {
	var out []int
	return out, s.peer.Call(ctx, "ports", 0, nil, &out)
}

// eachJSON decodes lines of JSON until the data ends.
func eachJSON[T any](r io.Reader, each func(T)) error {
	var rest []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		rest = append(rest, buf[:n]...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			rest = after
			var v T
			if err := json.Unmarshal(line, &v); err != nil {
				return err
			}
			each(v)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
