package engine

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// quick are intervals that are easy to count with. Time is not real here.
var quick = Options{PingInterval: 300 * time.Second, PingTimeout: 200 * time.Second}

// ending serves nothing and tells why it ended.
func ending() (func(context.Context, *Conn), <-chan error) {
	why := make(chan error, 1)
	return func(ctx context.Context, _ *Conn) {
		<-ctx.Done()
		why <- context.Cause(ctx)
	}, why
}

func TestHeartbeatOnPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		id, began := g.open(), time.Now()
		for i := range 3 {
			g.want("GET", id, "", http.StatusOK, "2")
			if got := time.Since(began); got != time.Duration(i+1)*quick.PingInterval {
				t.Errorf("ping %d came after %v", i, got)
			}
			g.want("POST", id, "3", http.StatusOK, "ok")
		}
	})
}

func TestHeartbeatOnWebSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, began := newBubbleRig(t, quick, wait).opened(), time.Now()
		for i := range 3 {
			s.want("2")
			if got := time.Since(began); got != time.Duration(i+1)*quick.PingInterval {
				t.Errorf("ping %d came after %v", i, got)
			}
			s.write("3")
		}
	})
}

func TestSilentPollingEnds(t *testing.T) {
	for name, polls := range map[string]int{"never polls": 0, "takes the ping": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				serve, why := ending()
				g := newBubbleRig(t, quick, serve)
				id, began := g.open(), time.Now()
				for range polls {
					g.want("GET", id, "", http.StatusOK, "2")
				}
				if got := <-why; got != errSilent || !errors.Is(got, ErrClosed) {
					t.Errorf("ended because %v", got)
				}
				if got := time.Since(began); got != quick.PingInterval+quick.PingTimeout {
					t.Errorf("ended after %v", got)
				}
				g.want("GET", id, "", http.StatusBadRequest, saysSession)
			})
		})
	}
}

// A poll that comes too late ends the connection even if our timer is later still.
func TestLatePollEndsBeforeALateTimer(t *testing.T) {
	for name, late := range map[string]struct {
		after, poll time.Duration // when the timer stops, and when the client polls
		posts       bool          // the client gave a sign of life in that time
		status      int
		answer      string
	}{
		"no ping":          {0, quick.PingInterval + quick.PingTimeout, false, http.StatusBadRequest, saysRequest},
		"no end":           {quick.PingInterval, quick.PingInterval + quick.PingTimeout, false, http.StatusBadRequest, saysRequest},
		"poll just before": {quick.PingInterval, quick.PingInterval + quick.PingTimeout - 1, false, http.StatusOK, "2"},
		"not silent":       {quick.PingInterval, quick.PingInterval + quick.PingTimeout, true, http.StatusOK, "2"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newBubbleRig(t, quick, wait)
				id := g.open()
				c := g.conn(id)
				<-time.After(late.after)
				synctest.Wait()
				c.timer.Stop()
				if late.posts {
					<-time.After(time.Second)
					late.after += time.Second
					g.want("POST", id, "6", http.StatusOK, "ok")
				}
				<-time.After(late.poll - late.after)
				g.want("GET", id, "", late.status, late.answer)
				if over := c.ctx.Err() != nil; over != (late.status != http.StatusOK) {
					t.Errorf("it has ended: %v", over)
				}
			})
		})
	}
}

func TestSilentPollGetsTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		id := g.open()
		g.want("GET", id, "", http.StatusOK, "2")
		g.want("GET", id, "", http.StatusOK, "1")
	})
}

func TestSilentWebSocketEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		serve, why := ending()
		s, began := newBubbleRig(t, quick, serve).opened(), time.Now()
		s.want("2")
		if _, _, err := s.conn.Read(t.Context()); err == nil {
			t.Error("something came after the ping")
		}
		if got := <-why; got != errSilent {
			t.Errorf("ended because %v", got)
		}
		if got := time.Since(began); got != quick.PingInterval+quick.PingTimeout {
			t.Errorf("ended after %v", got)
		}
	})
}

// A client that sends a long message slowly cannot answer a ping before its
// end, and is alive all the same.
func TestSlowMessageIsASignOfLife(t *testing.T) {
	const pieces = 10
	message := "4" + strings.Repeat(piece, pieces)
	pace := quick.PingTimeout * 3 / 4
	t.Run(WebSocket, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newBubbleRig(t, quick, echo).opened()
			w, err := s.conn.Writer(t.Context(), websocket.MessageText)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				slowly(t, w, pieces, pace)
				_ = w.Close()
			}()
			s.want("2")
			s.want(message)
		})
	})
	t.Run(Polling, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			o := quick
			o.MaxPayload = 1 << 30 // and so there is time
			g := newBubbleRig(t, o, echo)
			id := g.open()
			body, w := io.Pipe()
			go func() {
				slowly(t, w, pieces, pace)
				_ = w.Close()
			}()
			posted := make(chan struct{})
			go func() {
				defer close(posted)
				res, err := g.client.Post(g.url+"?"+id, "text/plain", body)
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
			}()
			g.want("GET", id, "", http.StatusOK, "2")
			g.want("GET", id, "", http.StatusOK, message)
			<-posted
		})
	})
}

// piece is more than the client's own buffer holds.
var piece = strings.Repeat("x", 8192)

func slowly(t *testing.T, w io.Writer, pieces int, pace time.Duration) {
	kind := "4"
	for range pieces {
		if _, err := io.WriteString(w, kind+piece); err != nil {
			t.Error(err)
			return
		}
		kind = ""
		<-time.After(pace)
	}
}

// A message that is not received holds back what comes after it, a pong too. That
// is not the client's silence.
func TestMessageThatWaitsIsNoSilence(t *testing.T) {
	for _, transport := range []string{Polling, WebSocket} {
		t.Run(transport, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				take := make(chan struct{})
				g := newBubbleRig(t, quick, func(ctx context.Context, c *Conn) {
					<-take
					echo(ctx, c)
				})
				if transport == WebSocket {
					s := g.opened()
					s.write("4a")
					go func() {
						<-time.After(10 * quick.PingInterval)
						close(take)
					}()
					s.want("2")
					s.want("4a")
					return
				}
				id := g.open()
				go func() {
					g.want("GET", id, "", http.StatusOK, "2")
					<-time.After(10 * quick.PingInterval)
					close(take)
				}()
				g.want("POST", id, "4a", http.StatusOK, "ok")
				g.want("GET", id, "", http.StatusOK, "4a")
			})
		})
	}
}

// A ping waits for the message that is being written, but not for those after
// it, and the client has its time from when it was written.
func TestPingOvertakesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		large := make([]byte, 20<<20)
		why := make(chan error, 1)
		s, began := newBubbleRig(t, quick, func(ctx context.Context, c *Conn) {
			<-time.After(quick.PingInterval - time.Second)
			_ = c.Send(ctx, Message{Data: large, Binary: true}, Message{Data: []byte("small")})
			<-ctx.Done()
			why <- context.Cause(ctx)
		}).opened(), time.Now()
		<-time.After(quick.PingInterval + quick.PingTimeout + 50*time.Second)
		if _, b, err := s.conn.Read(t.Context()); err != nil || len(b) != len(large) {
			t.Fatalf("got %d bytes %v", len(b), err)
		}
		s.want("2")
		s.want("4small")
		<-time.After(quick.PingTimeout - time.Second)
		s.write("3")
		answered := time.Since(began)
		s.want("2")
		if got := time.Since(began) - answered; got != quick.PingInterval {
			t.Errorf("the next ping came after %v", got)
		}
		_ = s.conn.CloseNow()
		if got := <-why; got != errLeft {
			t.Errorf("ended because %v", got)
		}
	})
}
