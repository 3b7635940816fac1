package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"deckhand/internal/session"
)

// listServer serves maria's list on loopback.
type listServer struct {
	*shelf
	*httptest.Server
	ended chan error
	stop  context.CancelCauseFunc
}

func serveList(t *testing.T, opts Options) *listServer {
	s := &listServer{shelf: newShelf(t), ended: make(chan error, 10)}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.stop = cancel
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := ServeList(w, r, s.lists, "maria", opts)
		if errors.Is(err, ErrNotStarted) {
			http.Error(w, err.Error(), http.StatusConflict)
		}
		s.ended <- err
	}))
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10) // the kernel must not read for those who do not
		return ctx
	}
	s.Start()
	t.Cleanup(func() {
		cancel(nil)
		s.Close()
		if len(s.lists.owners) != 0 {
			t.Error("a list stays")
		}
	})
	return s
}

func (s *listServer) dial(t *testing.T) *sseClient {
	t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	c := &sseClient{conn: conn, in: bufio.NewReader(conn)}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%+v %v", res, err)
	}
	c.body = bufio.NewReader(res.Body)
	return c
}

func (s *listServer) reads(t *testing.T, c *sseClient, want ...string) {
	t.Helper()
	for _, w := range want {
		m, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if got := said(t, m.Type, m.Data); got != w || m.ID != 0 {
			t.Fatalf("%q with id %d, want %q", got, m.ID, w)
		}
	}
}

func TestServeList(t *testing.T) {
	s := serveList(t, Options{Heartbeat: time.Millisecond})
	s.create("maria", "a")
	c := s.dial(t)
	s.reads(t, c, "snapshot a@1")
	if c.retry != "1000" {
		t.Errorf("retry %q", c.retry)
	}
	s.change("a")
	s.reads(t, c, "conversation a@2")
	s.create("maria", "b")
	s.reads(t, c, "conversation b@1")
	for c.pings < 3 { // nothing happens, and the connection shows that it lives
		line, err := c.body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, ": ping") {
			c.pings++
		}
	}
	s.change("b", session.Deleted{})
	s.reads(t, c, "deleted b")
	gone := errors.New("the key is gone")
	s.stop(gone)
	if err := <-s.ended; !errors.Is(err, gone) {
		t.Errorf("it ended with %v", err)
	}
	if _, err := c.next(); !isEOF(err) {
		t.Errorf("the client's end: %v", err)
	}
}

func TestServeListThatCannotBegin(t *testing.T) {
	s := serveList(t, Options{})
	s.log.broken = true
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if err := <-s.ended; !errors.Is(err, ErrNotStarted) || !errors.Is(err, errStore) || res.StatusCode != http.StatusConflict {
		t.Errorf("%d %v", res.StatusCode, err)
	}
	s.log.broken = false
	if res, err = s.Client().Head(s.URL); err != nil || res.StatusCode != http.StatusOK || <-s.ended != nil {
		t.Errorf("a look at the header: %+v %v", res, err)
	}
	_ = res.Body.Close()
}

// A row that cannot be said ends the stream: the client comes back for a snapshot.
func TestServeListEndsOnABadRow(t *testing.T) {
	s := serveList(t, Options{})
	s.create("maria", "a")
	c := s.dial(t)
	s.reads(t, c, "snapshot a@1")
	s.change("a", session.Titled{Title: "poison"})
	if err := <-s.ended; err == nil || err.Error() != "cannot be said" {
		t.Errorf("%v", err)
	}
}

// Who does not read is dropped.
func TestServeListDropsTheDeaf(t *testing.T) {
	s := serveList(t, Options{Heartbeat: 10 * time.Microsecond, WriteTimeout: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if err := <-s.ended; err == nil {
		t.Error("it ended by itself")
	}
}
