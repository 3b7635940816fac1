package engine

import (
	"bytes"
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/coder/websocket"
)

// The tests in this file are the cases of the protocol's published test suite,
// and those of heartbeat_test.go.

func TestHandshakeOnPolling(t *testing.T) {
	g := newRig(t, Options{MaxPayload: 1_000_000}, echo)
	o := g.opening()
	if len(o.SID) < 20 || len(o.Upgrades) != 1 || o.Upgrades[0] != WebSocket ||
		o.PingInterval != 25_000 || o.PingTimeout != 20_000 || o.MaxPayload != 1_000_000 {
		t.Errorf("got %+v", o)
	}
	if other := g.opening(); other.SID == o.SID {
		t.Error("two connections have one id")
	}
}

func TestHandshakeOnWebSocket(t *testing.T) {
	g := newRig(t, Options{MaxPayload: 1_000_000}, echo)
	o := readOpening(t, g.socket(onSocket).read())
	if len(o.SID) < 20 || o.Upgrades == nil || len(o.Upgrades) != 0 ||
		o.PingInterval != 25_000 || o.PingTimeout != 20_000 || o.MaxPayload != 1_000_000 {
		t.Errorf("got %+v", o)
	}
}

func TestHandshakeRefused(t *testing.T) {
	g := newRig(t, Options{}, echo)
	for name, c := range map[string]struct{ method, query, answer string }{
		"no version":            {"GET", "transport=polling", saysVersion},
		"other version":         {"GET", "EIO=abc&transport=polling", saysVersion},
		"older version":         {"GET", "EIO=3&transport=polling", saysVersion},
		"no transport":          {"GET", "EIO=4", saysTransport},
		"other transport":       {"GET", "EIO=4&transport=abc", saysTransport},
		"POST":                  {"POST", polling, saysMethod},
		"PUT":                   {"PUT", polling, saysMethod},
		"JSONP":                 {"GET", polling + "&j=0", saysRequest},
		"no session":            {"GET", polling + "&sid=abc", saysSession},
		"empty session":         {"GET", polling + "&sid=", saysSession},
		"post to no session":    {"POST", polling + "&sid=abc", saysSession},
		"WebSocket, no upgrade": {"GET", onSocket, saysRequest},
	} {
		t.Run(name, func(t *testing.T) {
			h := *g
			h.T = t
			h.want(c.method, c.query, "", http.StatusBadRequest, c.answer)
		})
	}
	for _, query := range []string{"transport=websocket", "EIO=abc&transport=websocket", "EIO=4", "EIO=4&transport=abc", onSocket + "&sid=abc"} {
		if _, err := g.dial(query); err == nil {
			t.Errorf("a WebSocket was opened by %q", query)
		}
	}
	if n := g.server.Len(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
}

func TestMessagesOnPolling(t *testing.T) {
	g := newRig(t, Options{}, echo)
	for name, body := range map[string]string{
		"text":           hello,
		"several":        "4test1\x1e4test2\x1e4test3",
		"text and bytes": "4hello\x1ebAQIDBA==",
		"empty":          "4\x1eb\x1e4€",
	} {
		t.Run(name, func(t *testing.T) {
			h := *g
			h.T = t
			id := h.open()
			h.want("POST", id, body, http.StatusOK, "ok")
			// Each message is sent back when it is received, so the first poll
			// need not find all of them.
			got := ""
			for len(got) < len(body) {
				status, part, err := h.do(t.Context(), http.MethodGet, id, "")
				if err != nil || status != http.StatusOK {
					t.Fatalf("%d %q %v", status, part, err)
				}
				if got != "" {
					got += separated
				}
				got += part
			}
			if got != body {
				t.Errorf("got %q, wanted %q", got, body)
			}
		})
	}
}

func TestPollingEndsByWrongPackets(t *testing.T) {
	g := newRig(t, Options{}, echo)
	for _, body := range []string{"abc", "", "7", "b!", "4\xff", "4a\x1e", "0{}", "2", "2probe", "5"} {
		id := g.open()
		g.want("POST", id, body, http.StatusBadRequest, saysRequest)
		g.want("GET", id, "", http.StatusBadRequest, saysSession)
	}
}

func TestPollingEndsByTwoPolls(t *testing.T) {
	g := newRig(t, Options{}, echo)
	id := g.open()
	status, body := [2]int{}, [2]string{}
	var polls sync.WaitGroup
	for i := range 2 {
		polls.Go(func() {
			var err error
			if status[i], body[i], err = g.do(t.Context(), http.MethodGet, id, ""); err != nil {
				t.Error(err)
			}
		})
	}
	polls.Wait()
	first := 0
	if status[0] != http.StatusOK {
		first = 1
	}
	if status[first] != http.StatusOK || body[first] != "1" || status[1-first] != http.StatusBadRequest {
		t.Errorf("got %v %q", status, body)
	}
	g.want("GET", id, "", http.StatusBadRequest, saysSession)
}

func TestPollingEndsByCancelledPoll(t *testing.T) {
	over := make(chan error, 1)
	g := newRig(t, Options{}, func(ctx context.Context, _ *Conn) {
		<-ctx.Done()
		over <- context.Cause(ctx)
	})
	id := g.open()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = g.do(ctx, http.MethodGet, id, "")
	}()
	<-g.polls
	cancel()
	<-done
	if why := <-over; why != errPollGone {
		t.Errorf("ended because %v", why)
	}
	g.want("GET", id, "", http.StatusBadRequest, saysSession)
}

func TestMessagesOnWebSocket(t *testing.T) {
	s := newRig(t, Options{}, echo).opened()
	s.write(hello)
	s.want(hello)
	data := []byte{1, 2, 3, 4}
	if err := s.conn.Write(t.Context(), websocket.MessageBinary, data); err != nil {
		t.Fatal(err)
	}
	typ, got, err := s.conn.Read(t.Context())
	if err != nil || typ != websocket.MessageBinary || !bytes.Equal(got, data) {
		t.Errorf("got %v %x %v", typ, got, err)
	}
}

func TestWebSocketEndsByWrongPackets(t *testing.T) {
	g := newRig(t, Options{}, echo)
	for _, text := range []string{"abc", "", "7", "0{}", "2", "5", "bAQ=="} {
		s := g.opened()
		s.write(text)
		s.wantEnd(websocket.StatusProtocolError)
	}
}

func TestClientClosesPolling(t *testing.T) {
	g := newRig(t, Options{}, echo)
	id := g.open()
	poll := make(chan string, 1)
	go func() {
		status, body, err := g.do(t.Context(), http.MethodGet, id, "")
		if err != nil || status != http.StatusOK {
			t.Errorf("%d %v", status, err)
		}
		poll <- body
	}()
	g.waitPoll(id)
	g.want("POST", id, "1", http.StatusOK, "ok")
	if got := <-poll; got != "6" {
		t.Errorf("the poll was answered with %q", got)
	}
	g.want("GET", id, "", http.StatusBadRequest, saysSession)
}

func TestClientClosesWebSocket(t *testing.T) {
	s := newRig(t, Options{}, echo).opened()
	s.write("1")
	s.wantEnd(websocket.StatusNormalClosure)
}

func TestUpgrade(t *testing.T) {
	g := newRig(t, Options{}, echo)
	id := g.open()
	s := g.socket(socketQuery(id))
	s.write("2probe")
	s.want("3probe")
	g.want("GET", id, "", http.StatusOK, "6")
	s.write("5")
	s.write(hello)
	s.want(hello)

	g.want("GET", id, "", http.StatusBadRequest, saysRequest)
	g.want("POST", id, hello, http.StatusBadRequest, saysRequest)
	g.socket(socketQuery(id)).wantEnd(websocket.StatusNormalClosure) // a second one is opened and closed
	s.write("4still here")
	s.want("4still here")
}
