package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// A client that does not read makes Send wait when the buffer is full, and
// loses the connection after a while.
func TestSlowClientIsBounded(t *testing.T) {
	const size, limit = 1000, 10_000
	for _, transport := range []string{Polling, WebSocket} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sent, why := 0, make(chan error, 1)
				o := quick
				o.Buffer = limit
				g := newBubbleRig(t, o, func(ctx context.Context, c *Conn) {
					for {
						short, cancel := context.WithTimeout(ctx, time.Second)
						err := c.Send(short, Message{Data: make([]byte, size)})
						cancel()
						if err != nil {
							if held := c.held(); held > limit {
								t.Errorf("%d bytes are held", held)
							}
							if !errors.Is(err, context.DeadlineExceeded) {
								t.Errorf("Send did not wait: %v", err)
							}
							break
						}
						sent++
					}
					why <- c.Send(ctx, Message{Data: make([]byte, size)})
				})
				if transport == Polling {
					g.open()
				} else {
					g.opened()
				}
				if err := <-why; !errors.Is(err, ErrClosed) {
					t.Errorf("a Send that waits ends with %v", err)
				}
				if want := limit / (size + packetCost); sent != want {
					t.Errorf("%d messages were taken, wanted %d", sent, want)
				}
				synctest.Wait()
				if n := g.server.Len(); n != 0 {
					t.Error("the connection is still there")
				}
			})
		})
	}
}

// A client on polling that does not read an answer, or takes too long to write
// a body, loses the connection too.
func TestSlowRequestsEnd(t *testing.T) {
	const request = "%s /?%s HTTP/1.1\r\nHost: engine\r\nContent-Length: %d\r\n\r\n"
	for name, c := range map[string]struct {
		method string
		length int
		why    error
	}{
		"an answer that is not read":     {http.MethodGet, 0, errPollWrite},
		"a body that does not come":      {http.MethodPost, 100, errPostGone},
		"a body that comes byte by byte": {http.MethodPost, 1000, errPostGone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve, why := ending()
				o := quick
				o.MaxPayload = 1 << 20
				g := newBubbleRig(t, o, serve)
				id, began := g.open(), time.Now()
				if err := g.conn(id).Send(t.Context(), Message{Data: make([]byte, 10_000)}); err != nil {
					t.Fatal(err)
				}
				conn, err := g.raw(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := fmt.Fprintf(conn, request, c.method, id, c.length); err != nil {
					t.Fatal(err)
				}
				if c.length == 1000 {
					go func() {
						for {
							if _, err := conn.Write([]byte{'4'}); err != nil {
								return
							}
							select {
							case <-time.After(time.Second):
							case <-t.Context().Done():
								return
							}
						}
					}()
				}
				if got := <-why; got != c.why {
					t.Errorf("ended because %v", got)
				}
				if got := time.Since(began); got > g.server.o.patience(o.MaxPayload) {
					t.Errorf("ended after %v", got)
				}
			})
		})
	}
}

func TestPollingEndsByTwoPosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve, why := ending()
		g := newBubbleRig(t, quick, serve)
		id := g.open()
		first := make(chan struct{})
		go func() {
			defer close(first)
			g.want("POST", id, hello, http.StatusOK, "ok")
		}()
		synctest.Wait() // it is not received
		g.want("POST", id, hello, http.StatusBadRequest, saysRequest)
		if got := <-why; got != errTwoPosts {
			t.Errorf("ended because %v", got)
		}
		<-first
	})
}

// held is how much waits for the client.
func (c *Conn) held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.held
}

// One Send that is larger than the buffer passes alone, and the small ones that
// come later do not overtake it.
func TestLargeSendPassesAloneAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quick
		o.Buffer = 1000
		g := newBubbleRig(t, o, wait)
		id := g.open()
		c := g.conn(id)
		for _, m := range []string{"first", strings.Repeat("x", 5000), "last"} {
			go func() {
				if err := c.Send(t.Context(), Message{Data: []byte(m)}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if held := c.held(); held != packetCost+len("first") {
			t.Errorf("%d bytes wait", held)
		}
		g.want("GET", id, "", http.StatusOK, "4first")
		g.want("GET", id, "", http.StatusOK, "4"+strings.Repeat("x", 5000))
		g.want("GET", id, "", http.StatusOK, "4last")
	})
}

func TestSendTravelsTogether(t *testing.T) {
	const senders, rounds = 8, 50
	g := newRig(t, Options{Buffer: 2000}, func(ctx context.Context, c *Conn) {
		done := make(chan struct{})
		for i := range senders {
			go func() {
				defer func() { done <- struct{}{} }()
				for n := range rounds {
					head := fmt.Appendf(nil, "%d %d", i, n)
					if err := c.Send(ctx, Message{Data: head}, Message{Data: head, Binary: true}, Message{Data: head}); err != nil {
						t.Error(err)
						return
					}
				}
			}()
		}
		for range senders {
			<-done
		}
	})
	s := g.opened()
	next := [senders]int{}
	for range senders * rounds {
		head := strings.TrimPrefix(s.read(), "4")
		typ, bin, err := s.conn.Read(t.Context())
		if err != nil || typ != websocket.MessageBinary || string(bin) != head {
			t.Fatalf("after %q came %q %v", head, bin, err)
		}
		s.want("4" + head)
		var i, n int
		if _, err := fmt.Sscan(head, &i, &n); err != nil || n != next[i] {
			t.Fatalf("got %q, wanted %d of %d", head, next[i], i)
		}
		next[i]++
	}
	s.wantEnd(websocket.StatusNormalClosure)
}

// A polling body is no larger than what a client may send, unless one message
// is.
func TestPollIsBounded(t *testing.T) {
	g := newRig(t, Options{MaxPayload: 100}, wait)
	id := g.open()
	c := g.conn(id)
	long, bin := bytes.Repeat([]byte{'x'}, 200), make([]byte, 60)
	short := bytes.Repeat([]byte{'y'}, 40)
	for _, m := range []Message{{Data: short}, {Data: short}, {Data: short}, {Data: long}, {Data: bin, Binary: true}, {Data: short}} {
		if err := c.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	y, x := "4"+string(short), "4"+string(long)
	g.want("GET", id, "", http.StatusOK, y+separated+y)
	g.want("GET", id, "", http.StatusOK, y)
	g.want("GET", id, "", http.StatusOK, x)
	g.want("GET", id, "", http.StatusOK, "b"+strings.Repeat("A", 80))
	g.want("GET", id, "", http.StatusOK, y)
}

func TestClientMaySendNoMore(t *testing.T) {
	const limit = 100_000
	serve, why := ending()
	g := newRig(t, Options{MaxPayload: limit}, func(ctx context.Context, c *Conn) {
		if m, err := c.Receive(ctx); err != nil || len(m.Data) != limit-1 {
			t.Errorf("got %d bytes %v", len(m.Data), err)
		}
		serve(ctx, c)
	})
	fits := "4" + strings.Repeat("x", limit-1)

	id := g.open()
	g.want("POST", id, fits, http.StatusOK, "ok")
	g.want("POST", id, fits+"x", http.StatusRequestEntityTooLarge, `{"code":3,"message":"Payload too large"}`)
	if err := <-why; err != errTooLarge {
		t.Errorf("ended because %v", err)
	}
	g.want("GET", id, "", http.StatusBadRequest, saysSession)

	s := g.opened()
	s.write(fits)
	s.write(fits + "xx")
	s.wantEnd(websocket.StatusMessageTooBig)
	if err := <-why; err != errTooLarge {
		t.Errorf("ended because %v", err)
	}
}

func TestTextThatWouldBeTwoPackets(t *testing.T) {
	g := newRig(t, Options{}, wait)
	c := g.conn(g.open())
	if err := c.Send(t.Context(), Message{Data: []byte("a\x1e4b")}); err != errSeparator {
		t.Errorf("got %v", err)
	}
	if err := c.Send(t.Context(), Message{Data: []byte("a\x1e4b"), Binary: true}); err != nil {
		t.Error(err)
	}
}
