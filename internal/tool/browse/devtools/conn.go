// Package devtools is a connection to a browser's debugging port.
//
// It carries commands, answers and events and knows nothing of what they mean.
// The browser and the pages in it are not to be trusted: a message has a largest
// size, nothing is queued without a reader, and no page's document is mirrored
// in our memory.
package devtools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/cdp/jsonv2"
	"github.com/coder/websocket"
)

const (
	// maxMessage is the largest answer: the tree of a large page, a screenshot.
	maxMessage = 64 << 20
	// writeTimeout is how long a browser may take to read a command.
	writeTimeout = 10 * time.Second
)

// ErrClosed says that the connection has ended: the browser did, or we let go of it.
var ErrClosed = errors.New("the connection to the browser has ended")

// ErrGone says that the page a command was meant for has gone.
var ErrGone = errors.New("the page has gone")

// Event is something that the browser tells.
type Event struct {
	// Session is the page's, "" for the browser's own.
	Session string
	Method  string
	params  jsonv2.Value
}

// Into decodes what the event says.
func (e Event) Into(v any) error { return jsonv2.Unmarshal(e.params, v, lenient) }

// lenient takes what pages write as it comes.
var lenient = jsonv2.JoinOptions(jsonv2.DefaultOptionsV2(), jsonv2.AllowInvalidUTF8(true))

// Error is what the browser answers to a command that it cannot do.
type Error struct {
	Method  string `json:"-"`
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Method + ": " + e.Message }

// message is anything that travels.
type message struct {
	ID      int64        `json:"id,omitzero"`
	Session string       `json:"sessionId,omitzero"`
	Method  string       `json:"method,omitzero"`
	Params  jsonv2.Value `json:"params,omitzero"`
	Result  jsonv2.Value `json:"result,omitzero"`
	Error   *Error       `json:"error,omitzero"`
}

// Conn is a connection. It may be used concurrently.
type Conn struct {
	ws     *websocket.Conn
	handle func(Event)
	ctx    context.Context
	cancel context.CancelFunc
	read   sync.WaitGroup

	mu      sync.Mutex
	last    int64
	waiting map[int64]waiter
	closed  bool
}

// waiter is who waits for an answer.
type waiter struct {
	session string
	answer  chan message
}

// Dial connects to the browser at the address, over what dial gives. Events go
// to handle, one after the other, as they come: it must not block, and must not
// wait for an answer.
func Dial(ctx context.Context, address string, dial func(context.Context) (net.Conn, error), handle func(Event)) (*Conn, error) {
	client := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true,
	}}
	ws, answer, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		return nil, err
	}
	if answer.Body != nil {
		_ = answer.Body.Close()
	}
	ws.SetReadLimit(maxMessage)
	c := &Conn{ws: ws, handle: handle, waiting: map[int64]waiter{}}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.read.Go(c.receive)
	return c, nil
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.ctx.Done() }

// Close lets go of the browser, which runs on.
func (c *Conn) Close() {
	c.cancel()
	_ = c.ws.CloseNow()
	c.read.Wait()
}

// receive reads until the end.
func (c *Conn) receive() {
	defer c.end()
	for {
		_, b, err := c.ws.Read(c.ctx)
		if err != nil {
			return
		}
		var m message
		if err := jsonv2.Unmarshal(b, &m, lenient); err != nil {
			return
		}
		if m.ID == 0 {
			c.handle(Event{m.Session, m.Method, m.Params})
			continue
		}
		c.mu.Lock()
		w, ok := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if ok {
			w.answer <- m
		}
	}
}

// end wakes all waiting calls.
func (c *Conn) end() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.waiting {
		close(w.answer)
	}
	clear(c.waiting)
}

// Abandon ends the wait for whatever was asked of a page that has gone.
func (c *Conn) Abandon(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.waiting {
		if w.session == session {
			w.answer <- message{ID: id, Error: &Error{Code: gone}}
			delete(c.waiting, id)
		}
	}
}

// gone is no code that a browser uses.
const gone = -1

// Call asks the browser, or the page that the session belongs to, to do
// something. When ctx ends only the wait does.
func Call[P, R any](ctx context.Context, c *Conn, session string, command cdp.Command[P, R], params P) (R, error) {
	var r R
	raw, err := c.call(ctx, session, command.Method, params)
	if err != nil {
		return r, err
	}
	return r, jsonv2.Unmarshal(raw, &r, lenient)
}

// Tell asks for something without waiting for the answer, for a page that
// answers only when it runs.
func Tell[P, R any](c *Conn, session string, command cdp.Command[P, R], params P) error {
	raw, err := jsonv2.Marshal(params, lenient)
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.last++
	id := c.last
	c.mu.Unlock()
	return c.send(message{ID: id, Session: session, Method: command.Method, Params: raw})
}

func (c *Conn) call(ctx context.Context, session, method string, params any) (jsonv2.Value, error) {
	raw, err := jsonv2.Marshal(params, lenient)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, ErrClosed
	}
	c.last++
	id := c.last
	c.waiting[id] = waiter{session, answer}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if err := c.send(message{ID: id, Session: session, Method: method, Params: raw}); err != nil {
		return nil, err
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, ErrClosed
		case m.Error != nil && m.Error.Code == gone:
			return nil, ErrGone
		case m.Error != nil:
			m.Error.Method = method
			return nil, m.Error
		}
		return m.Result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// send writes a command. It does not look at a caller's context: one that ended
// in the middle would take the connection with it.
func (c *Conn) send(m message) error {
	b, err := jsonv2.Marshal(m, lenient)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.ctx, writeTimeout)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageText, b); err != nil {
		c.cancel()
		return fmt.Errorf("%w: %v", ErrClosed, err)
	}
	return nil
}
