package devtools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type text struct {
	Text string `json:"text"`
}

var echo = cdp.Command[text, text]{Method: "Test.echo"}

// serve is a browser that speaks by itself.
func serve(t *testing.T, speak func(ctx context.Context, ws *websocket.Conn)) func(context.Context) (net.Conn, error) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer ws.CloseNow()
		speak(r.Context(), ws)
	}))
	t.Cleanup(s.Close)
	return func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
}

// dial connects; events are dropped without a handler.
func dial(t *testing.T, to func(context.Context) (net.Conn, error), handle func(Event)) *Conn {
	t.Helper()
	if handle == nil {
		handle = func(Event) {}
	}
	c, err := Dial(t.Context(), "ws://127.0.0.1/devtools/browser/x", to, handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// next reads a command.
func next(ctx context.Context, t *testing.T, ws *websocket.Conn) (m message, ok bool) {
	_, b, err := ws.Read(ctx)
	if err != nil {
		return m, false
	}
	if err := (Event{params: b}).Into(&m); err != nil {
		t.Error(err)
	}
	return m, true
}

func say(ctx context.Context, ws *websocket.Conn, format string, a ...any) {
	_ = ws.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, a...))
}

func TestCall(t *testing.T) {
	events := make(chan Event, 1)
	c := dial(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		for {
			m, ok := next(ctx, t, ws)
			if !ok {
				return
			}
			say(ctx, ws, `{"method":"Test.heard","sessionId":%q,"params":%s}`, m.Session, m.Params)
			say(ctx, ws, `{"id":%d,"result":{}}`, m.ID+1000) // unsolicited
			if m.Method == echo.Method {
				say(ctx, ws, `{"id":%d,"sessionId":%q,"result":%s}`, m.ID, m.Session, m.Params)
			} else {
				say(ctx, ws, `{"id":%d,"error":{"code":-32601,"message":"no such thing"}}`, m.ID)
			}
		}
	}), func(e Event) { events <- e })
	r, err := Call(t.Context(), c, "s1", echo, text{"hello \xff"})
	if err != nil || r.Text != "hello \uFFFD" {
		t.Errorf("%q, %v", r.Text, err)
	}
	e := <-events
	var heard text
	if err := e.Into(&heard); err != nil || e.Session != "s1" || e.Method != "Test.heard" || heard.Text != "hello \uFFFD" {
		t.Errorf("%+v, %v", e, err)
	}
	_, err = Call(t.Context(), c, "", cdp.Command[text, text]{Method: "Test.none"}, text{})
	var refused *Error
	if !errors.As(err, &refused) || refused.Message != "no such thing" || refused.Method != "Test.none" {
		t.Error(err)
	}
}

// A caller who gives up does not harm the connection, and a page that has gone
// blocks no call.
func TestGiveUp(t *testing.T) {
	asked := make(chan string, 10)
	c := dial(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
		for {
			m, ok := next(ctx, t, ws)
			if !ok {
				return
			}
			if m.Session == "mute" {
				asked <- m.Session
				continue
			}
			say(ctx, ws, `{"id":%d,"result":{"text":"here"}}`, m.ID)
		}
	}), nil)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	go func() { _, err := Call(ctx, c, "mute", echo, text{}); errs <- err }()
	<-asked
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { _, err := Call(t.Context(), c, "mute", echo, text{}); errs <- err }()
	<-asked
	c.Abandon("other")
	c.Abandon("mute")
	if err := <-errs; !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if err := Tell(c, "mute", echo, text{}); err != nil {
		t.Error(err)
	}
	<-asked
	if r, err := Call(t.Context(), c, "", echo, text{}); err != nil || r.Text != "here" {
		t.Errorf("%+v, %v", r, err)
	}
}

// Whatever ends the connection ends all waits.
func TestEnd(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, ws *websocket.Conn){
		"closed":  func(context.Context, *websocket.Conn) {},
		"no JSON": func(ctx context.Context, ws *websocket.Conn) { say(ctx, ws, `{"id":`); <-ctx.Done() },
		"too large": func(ctx context.Context, ws *websocket.Conn) {
			_ = ws.Write(ctx, websocket.MessageText, make([]byte, maxMessage+1))
			<-ctx.Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, serve(t, func(ctx context.Context, ws *websocket.Conn) {
				if _, ok := next(ctx, t, ws); !ok {
					return
				}
				end(ws.CloseRead(ctx), ws) // which notices that we hang up
			}), nil)
			if _, err := Call(context.Background(), c, "", echo, text{}); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			<-c.Done()
			if _, err := Call(context.Background(), c, "", echo, text{}); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
}
