package engine

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// A poll that waits is answered when the WebSocket is tried, so that the client
// can change over, and messages during the upgrade still come by polls.
func TestProbeAnswersThePollThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		id := g.open()
		poll := make(chan string, 1)
		go func() {
			_, body, _ := g.do(t.Context(), http.MethodGet, id, "")
			poll <- body
		}()
		synctest.Wait()
		s := g.socket(socketQuery(id))
		s.write("2probe")
		s.want("3probe")
		if got := <-poll; got != "6" {
			t.Errorf("the poll was answered with %q", got)
		}
		c := g.conn(id)
		if got := c.Transport(); got != Polling {
			t.Errorf("on %s before the change", got)
		}

		// A client that has not seen the answer yet polls again, and is not
		// made to do so without end.
		began := time.Now()
		g.want("GET", id, "", http.StatusOK, "6")
		if got := time.Since(began); got != probePoll {
			t.Errorf("a poll during the trial took %v", got)
		}
		if err := c.Send(t.Context(), Message{Data: []byte("by poll")}); err != nil {
			t.Error(err)
		}
		g.want("GET", id, "", http.StatusOK, "4by poll")

		if err := c.Send(t.Context(), Message{Data: []byte("by socket")}); err != nil {
			t.Error(err)
		}
		s.write("5")
		s.want("4by socket")
		if got := c.Transport(); got != WebSocket {
			t.Errorf("on %s after the change", got)
		}
	})
}

// What ends a trial does not end the connection.
func TestFailedUpgradeGoesOnPolling(t *testing.T) {
	for name, fail := range map[string]func(s *socket){
		"the client leaves":   func(s *socket) { _ = s.conn.CloseNow() },
		"no probe":            func(s *socket) { s.write("4hello") },
		"other probe":         func(s *socket) { s.write("2other") },
		"too long":            func(s *socket) { s.write("2probeprobeprobeprobe") },
		"no upgrade":          func(s *socket) { s.write("2probe"); s.want("3probe"); s.write("4hello") },
		"leaves after probe":  func(s *socket) { s.write("2probe"); s.want("3probe"); _ = s.conn.CloseNow() },
		"nothing":             func(*socket) {},
		"nothing after probe": func(s *socket) { s.write("2probe"); s.want("3probe") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := quick
				o.UpgradeTimeout = 50 * time.Second
				g := newBubbleRig(t, o, echo)
				id := g.open()
				s := g.socket(socketQuery(id))
				// One is on trial at a time. The other is opened and closed, as after the change:
				// the client cannot know whether its "5" has been read.
				g.socket(socketQuery(id)).wantEnd(websocket.StatusNormalClosure)
				fail(s)
				<-time.After(o.UpgradeTimeout)
				synctest.Wait()
				if _, _, err := s.conn.Read(t.Context()); err == nil {
					t.Error("the WebSocket still works")
				}
				g.want("POST", id, hello, http.StatusOK, "ok")
				g.want("GET", id, "", http.StatusOK, hello)

				again := g.socket(socketQuery(id))
				again.write("2probe")
				again.want("3probe")
				again.write("5")
				again.write(hello)
				again.want(hello)
			})
		})
	}
}

// A client that has its pong does not poll any more, so the end waits for it on the
// WebSocket; for one that does poll, the poll tells it.
func TestConnectionEndsDuringUpgrade(t *testing.T) {
	for name, learn := range map[string]func(g *rig, id string, s *socket){
		"the client changes over": func(g *rig, _ string, s *socket) {
			s.write("5")
			s.want("4last words")
		},
		"the client polls": func(g *rig, id string, s *socket) {
			g.want("GET", id, "", http.StatusOK, "4last words"+separated+"1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newBubbleRig(t, quick, wait)
				id := g.open()
				s := g.socket(socketQuery(id))
				s.write("2probe")
				s.want("3probe")
				c := g.conn(id)
				if err := c.Send(t.Context(), Message{Data: []byte("last words")}); err != nil {
					t.Error(err)
				}
				began := time.Now()
				c.Close("test")
				learn(g, id, s)
				if _, _, err := s.conn.Read(t.Context()); err == nil || time.Since(began) > 0 {
					t.Errorf("the WebSocket ended with %v after %v", err, time.Since(began))
				}
			})
		})
	}
}

// The first poll after the probe waits for the client's word that it changes over,
// but not for long: a good client waits for the answer. Others that poll on have to wait.
func TestFirstPollAfterTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		id := g.open()
		s := g.socket(socketQuery(id))
		s.write("2probe")
		s.want("3probe")
		for _, want := range []time.Duration{changeOverWait, probePoll, probePoll} {
			began := time.Now()
			g.want("GET", id, "", http.StatusOK, "6")
			if got := time.Since(began); got != want {
				t.Errorf("a poll took %v, wanted %v", got, want)
			}
		}
	})
}

// A poll that comes after the client's word that it changes over is refused, although
// the word is read later. The poll may come before we know that the pong is written.
func TestPollOvertakesTheChangeOver(t *testing.T) {
	for name, pongFirst := range map[string]bool{"after the pong": true, "while the pong is written": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newBubbleRig(t, quick, echo)
				id := g.open()
				s := g.socket(socketQuery(id))
				s.write("2probe")
				if pongFirst {
					s.want("3probe")
				}
				synctest.Wait()
				refused := make(chan struct{})
				go func() {
					defer close(refused)
					g.want("GET", id, "", http.StatusBadRequest, saysRequest)
				}()
				synctest.Wait()
				if !pongFirst {
					s.want("3probe")
					synctest.Wait()
				}
				s.write("5")
				<-refused
				s.write(hello)
				s.want(hello)
			})
		})
	}
}

// A packet may come between the client's word that it changes over and the end
// of a poll that should not be there: it goes out by the WebSocket.
func TestChangeOverWithAPollThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newBubbleRig(t, quick, wait)
		id := g.open()
		s := g.socket(socketQuery(id))
		s.write("2probe")
		s.want("3probe")
		g.want("GET", id, "", http.StatusOK, "6")
		refused := make(chan struct{})
		go func() {
			defer close(refused)
			g.want("GET", id, "", http.StatusBadRequest, saysRequest)
		}()
		synctest.Wait()
		c := g.conn(id)
		c.mu.Lock()
		c.out.push(packet{kind: kindMessage, data: []byte("new")}) // and the poll has not seen it yet
		c.mu.Unlock()
		s.write("5")
		s.want("4new")
		<-refused
	})
}

// Messages travel both ways while the client changes over, at a moment that
// chance decides: each arrives once and in order.
func TestUpgradeUnderLoad(t *testing.T) {
	const rounds, count = 30, 200
	for round := range rounds {
		seed := rand.New(rand.NewPCG(uint64(round), 1))
		received := make(chan error, 1)
		g := newRig(t, Options{Buffer: 1 + seed.IntN(5000)}, func(ctx context.Context, c *Conn) {
			var both sync.WaitGroup
			both.Go(func() {
				for i := range count {
					if err := c.Send(ctx, numbered(i)); err != nil {
						t.Errorf("Send: %v", err)
						return
					}
				}
			})
			received <- receiveAll(ctx, c, count)
			both.Wait()
			<-ctx.Done()
		})
		u := &upgrader{rig: g, id: g.open(), changeAt: seed.IntN(count), post: seed.IntN(count)}
		if err := u.run(t.Context(), count); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := <-received; err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		g.conn(u.id).Close("all is said")
		if _, _, err := u.changed.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
			t.Fatalf("round %d: ended with %v", round, err)
		}
	}
}

// numbered is the message of that number: every third is bytes.
func numbered(i int) Message {
	return Message{Data: fmt.Appendf(nil, "%d", i), Binary: i%3 == 0}
}

func receiveAll(ctx context.Context, c *Conn, count int) error {
	for i := range count {
		m, err := c.Receive(ctx)
		if err != nil {
			return fmt.Errorf("the server waited for %d: %w", i, err)
		}
		if want := numbered(i); string(m.Data) != string(want.Data) || m.Binary != want.Binary {
			return fmt.Errorf("the server got %q, wanted %d", m.Data, i)
		}
	}
	return nil
}

// upgrader is a client that polls and posts, and changes over on the way.
type upgrader struct {
	*rig
	id       string
	changeAt int // when so many messages have arrived
	post     int // how many are posted before
	got      int
	changed  *socket
}

func (u *upgrader) run(ctx context.Context, count int) error {
	posted := make(chan error, 1)
	go func() { posted <- u.postAll(ctx) }()
	for u.got < u.changeAt {
		if err := u.pollOnce(ctx); err != nil {
			return err
		}
	}
	s := u.socket(socketQuery(u.id))
	u.changed = s
	s.write("2probe")
	pong := make(chan error, 1)
	go func() {
		_, b, err := s.conn.Read(ctx)
		if err == nil && string(b) != "3probe" {
			err = fmt.Errorf("the probe was answered with %q", b)
		}
		pong <- err
	}()
	for paused := false; !paused; {
		// The poll that is under way comes to its end before we look.
		if err := u.pollOnce(ctx); err != nil {
			return err
		}
		select {
		case err := <-pong:
			if err != nil {
				return err
			}
			paused = true
		default:
		}
	}
	if err := <-posted; err != nil {
		return err
	}
	s.write("5")
	written := make(chan struct{})
	go func() {
		defer close(written)
		for i := u.post; i < count; i++ {
			m, typ := numbered(i), websocket.MessageBinary
			if !m.Binary {
				typ, m.Data = websocket.MessageText, append([]byte("4"), m.Data...)
			}
			if err := s.conn.Write(ctx, typ, m.Data); err != nil {
				u.Error(err)
				return
			}
		}
	}()
	defer func() { <-written }()
	for u.got < count {
		typ, b, err := s.conn.Read(ctx)
		if err != nil {
			return err
		}
		p := packet{kind: kindMessage, binary: true, data: b}
		if typ == websocket.MessageText {
			if p, err = parseText(b); err != nil {
				return err
			}
		}
		if err := u.take(p); err != nil {
			return err
		}
	}
	return nil
}

func (u *upgrader) postAll(ctx context.Context) error {
	for i := range u.post {
		m := numbered(i)
		body := "4" + string(m.Data)
		if m.Binary {
			body = "b" + base64.StdEncoding.EncodeToString(m.Data)
		}
		if status, answer, err := u.do(ctx, http.MethodPost, u.id, body); err != nil || status != http.StatusOK {
			return fmt.Errorf("post %d: %d %q %w", i, status, answer, err)
		}
	}
	return nil
}

func (u *upgrader) pollOnce(ctx context.Context) error {
	status, body, err := u.do(ctx, http.MethodGet, u.id, "")
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("poll: %d %q %w", status, body, err)
	}
	for p, err := range parsePayload([]byte(body)) {
		if err == nil && p.kind == kindMessage {
			err = u.take(p)
		} else if err == nil && p.kind != kindNoop {
			err = errors.New("poll: got " + body)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (u *upgrader) take(p packet) error {
	if want := numbered(u.got); string(p.data) != string(want.Data) || p.binary != want.Binary {
		return fmt.Errorf("the client got %q, wanted %d", p.data, u.got)
	}
	u.got++
	return nil
}
