package engine

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

var (
	errLeft  = ended("the client left")
	errWrite = ended("the client did not read what was written")
)

const (
	// goodbyeTime is how long a client may take to answer the end of a
	// WebSocket. Some sleep, and the library alone would wait for 10 s.
	goodbyeTime = time.Second
	// writeBuffer is enough to write most messages at once.
	writeBuffer = 1 << 10
)

// wire is a WebSocket and the connection below it.
type wire struct {
	*websocket.Conn
	raw net.Conn
}

// accept changes the protocol of the request's connection. It has answered if
// it fails.
func accept(w http.ResponseWriter, r *http.Request) (*wire, error) {
	h := &hijacker{ResponseWriter: w}
	ws, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		// Who mounts the server has checked the origin, for polling alike.
		InsecureSkipVerify: true,
		CompressionMode:    websocket.CompressionDisabled, // its buffers cost more than all the rest of a connection
	})
	return &wire{ws, h.raw}, err
}

// goodbye ends a WebSocket politely.
func (w *wire) goodbye(code websocket.StatusCode) {
	hurry := time.AfterFunc(goodbyeTime, func() { _ = w.raw.Close() })
	defer hurry.Stop()
	_ = w.Close(code, "")
}

// hijacker hands out a request's connection, remembers it, and gives it a small
// buffer for writing.
type hijacker struct {
	http.ResponseWriter
	raw net.Conn
}

func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	raw, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	h.raw = raw
	rw.Writer = bufio.NewWriterSize(raw, writeBuffer)
	return raw, rw, nil
}

// serveWebSocket is a connection that is on a WebSocket from the start.
func (c *Conn) serveWebSocket(w http.ResponseWriter, r *http.Request) {
	ws, err := accept(w, r)
	if err != nil {
		return
	}
	var buf []byte
	if err := c.write(ws, &buf, c.opening()); err != nil {
		_ = ws.CloseNow()
		return
	}
	c.ws = ws
	if err := c.server.start(c); err != nil {
		ws.goodbye(websocket.StatusGoingAway)
		return
	}
	c.read(ws)
}

// read takes packets from the client until the end.
func (c *Conn) read(ws *wire) {
	ws.SetReadLimit(c.most.Load())
	for {
		p, err := c.readPacket(context.Background(), ws)
		if err == nil {
			err = c.handle(context.Background(), p)
		}
		if err == nil {
			continue
		}
		_, wrong := errors.AsType[packetError](err)
		switch {
		case err == errClientClosed:
			c.end(err, websocket.StatusNormalClosure)
		case errors.Is(err, ErrClosed): // by us
		case errors.Is(err, websocket.ErrMessageTooBig):
			c.end(errTooLarge, websocket.StatusMessageTooBig)
		case wrong:
			c.end(ended(err.Error()), websocket.StatusProtocolError)
		default:
			c.end(errLeft, 0)
		}
		return
	}
}

func (c *Conn) readPacket(ctx context.Context, ws *wire) (packet, error) {
	typ, r, err := ws.Reader(ctx)
	if err != nil {
		return packet{}, err
	}
	data, err := io.ReadAll(hearing{r, c})
	if err != nil {
		return packet{}, err
	}
	if typ == websocket.MessageBinary {
		return packet{kind: kindMessage, binary: true, data: data}, nil
	}
	return parseText(data)
}

// flush writes what waits until nothing does. There is one at a time.
func (c *Conn) flush() {
	var buf []byte // goes with the goroutine: a quiet connection has none
	for {
		p, more := c.next()
		if !more {
			return
		}
		if p.kind == kindClose {
			c.end(ErrClosed, websocket.StatusNormalClosure) // the reason has been given
			return
		}
		if err := c.write(c.ws, &buf, p); err != nil {
			c.end(errWrite, 0)
			return
		}
		if p.kind == kindMessage {
			c.mu.Lock()
			c.out.written(cost(p))
			c.mu.Unlock()
		}
	}
}

// next is what flush writes next. A close packet stands for the end of a
// connection that has said all: a WebSocket has a goodbye of its own.
func (c *Conn) next() (packet, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == isOver {
		return packet{}, false
	}
	if c.takePing() {
		return packet{kind: kindPing}, true
	}
	if p, ok := c.out.pop(); ok {
		return p, true
	}
	if c.state == isDraining {
		return packet{kind: kindClose}, true
	}
	c.flushing = false
	return packet{}, false
}

// write writes one packet, in one frame. It needs a buffer to put the kind
// before a text.
func (c *Conn) write(ws *wire, buf *[]byte, p packet) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.server.o.patience(int64(len(p.data))))
	defer cancel()
	if p.binary {
		return ws.Write(ctx, websocket.MessageBinary, p.data)
	}
	*buf = append(append((*buf)[:0], p.kind), p.data...)
	return ws.Write(ctx, websocket.MessageText, *buf)
}
