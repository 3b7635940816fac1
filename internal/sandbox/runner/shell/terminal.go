package shell

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/shell/ring"
	"deckhand/internal/sandbox/runner/spawn"
)

const (
	// scrollback is how much of a terminal's past a new viewer sees, and how far
	// one may fall behind before it misses something.
	scrollback = 256 << 10
	missed     = "\r\n[... more output than could be shown here ...]\r\n"
	// stalled is how long a viewer may take nothing before it is dropped.
	stalled = 30 * time.Second
)

// terminal is a shell for a user. It lives until its shell ends, with or without viewers.
type terminal struct {
	name string
	tty  *tty

	mu    sync.Mutex
	past  ring.Ring
	grew  chan struct{} // closed when more comes, if there is a waiter
	ended bool
}

// terminal connects a viewer with a terminal.
func (s *Shells) terminal(ctx context.Context, c *rpc.RawCall) {
	var p sandbox.TerminalParams
	err := c.Into(&p)
	if err == nil && len(p.Name) > maxName {
		err = fmt.Errorf("the name of a terminal has at most %d bytes", maxName)
	}
	if err != nil {
		c.Refuse(fmt.Errorf("%w: %v", rpc.ErrInvalid, err))
		return
	}
	t, err := s.openTerminal(p)
	if err != nil {
		c.Refuse(err)
		return
	}
	defer c.Conn.Close()
	_ = t.tty.resize(p.Rows, p.Cols)
	if c.Accept() != nil {
		return
	}
	t.view(ctx, c.Conn)
}

// view shows the terminal to one viewer and takes what it types, until either
// ends. The connection is closed when it returns.
func (t *terminal) view(ctx context.Context, conn net.Conn) {
	unwatch := context.AfterFunc(ctx, func() { conn.Close() })
	defer unwatch()
	left := make(chan struct{})
	go func() {
		defer close(left)
		buf := make([]byte, 4<<10)
		for {
			n, err := conn.Read(buf)
			if n > 0 {
				err = t.tty.typed(buf[:n], err)
			}
			if err != nil {
				return
			}
		}
	}()
	t.show(conn, left)
	_ = conn.SetReadDeadline(time.Unix(1, 0)) // a viewer that only hung up its half is not waited for
	conn.Close()
	<-left
}

// typed passes on what a user typed. If no program reads it, it is lost, as on any terminal.
func (t *tty) typed(b []byte, err error) error {
	if sent := t.send(b, patience); sent != nil && !os.IsTimeout(sent) {
		return sent
	}
	return err
}

// show writes the past and then what comes, until the end, or until the viewer
// has left or takes nothing.
func (t *terminal) show(to net.Conn, left <-chan struct{}) {
	t.mu.Lock()
	at := t.past.Start()
	t.mu.Unlock()
	buf := make([]byte, 16<<10)
	for {
		t.mu.Lock()
		n := 0
		if start := t.past.Start(); at < start {
			n, at = copy(buf, missed), start
		} else {
			n = t.past.Read(at, buf)
			at += int64(n)
		}
		ended := t.ended
		if n == 0 && t.grew == nil {
			t.grew = make(chan struct{})
		}
		grew := t.grew
		t.mu.Unlock()
		switch {
		case n > 0:
			_ = to.SetWriteDeadline(time.Now().Add(stalled))
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		case ended:
			return
		default:
			select {
			case <-grew:
			case <-left:
				return
			}
		}
	}
}

// openTerminal finds a terminal by its name, or starts it.
func (s *Shells) openTerminal(p sandbox.TerminalParams) (*terminal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.terminals[p.Name]; t != nil {
		return t, nil
	}
	if s.closed {
		return nil, errClosed
	}
	if len(s.terminals) >= maxTerminals {
		return nil, fmt.Errorf("%w: the limit of %d open terminals is reached; close one first", rpc.ErrBusy, maxTerminals)
	}
	rows, cols := p.Rows, p.Cols
	if rows == 0 || cols == 0 {
		rows, cols = 24, 80
	}
	tty, inside, err := openTTY(rows, cols)
	if err != nil {
		return nil, err
	}
	defer inside.Close()
	proc, err := s.config.Spawner.Start(spawn.Attr{
		Args: []string{s.dialect().args[0], "-i"}, Dir: s.home(), Env: s.environ("TERM=xterm-256color"),
		Files: []*os.File{inside, inside, inside}, TTY: true,
	})
	if err != nil {
		tty.Close()
		return nil, fmt.Errorf("the terminal cannot be started: %w", err)
	}
	s.sessions[proc.PID] = struct{}{}
	t := &terminal{name: p.Name, tty: tty, past: ring.Ring{Limit: scrollback}}
	s.terminals[p.Name] = t
	s.tasks.Go(func() {
		t.read(proc)
		s.mu.Lock()
		delete(s.terminals, t.name)
		s.mu.Unlock()
		t.end()
	})
	return t, nil
}

// read is the only reader of the terminal. It ends with the shell.
func (t *terminal) read(p *spawn.Process) {
	hurry := make(chan struct{})
	go func() { // background processes may hold the terminal open
		defer close(hurry)
		<-p.Done()
		_ = t.tty.SetReadDeadline(time.Unix(1, 0))
	}()
	buf := make([]byte, 16<<10)
	for {
		n, err := t.tty.Read(buf)
		t.add(buf[:n])
		if err != nil {
			break
		}
	}
	<-hurry
	for n := rest(t.tty.File, buf); n > 0; n = rest(t.tty.File, buf) {
		t.add(buf[:n])
	}
}

func (t *terminal) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past.Add(b)
	t.tell()
}

func (t *terminal) tell() {
	if t.grew != nil {
		close(t.grew)
		t.grew = nil
	}
}

// end lets the viewers go.
func (t *terminal) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.tell()
	t.tty.Close()
}

// resize tells a terminal its size.
func (s *Shells) resize(_ context.Context, c *rpc.Call) (any, error) {
	var p sandbox.TerminalParams
	if err := c.Into(&p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	t := s.terminals[p.Name]
	s.mu.Unlock()
	if t == nil {
		return nil, fmt.Errorf("the terminal %q is not open: %w", p.Name, os.ErrNotExist)
	}
	return nil, t.tty.resize(p.Rows, p.Cols)
}
