package live

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A request that is being answered costs net/http its buffers, a goroutine that
// reads, and the stack of every function on the way to the handler: for a reader
// that waits for hours, several times what following takes. So a stream over
// HTTP/1.1 leaves the server once its header is sent, and goes on with its
// connection and two goroutines with small stacks.

// serveStream sends the header of a stream and runs it, detached if possible;
// leave is called when it is over. A detached stream is reported to o.Detach only.
func serveStream(w http.ResponseWriter, r *http.Request, o Options, leave func(), run func(context.Context, sink) error) error {
	out, err := beginSSE(w, r, o)
	if err != nil {
		leave()
		return err
	}
	ctx := r.Context() // what is detached must not hold on to the request
	if o.Detach == nil {
		defer leave()
		return run(ctx, out)
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		leave()
		return err
	}
	timeout := o.WriteTimeout
	o.Detach(func() error {
		defer leave()
		return serveConn(ctx, conn, timeout, run)
	})
	return nil
}

// serveConn goes on with the chunked body of an answer whose header is sent.
func serveConn(ctx context.Context, conn net.Conn, timeout time.Duration, run func(context.Context, sink) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		awaitLeave(conn, cancel)
	}()
	defer func() {
		_ = conn.Close()
		<-watched
	}()
	body := &chunkWriter{ctx: ctx, conn: conn}
	defer body.release()
	out := &sseWriter{w: body, control: body, timeout: timeout}
	err := run(ctx, out)
	// After a failed write the client has part of a chunk. What the context's end kept
	// back began with a new one; readers ignore an event that is not whole.
	if out.err == nil || errors.Is(out.err, context.Cause(ctx)) {
		out.deadline()
		_, _ = conn.Write(lastChunk)
	}
	return err
}

// awaitLeave cancels when the client closes its side. A client that sends something
// is not read from any more, and noticed when it does not take what is sent.
func awaitLeave(conn net.Conn, cancel context.CancelCauseFunc) {
	var b [1]byte
	if n, err := conn.Read(b[:]); n == 0 {
		cancel(fmt.Errorf("%w: %w", errClientLeft, err))
	}
}

// chunkWriter writes chunks of an HTTP/1.1 body. It has a buffer only while
// something is waiting in it.
type chunkWriter struct {
	ctx  context.Context // after its end nothing more is written
	conn net.Conn
	buf  *chunk
}

// chunk is a chunk with room for the length before it and the line break after it.
type chunk struct {
	n int
	b [chunkHead + chunkBytes + 2]byte
}

const (
	chunkHead  = len("4000\r\n")
	chunkBytes = 0x4000
)

var (
	chunks    = sync.Pool{New: func() any { return new(chunk) }}
	lastChunk = []byte("0\r\n\r\n")
)

// Write implements io.Writer.
func (c *chunkWriter) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		if c.buf == nil {
			c.buf = chunks.Get().(*chunk)
		}
		n := copy(c.buf.b[chunkHead+c.buf.n:chunkHead+chunkBytes], b)
		c.buf.n += n
		written += n
		b = b[n:]
		if c.buf.n == chunkBytes {
			if err := c.Flush(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// Flush sends the buffer and gives it back.
func (c *chunkWriter) Flush() error {
	if c.buf == nil {
		return nil
	}
	defer c.release()
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	end := chunkHead + c.buf.n
	copy(c.buf.b[end:], "\r\n")
	var head [chunkHead]byte
	length := append(strconv.AppendInt(head[:0], int64(c.buf.n), 16), "\r\n"...)
	begin := chunkHead - len(length)
	copy(c.buf.b[begin:], length)
	_, err := c.conn.Write(c.buf.b[begin : end+2])
	return err
}

// SetWriteDeadline bounds the writes that follow.
func (c *chunkWriter) SetWriteDeadline(t time.Time) error { return c.conn.SetWriteDeadline(t) }

func (c *chunkWriter) release() {
	if c.buf != nil {
		c.buf.n = 0
		chunks.Put(c.buf)
		c.buf = nil
	}
}
