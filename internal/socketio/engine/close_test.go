package engine

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// goodbye sends something and returns.
func goodbye(ctx context.Context, c *Conn) {
	_ = c.Send(ctx, Message{Data: []byte("good")}, Message{Data: []byte("bye")})
}

func TestServedConnectionSaysAllAndEnds(t *testing.T) {
	g := newRig(t, Options{}, goodbye)
	s := g.opened()
	s.want("4good")
	s.want("4bye")
	s.wantEnd(websocket.StatusNormalClosure)

	id := g.open()
	g.want("GET", id, "", http.StatusOK, "4good\x1e4bye\x1e1")
	g.want("GET", id, "", http.StatusBadRequest, saysSession)
	if n := g.server.Len(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// A client that does not fetch the rest is forgotten.
func TestRestIsNotKeptForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, goodbye)
		id := g.open()
		synctest.Wait()
		if n := g.server.Len(); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		g.want("POST", id, "4ignored", http.StatusOK, "ok")
		<-time.After(quick.PingTimeout)
		synctest.Wait()
		g.want("GET", id, "", http.StatusBadRequest, saysSession)
	})
}

func TestCloseGivesTheReason(t *testing.T) {
	g := newRig(t, Options{}, wait)
	c := g.conn(g.open())
	c.Close("enough")
	c.Close("twice")
	const want = "the connection has ended: enough"
	if err := c.Send(t.Context(), Message{}); !errors.Is(err, ErrClosed) || err.Error() != want {
		t.Errorf("Send: %v", err)
	}
	if _, err := c.Receive(t.Context()); !errors.Is(err, ErrClosed) || err.Error() != want {
		t.Errorf("Receive: %v", err)
	}
}

func TestContextsEndWaiting(t *testing.T) {
	g := newRig(t, Options{Buffer: 1}, wait)
	c := g.conn(g.open())
	if err := c.Send(t.Context(), Message{Data: []byte("fills it")}); err != nil {
		t.Fatal(err)
	}
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := c.Send(ctx, Message{}); err != why {
		t.Errorf("Send: %v", err)
	}
	if _, err := c.Receive(ctx); err != why {
		t.Errorf("Receive: %v", err)
	}
}

func TestServerClose(t *testing.T) {
	served := make(chan struct{})
	g := newRig(t, Options{}, func(ctx context.Context, _ *Conn) {
		served <- struct{}{}
		<-ctx.Done()
	})
	id := g.open()
	<-served
	poll := make(chan string, 1)
	go func() {
		_, body, _ := g.do(t.Context(), http.MethodGet, id, "")
		poll <- body
	}()
	g.waitPoll(id)
	s := g.opened()
	<-served // its first packet comes before that
	probing := g.open()
	<-served
	trial := g.socket(socketQuery(probing))
	if n := g.server.Len(); n != 3 {
		t.Errorf("%d connections, wanted 3", n)
	}

	closed := make(chan struct{})
	go func() {
		defer close(closed)
		g.server.Close()
	}()
	s.wantEnd(websocket.StatusGoingAway)
	if got := <-poll; got != "1" {
		t.Errorf("the poll was answered with %q", got)
	}
	if _, _, err := trial.conn.Read(t.Context()); err == nil {
		t.Error("the WebSocket on trial still works")
	}
	<-closed
	if n := g.server.Len(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
	g.server.Close()
	g.want("GET", polling, "", http.StatusServiceUnavailable, `{"code":3,"message":"Server is going away"}`)
}

// A laptop that was closed answers no goodbye, and is not waited for long.
func TestServerCloseDoesNotWaitForSleepers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		g.opened()
		g.opened()
		began := time.Now()
		g.server.Close()
		if got := time.Since(began); got > goodbyeTime {
			t.Errorf("Close took %v", got)
		}
	})
}

func TestPanicEndsOneConnection(t *testing.T) {
	g := newRig(t, Options{}, func(ctx context.Context, c *Conn) {
		if c.Request().Header.Get("X-Panic") != "" {
			panic("test")
		}
		echo(ctx, c)
	})
	other := g.opened()
	conn, _, err := websocket.Dial(t.Context(), g.url+"?"+onSocket, &websocket.DialOptions{HTTPHeader: http.Header{"X-Panic": {"yes"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := &socket{g, conn}
	readOpening(t, s.read())
	s.wantEnd(websocket.StatusNormalClosure)
	other.write(hello)
	other.want(hello)
}

func TestRequestIsTheHandshake(t *testing.T) {
	type key struct{}
	got := make(chan *http.Request, 1)
	server := New(Options{}, func(ctx context.Context, c *Conn) {
		if ctx.Value(key{}) != "value" {
			t.Error("the context has no values of the request's")
		}
		got <- c.Request()
	})
	defer server.Close()
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
	r := httptest.NewRequestWithContext(ctx, "GET", "/any/path?colour=blue&"+polling, nil)
	r.Header.Set("X-Test", "here")
	server.ServeHTTP(httptest.NewRecorder(), r)
	cancel()
	c := <-got
	if c.URL.Query().Get("colour") != "blue" || c.Header.Get("X-Test") != "here" || c.RemoteAddr != r.RemoteAddr {
		t.Errorf("got %v", c)
	}
	if c.Context().Value(key{}) != "value" || c.Context().Err() != nil {
		t.Error("the request's context has lost its values or has ended")
	}
}

func TestAllowRefuses(t *testing.T) {
	g := newRig(t, Options{Allow: func(r *http.Request) error {
		if r.URL.Query().Get("key") != "right" {
			return errors.New("not you")
		}
		return nil
	}}, echo)
	g.want("GET", polling, "", http.StatusForbidden, `{"code":4,"message":"not you"}`)
	status, _, err := g.do(t.Context(), http.MethodGet, polling+"&key=right", "")
	if err != nil || status != http.StatusOK {
		t.Errorf("%d %v", status, err)
	}
}

func TestContinueRefuses(t *testing.T) {
	g := newRig(t, Options{Continue: func(first, next *http.Request) error {
		if first.URL.Query().Get("key") != next.URL.Query().Get("key") {
			return errors.New("not you")
		}
		return nil
	}}, echo)
	status, body, err := g.do(t.Context(), http.MethodGet, polling+"&key=right", "")
	if err != nil || status != http.StatusOK {
		t.Fatalf("%d %v", status, err)
	}
	sid := "&sid=" + readOpening(t, body).SID
	for _, query := range []string{polling + sid, onSocket + sid + "&key=wrong"} {
		g.want("GET", query, "", http.StatusForbidden, `{"code":4,"message":"not you"}`)
		g.want("POST", query, hello, http.StatusForbidden, `{"code":4,"message":"not you"}`)
	}
	g.want("POST", polling+sid+"&key=right", hello, http.StatusOK, "ok") // it goes on
	g.want("GET", polling+sid+"&key=right", "", http.StatusOK, hello)
}

// What is discarded is not written, and there is room again.
func TestDiscard(t *testing.T) {
	const old, fresh = "old", "new"
	discarded := make(chan struct{})
	g := newRig(t, Options{Buffer: 2 * (packetCost + len(old))}, func(ctx context.Context, c *Conn) {
		for range 2 {
			if err := c.Send(ctx, Message{Data: []byte(old)}); err != nil {
				t.Error(err)
			}
		}
		c.Discard()
		for range 2 {
			if err := c.Send(ctx, Message{Data: []byte(fresh)}); err != nil {
				t.Error(err)
			}
		}
		close(discarded)
		<-ctx.Done()
	})
	at := g.open()
	<-discarded
	g.want("GET", at, "", http.StatusOK, "4"+fresh+separated+"4"+fresh)
}

func TestTransportsThatAreNotAllowed(t *testing.T) {
	g := newRig(t, Options{Transports: []string{Polling}}, echo)
	if o := g.opening(); len(o.Upgrades) != 0 {
		t.Errorf("may become %v", o.Upgrades)
	}
	g.want("GET", onSocket, "", http.StatusBadRequest, saysTransport)
	g = newRig(t, Options{Transports: []string{WebSocket}}, echo)
	g.want("GET", polling, "", http.StatusBadRequest, saysTransport)
	g.opened()
}

func TestPollingOverHTTP2(t *testing.T) {
	server := New(Options{}, echo)
	web := httptest.NewUnstartedServer(server)
	web.EnableHTTP2 = true
	web.StartTLS()
	defer web.Close()
	defer server.Close()
	g := &rig{T: t, server: server, client: web.Client(), url: web.URL + "/"}
	res, err := g.client.Get(g.url)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.ProtoMajor != 2 {
		t.Fatalf("the client speaks %s", res.Proto)
	}
	id := g.open()
	g.want("POST", id, hello, http.StatusOK, "ok")
	g.want("GET", id, "", http.StatusOK, hello)

	// A poll that is given up ends its connection here too.
	ctx, cancel := context.WithCancel(t.Context())
	gone := g.conn(id)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = g.do(ctx, http.MethodGet, id, "")
	}()
	g.waitPoll(id)
	cancel()
	<-done
	<-gone.ctx.Done()
	if why := context.Cause(gone.ctx); why != errPollGone {
		t.Errorf("ended because %v", why)
	}
}
