package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/results"
)

// call is one use of a shell, from its request to its recorded result. It continues when its
// caller leaves, and other callers may join.
type call struct {
	command sandbox.Command
	began   time.Time
	window  *window
	soft    *time.Timer
	hard    *time.Timer

	done   chan struct{} // closed when result or err is set
	result sandbox.Result
	err    error
}

// exec does a Command, or joins the one with the same ID.
func (s *Shells) exec(ctx context.Context, c *rpc.Call) (any, error) {
	var cmd sandbox.Command
	if err := c.Into(&cmd); err != nil {
		return nil, err
	}
	switch {
	case cmd.ID == "":
		return nil, fmt.Errorf("%w: a command needs an id", rpc.ErrInvalid)
	case len(cmd.Shell) > maxName:
		return nil, fmt.Errorf("%w: the name of a shell has at most %d bytes", rpc.ErrInvalid, maxName)
	case len(cmd.Text) > maxText:
		return nil, fmt.Errorf("%w: a command has at most %d bytes; write it to a file and run that", rpc.ErrTooBig, maxText)
	case strings.Contains(cmd.Text, "\x00"):
		return nil, fmt.Errorf("%w: a command cannot hold a zero byte", rpc.ErrInvalid)
	}
	for _, id := range cmd.Acks {
		_ = s.config.Results.Ack(id) // only frees disk space
	}
	s.mark(ctx, cmd)
	return s.call(cmd).follow(ctx, c)
}

// mark records the files of a turn that a command begins. The command is run also if that fails or takes too long.
func (s *Shells) mark(ctx context.Context, cmd sandbox.Command) {
	if cmd.Mark == nil || s.Mark == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sandbox.MarkTime)
	defer cancel()
	s.Mark(ctx, *cmd.Mark)
}

// call finds the call of this ID, or begins it.
func (s *Shells) call(cmd sandbox.Command) *call {
	s.mu.Lock()
	if c, ok := s.calls[cmd.ID]; ok {
		s.mu.Unlock()
		return c
	}
	c := &call{command: cmd, began: time.Now(), done: make(chan struct{})}
	c.window = newWindow(s.keep)
	s.calls[cmd.ID] = c
	s.mu.Unlock()

	state, stored, _, err := s.config.Results.Begin(cmd.ID, cmd.Again)
	switch {
	case err != nil:
		s.settle(c, err)
	case state == results.Running:
		s.settle(c, fmt.Errorf("%w: this id is in use for something else", rpc.ErrBusy))
	case state == results.Lost:
		c.result = sandbox.Result{ID: cmd.ID, Exit: -1, Lost: true, Dir: s.config.Workspace}
		s.settle(c, nil)
	case state == results.Done:
		err := json.Unmarshal(stored, &c.result)
		if err != nil {
			err = fmt.Errorf("the result of %q cannot be read: %w", cmd.ID, err)
		}
		c.window.add([]byte(c.result.Output))
		s.settle(c, err)
	default:
		s.begin(c)
	}
	return c
}

// tryBegin hands a new call to its shell. When that is impossible nothing was done,
// so nothing is remembered and the caller may try again.
func (s *Shells) tryBegin(c *call) error {
	cmd := c.command
	starts := !cmd.Input && strings.TrimSpace(cmd.Text) != ""
	if starts && cmd.Shrink && s.goOn(func() { s.shrink(c) }) == nil {
		return nil
	}
	s.ending.RLock()
	defer s.ending.RUnlock()
	for {
		sh, err := s.shell(cmd.Shell, starts)
		if err != nil {
			return err
		}
		if sh == nil {
			s.record(c, sandbox.Result{ID: cmd.ID, Exit: -1, Dir: s.config.Workspace, Refused: nothingRuns(cmd), Started: c.began, Ended: time.Now()})
			return nil
		}
		gone, err := sh.use(c)
		if !gone { // otherwise the shell ended between finding and using it
			return err
		}
	}
}

// record stores a result and then gives it to all waiting callers. If it cannot be stored, the
// store still knows it as long as this runner lives.
func (s *Shells) record(c *call, r sandbox.Result) {
	c.result = r
	_ = s.config.Results.Finish(c.command.ID, r)
	s.settle(c, nil)
}

// settle ends the call.
func (s *Shells) settle(c *call, err error) {
	c.err = err
	s.mu.Lock()
	delete(s.calls, c.command.ID)
	s.mu.Unlock()
	c.window.end()
	close(c.done)
}

// follow gives the output to a caller as it comes, from its beginning, and then
// the result. A caller that is too slow loses the middle of the output, here
// only.
func (c *call) follow(ctx context.Context, to *rpc.Call) (any, error) {
	var at int64
	var buf []byte
	for {
		if at == 0 && closed(c.done) && int64(len(c.result.Output)) == c.window.size() {
			return c.result, c.err // with all of the output
		}
		if buf == nil && c.window.size() > 0 {
			buf = make([]byte, 16<<10)
		}
		n, next, skipped, grew := c.window.read(at, buf)
		at = next
		if skipped {
			if _, err := to.Write([]byte(gap)); err != nil {
				return nil, err
			}
		}
		switch {
		case n > 0:
			if _, err := to.Write(buf[:n]); err != nil {
				return nil, err
			}
		case grew != nil:
			select {
			case <-grew:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		case c.window.size() <= at:
			<-c.done
			return c.result, c.err
		}
	}
}
