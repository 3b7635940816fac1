package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"deckhand/internal/session"
)

// A thousand readers of one session get every event once and in order.
func TestThousandReaders(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		readers, events := 1000, 100
		if testing.Short() {
			readers = 100
		}
		s := serve(t, Options{WriteTimeout: time.Minute})
		last := int64(events)
		var joined, done sync.WaitGroup
		gate := make(chan struct{}, 50) // not all handshakes at once
		for i := range readers {
			joined.Add(1)
			done.Go(func() {
				gate <- struct{}{}
				c, err := s.connect(kind, 0)
				<-gate
				joined.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer c.close()
				got, err := collect(c, last)
				if err != nil {
					t.Error(err)
				}
				expect(t, fmt.Sprint("reader ", i), 0, last, got)
			})
			if i%100 == 99 {
				s.note(1) // some come in the middle
			}
		}
		joined.Wait()
		for s.note(1) < last {
		}
		done.Wait()
	})
}

func TestReconnectInTheMiddle(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		at, got := int64(0), []int64(nil)
		last := int64(0)
		for range 20 {
			last = s.note(10)
			for !shown(last) {
				last = s.note(1)
			}
			c := s.dial(kind, at)
			for range 5 { // drops the connection with events on the way
				m, err := c.next()
				if err != nil {
					t.Fatal(err)
				}
				at, got = m.ID, append(got, m.ID)
			}
			c.close()
		}
		c := s.dial(kind, at)
		rest, err := collect(c, last)
		if err != nil {
			t.Fatal(err)
		}
		c.close()
		expect(t, "reader", 0, last, append(got, rest...))
	})
}

// A reader that does not read is dropped; the others get everything.
func TestStalledReaderIsDropped(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{WriteTimeout: 300 * time.Millisecond})
		stalled := s.stall(kind)
		defer func() { _ = stalled.Close() }()
		good := s.dial(kind, 0)
		go func() {
			for range 100 {
				s.big(64 << 10)
			}
			s.note(5)
		}()
		got, err := collect(good, 106)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-s.ended; !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the stalled one ended with %v", err)
		}
		var want []int64
		for n := range int64(106) {
			if n+1 <= 101 || shown(n+1) { // large events are shown whatever their number
				want = append(want, n+1)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the other one got %v", got)
		}
		good.close()
	})
}

// stall opens a stream and never reads from it.
func (s *server) stall(kind string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	upgrade := ""
	if strings.HasSuffix(kind, "ws") {
		upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	}
	fmt.Fprintf(conn, "GET /%s?stalled HTTP/1.1\r\nHost: x\r\n%s\r\n", kind, upgrade)
	return conn
}

// While readers do not read, nothing piles up for them.
func TestStalledReadersHoldNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in the short round: writes 100 MB")
	}
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{WriteTimeout: time.Minute})
		var conns []net.Conn
		for range 20 {
			conns = append(conns, s.stall(kind))
		}
		good := s.dial(kind, 0)
		pass := func(n int) {
			for range n {
				last := s.big(64 << 10)
				if _, err := collect(good, last); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass(50)
		before := heap()
		pass(400) // 25 MiB of frames; the log itself keeps as much again in this test
		grown := int64(heap()) - int64(before) - 400*64<<10
		if grown > 4<<20 {
			t.Errorf("the heap grew by %d bytes", grown)
		}
		good.close()
		for _, c := range conns {
			_ = c.Close()
		}
		for range 21 {
			<-s.ended
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestLargeEvents(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		s.big(5 << 20)
		c := s.dial(kind, 0)
		defer c.close()
		if _, err := c.next(); err != nil {
			t.Fatal(err)
		}
		for i := range 3 { // one from the log, two from the tail
			m, err := c.next()
			if err != nil || len(m.Data) < 5<<20 || m.ID != int64(i)+2 {
				t.Fatalf("event %d with %d bytes, %v", m.ID, len(m.Data), err)
			}
			s.big(5 << 20)
		}
	})
}

func TestDeltasOnTheWire(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		s.ask("m")
		s.hub.Delta(theID, "m", "so ")
		c := s.dial(kind, 5)
		defer c.close()
		want := func(typ, data string) {
			t.Helper()
			if m, err := c.next(); err != nil || m.Type != typ || string(m.Data) != data {
				t.Fatalf("%s %s %v, want %s %s", m.Type, m.Data, err, typ, data)
			}
		}
		want("delta", `{"call":"m","offset":0,"text":"so "}`)
		s.hub.Delta(theID, "m", "far")
		want("delta", `{"call":"m","offset":3,"text":"far"}`)
		s.add(session.ModelAnswered{Call: "m", Text: "so far"})
		s.hub.EndDelta(theID, "m")
		want("event", `{"n":6}`)
		s.hub.Delta(theID, "m", "no")
		s.add(session.Titled{Title: "t"})
		want("status", `{"title":true}`)
	})
}

func TestDeletionClosesTheStream(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		c := s.dial(kind, 1)
		defer c.close()
		s.add(session.Deleted{})
		if m, err := c.next(); err != nil || m.Type != "end" || m.ID != 2 {
			t.Fatalf("%+v %v", m, err)
		}
		// A body that is cut off would be an unexpected end of the file.
		if _, err := c.next(); err != io.EOF && websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Errorf("closed with %v", err)
		}
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
}

var errRevoked = errors.New("the key was revoked")

func TestContextClosesTheStream(t *testing.T) {
	custom := Options{Close: func(cause error) (int, string) {
		if errors.Is(cause, errRevoked) {
			return 4001, "the key was revoked"
		}
		return 1001, "bye"
	}}
	for _, c := range []struct {
		kind  string
		opts  Options
		cause error
		code  websocket.StatusCode
	}{
		{"sse", custom, errRevoked, 0},
		{"detached-sse", custom, errRevoked, 0},
		{"ws", custom, errRevoked, 4001},
		{"detached-ws", custom, errRevoked, 4001},
		{"ws", custom, http.ErrServerClosed, websocket.StatusGoingAway},
		{"ws", Options{}, http.ErrServerClosed, websocket.StatusGoingAway},
	} {
		s := serve(t, c.opts)
		var readers []client
		for range 10 {
			readers = append(readers, s.dial(c.kind, 1))
		}
		s.stop(c.cause)
		for _, r := range readers {
			if _, err := r.next(); !isEOF(err) && websocket.CloseStatus(err) != c.code {
				t.Errorf("%s closed with %v, want %d", c.kind, err, c.code)
			}
			if err := <-s.ended; !errors.Is(err, c.cause) {
				t.Errorf("ended with %v", err)
			}
			r.close()
		}
	}
}

// A reader that leaves is noticed without an event to send.
func TestClientLeaves(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		s := serve(t, Options{})
		c := s.dial(kind, 1)
		c.close()
		if err := <-s.ended; err == nil {
			t.Error("ended without a reason")
		}
	})
}

// There is nothing to say to a follower's WebSocket.
func TestTalkativeClient(t *testing.T) {
	s := serve(t, Options{})
	c := s.dial("ws", 1).(*wsClient)
	defer c.close()
	if err := c.conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), 100)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.next(); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Error(err)
	}
	if err := <-s.ended; !errors.Is(err, errSpoke) {
		t.Error(err)
	}
}

func TestHeartbeatsOnTheWire(t *testing.T) {
	s := serve(t, Options{Heartbeat: 20 * time.Millisecond})
	c := s.dial("sse", 1).(*sseClient)
	defer c.close()
	ponged := make(chan struct{}, 100)
	conn, _, err := websocket.Dial(t.Context(), s.URL+"/ws?after=1", &websocket.DialOptions{
		OnPingReceived: func(context.Context, []byte) bool { ponged <- struct{}{}; return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	conn.CloseRead(t.Context())
	for range 3 {
		<-ponged
	}
	for c.pings < 3 {
		if _, err := c.body.Peek(1); err != nil {
			t.Fatal(err)
		}
		line, err := c.body.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if line == ": ping\n" {
			c.pings++
		}
	}
}

// A WebSocket whose peer vanished without a word is found by the missing pong.
func TestMissingPong(t *testing.T) {
	s := serve(t, Options{Heartbeat: 20 * time.Millisecond, WriteTimeout: 50 * time.Millisecond})
	conn := s.stall("ws")
	defer func() { _ = conn.Close() }()
	if err := <-s.ended; !errors.Is(err, errWrite) {
		t.Error(err)
	}
}

func TestStreamThatCannotBegin(t *testing.T) {
	s := serve(t, Options{})
	for _, path := range []string{"/sse", "/ws"} {
		for query, status := range map[string]int{"?after=99": http.StatusConflict, "?after=x": http.StatusBadRequest} {
			res, err := http.Get(s.URL + path + query)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != status {
				t.Errorf("%s%s: %s", path, query, res.Status)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestPosition(t *testing.T) {
	for _, c := range []struct {
		header, query string
		want          int64
		ok            bool
	}{
		{"", "", 0, true}, {"7", "", 7, true}, {"", "?after=8", 8, true}, {"", "?last_event_id=9", 9, true},
		{"7", "?after=8&last_event_id=9", 7, true}, {"", "?after=8&last_event_id=9", 8, true},
		{"", "?after=-1", 0, true}, {"", "?after=-2", 0, false}, {"x", "?after=8", 0, false},
		{"", "?after=1e3", 0, false}, {"", "?after=99999999999999999999", 0, false},
	} {
		r := httptest.NewRequest("GET", "/"+c.query, nil)
		if c.header != "" {
			r.Header.Set("Last-Event-ID", c.header)
		}
		if got, err := Position(r); got != c.want || (err == nil) != c.ok {
			t.Errorf("%+v: %d, %v", c, got, err)
		}
	}
}

// The format itself, byte for byte, with time that is not real.
func TestStreamFormat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(session.Titled{Title: "t"})
		rec := httptest.NewRecorder()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- ServeSSE(rec, httptest.NewRequest("GET", "/", nil).WithContext(ctx), w.hub, theID, 0, Options{})
		}()
		time.Sleep(16 * time.Second)
		w.add(session.Deleted{})
		if err := <-done; err != nil {
			t.Error(err)
		}
		cancel()
		want := "retry: 1000\n\nid: 1\ndata: {\"n\":1}\n\nid: 2\nevent: status\ndata: {\"title\":true}\n\n: ping\n\nid: 3\nevent: end\ndata: {}\n\n"
		if got := rec.Body.String(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// A client that leaves while a ping waits for its answer does not hold the stream up.
func TestClientLeavesBeforeItsPong(t *testing.T) {
	s := serve(t, Options{Heartbeat: 5 * time.Millisecond, WriteTimeout: time.Minute})
	s.note(1)
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
	const ping = 0x89
	if _, err := bufio.NewReader(conn).ReadBytes(ping); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-s.ended:
	case <-time.After(4 * time.Minute):
		t.Error("the stream waits for a client that left")
	}
}
