// Package execstream turns the standard input and output of a program in a container into a connection.
package execstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"deckhand/internal/clip"
)

// Conn is a connection over the standard input and output of an exec. The engine
// packs standard output and error into one stream, each piece with a header.
type Conn struct {
	stream client.HijackedResponse
	head   [8]byte
	left   uint32 // of the piece at hand

	mu     sync.Mutex
	stderr []byte
}

// New returns the connection over an exec.
func New(stream client.HijackedResponse) *Conn { return &Conn{stream: stream} }

// maxComplaint is how many bytes of standard error are kept.
const maxComplaint = 1 << 10

// Read implements io.Reader.
func (c *Conn) Read(b []byte) (int, error) {
	for c.left == 0 {
		if err := c.next(); err != nil {
			return 0, err
		}
	}
	n, err := c.stream.Reader.Read(b[:min(len(b), int(min(c.left, 1<<30)))])
	c.left -= uint32(n)
	return n, err
}

// next goes to the next piece of standard output.
func (c *Conn) next() error {
	if _, err := io.ReadFull(c.stream.Reader, c.head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return io.EOF
		}
		return err
	}
	size := binary.BigEndian.Uint32(c.head[4:])
	switch stdcopy.StdType(c.head[0]) {
	case stdcopy.Stdin, stdcopy.Stdout:
		c.left = size
		return nil
	case stdcopy.Stderr, stdcopy.Systemerr:
		return c.complain(int64(size))
	}
	return fmt.Errorf("the container engine sent an unknown stream type (%d)", c.head[0])
}

// complain keeps the first bytes of standard error.
func (c *Conn) complain(size int64) error {
	c.mu.Lock()
	room := int64(maxComplaint - len(c.stderr))
	c.mu.Unlock()
	part := make([]byte, min(size, room))
	if _, err := io.ReadFull(c.stream.Reader, part); err != nil {
		return err
	}
	c.mu.Lock()
	c.stderr = append(c.stderr, part...)
	c.mu.Unlock()
	_, err := io.CopyN(io.Discard, c.stream.Reader, size-int64(len(part)))
	return err
}

// Complaint returns the first bytes of standard error.
func (c *Conn) Complaint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return clip.Line(strings.ToValidUTF8(string(c.stderr), "?"))
}

// Write implements io.Writer.
func (c *Conn) Write(b []byte) (int, error) { return c.stream.Conn.Write(b) }

// Close closes the connection. The program then reads end of file on its standard input.
func (c *Conn) Close() error {
	_ = c.stream.CloseWrite()
	return c.stream.Conn.Close()
}
