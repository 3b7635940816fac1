package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"deckhand/internal/clip"
)

// program connects by starting a program whose standard input and output are the connection.
type program struct {
	name string
	args []string

	mu     sync.Mutex
	open   map[*conn]bool
	closed bool
}

// dial starts the program. The connection outlives ctx.
func (p *program) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, net.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &conn{from: p, cmd: exec.Command(p.name, p.args...)}
	// Ctrl-C in a terminal is for us alone.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.cmd.Stderr = &c.said
	var err1, err2 error
	c.in, err1 = c.cmd.StdinPipe()
	c.out, err2 = c.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if p.open == nil {
		p.open = map[*conn]bool{}
	}
	p.open[c] = true
	return c, nil
}

// close closes all connections.
func (p *program) close() {
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// conn is a connection to a program.
type conn struct {
	from *program
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.ReadCloser
	said beginning
	once sync.Once
	read bool
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.out.Read(b)
	c.read = c.read || n > 0
	if errors.Is(err, io.EOF) && !c.read {
		c.wait() // for its last words
		if said := c.said.String(); said != "" {
			return n, fmt.Errorf("%s: %s", c.cmd.Args[0], reworded.Replace(said))
		}
	}
	return n, err
}

// reworded changes the words that make the engine's client replace an error with one that names no cause.
var reworded = strings.NewReplacer("dial unix ", "dial ", "connection refused", "Connection refused")

func (c *conn) Write(b []byte) (int, error) { return c.in.Write(b) }

// CloseWrite ends the input of the program.
func (c *conn) CloseWrite() error { return c.in.Close() }

// Close ends the program.
func (c *conn) Close() error {
	_ = c.cmd.Process.Kill()
	_ = c.in.Close()
	c.wait()
	c.from.mu.Lock()
	defer c.from.mu.Unlock()
	delete(c.from.open, c)
	return nil
}

// wait waits until the program has ended. How it ended does not matter to a connection.
func (c *conn) wait() { c.once.Do(func() { _ = c.cmd.Wait() }) }

// address is what a connection to a program has in place of an address.
type address struct{}

func (address) Network() string { return "ssh" }
func (address) String() string  { return "ssh" }

func (*conn) LocalAddr() net.Addr              { return address{} }
func (*conn) RemoteAddr() net.Addr             { return address{} }
func (*conn) SetDeadline(time.Time) error      { return nil }
func (*conn) SetReadDeadline(time.Time) error  { return nil }
func (*conn) SetWriteDeadline(time.Time) error { return nil }

// beginning keeps the first bytes of what a program writes to standard error.
type beginning struct {
	mu   sync.Mutex
	text bytes.Buffer
}

const maxSaid = 1 << 10

func (t *beginning) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.Write(b[:min(len(b), max(0, maxSaid-t.text.Len()))])
	return len(b), nil
}

func (t *beginning) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return clip.Line(strings.ToValidUTF8(t.text.String(), "?"))
}
