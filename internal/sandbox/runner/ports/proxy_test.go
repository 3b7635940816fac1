package ports

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxy starts one for the box, and gives the way to connect to it.
func (b *box) proxy(patience time.Duration, waiting int) (*Proxy, func() *net.TCPConn) {
	b.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	current := func() string { return "the call" }
	p := newProxy(ProxyConfig{Listener: l, Current: current, Peer: b.newest, Attached: b.next}, patience, waiting)
	b.t.Cleanup(p.Close)
	return p, func() *net.TCPConn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.t.Fatal(err)
		}
		b.t.Cleanup(func() { c.Close() })
		return c.(*net.TCPConn)
	}
}

// echo answers with what it was told and the words that came.
func echo(_ context.Context, id, call string, c net.Conn) {
	defer c.Close()
	b, _ := io.ReadAll(c)
	_, _ = io.WriteString(c, id+", "+call+": "+string(b))
}

// say sends words and their end, and reads the answer to its end.
func say(t testing.TB, c *net.TCPConn, words string) string {
	t.Helper()
	if _, err := io.WriteString(c, words); err != nil {
		t.Error(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Error(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestOutward(t *testing.T) {
	b := newBox(t)
	b.attach(echo)
	_, dial := b.proxy(patience, maxWaiting)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			words := strings.Repeat("words ", 20_000)
			if got := say(t, dial(), words); got != "box, the call: "+words {
				t.Errorf("%d bytes came back", len(got))
			}
		})
	}
	all.Wait()
}

// Connections that are made while the server is restarted get the new one.
func TestOutwardWaitsForServer(t *testing.T) {
	b := newBox(t)
	_, dial := b.proxy(time.Hour, 3)
	answers := make(chan string, 3)
	waiting := func(n int) {
		for range n {
			c := dial()
			go func() { answers <- say(t, c, "hello") }()
		}
	}
	waiting(3)
	s := b.attach(echo)
	for range 3 {
		if got := <-answers; got != "box, the call: hello" {
			t.Error(got)
		}
	}
	// It is gone, and the runner may or may not know.
	s.Close()
	<-b.newest().Done()
	waiting(3)
	b.attach(echo)
	for range 3 {
		if got := <-answers; got != "box, the call: hello" {
			t.Error(got)
		}
	}
}

// refused reads the answer that HTTP clients get.
func refused(t testing.TB, c net.Conn) string {
	t.Helper()
	if _, err := io.WriteString(c, "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n"); err != nil {
		t.Error(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusServiceUnavailable {
		t.Error(r.Status, err)
	}
	return string(body)
}

func TestOutwardPatienceEnds(t *testing.T) {
	_, dial := newBox(t).proxy(time.Millisecond, maxWaiting)
	if got := refused(t, dial()); !strings.Contains(got, errNobody.Error()) {
		t.Error(got)
	}
}

func TestOutwardCrowd(t *testing.T) {
	b := newBox(t)
	p, dial := b.proxy(time.Hour, 2)
	answers := make(chan string, 2)
	for range 2 {
		c := dial()
		go func() { answers <- say(t, c, "hello") }()
	}
	for len(p.waiting) < 2 { // they do not announce that they wait
		<-time.After(time.Millisecond)
	}
	if got := refused(t, dial()); !strings.Contains(got, errCrowd.Error()) {
		t.Error(got)
	}
	b.attach(echo)
	for range 2 {
		if got := <-answers; got != "box, the call: hello" {
			t.Error(got)
		}
	}
	for len(p.waiting) > 0 {
		<-time.After(time.Millisecond)
	}
}

// A server that is lost takes its connections with it, and its program sees that.
func TestOutwardServerLost(t *testing.T) {
	b := newBox(t)
	started := make(chan struct{}, 1)
	s := b.attach(func(ctx context.Context, _, _ string, c net.Conn) {
		defer c.Close()
		started <- struct{}{}
		<-ctx.Done()
	})
	_, dial := b.proxy(patience, maxWaiting)
	c := dial()
	<-started
	s.Close()
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
}

// A program that goes is noticed by a server that sends, and by one that waits.
func TestOutwardProgramGoes(t *testing.T) {
	for name, use := range map[string]func(c net.Conn) error{
		"waiting": func(c net.Conn) error { _, err := c.Read(make([]byte, 1)); return err },
		"sending": func(c net.Conn) error {
			for {
				if _, err := c.Write(make([]byte, 10_000)); err != nil {
					return err
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			started, ended := make(chan struct{}), make(chan error, 1)
			b.attach(func(_ context.Context, _, _ string, c net.Conn) {
				defer c.Close()
				close(started)
				ended <- use(c)
			})
			_, dial := b.proxy(patience, maxWaiting)
			c := dial()
			<-started
			c.Close()
			if err := <-ended; err == nil {
				t.Error("the server did not notice")
			}
		})
	}
}

func TestProxyCloseCutsEverything(t *testing.T) {
	b := newBox(t)
	waits, dialWaits := newBox(t).proxy(time.Hour, maxWaiting)
	started := make(chan struct{}, 1)
	b.attach(func(ctx context.Context, _, _ string, c net.Conn) {
		defer c.Close()
		started <- struct{}{}
		<-ctx.Done() // the program's end has let go
	})
	p, dial := b.proxy(patience, maxWaiting)
	joined, queued := dial(), dialWaits()
	<-started
	for len(waits.waiting) == 0 {
		<-time.After(time.Millisecond)
	}
	p.Close()
	waits.Close()
	if _, err := joined.Read(make([]byte, 1)); err == nil {
		t.Error("the connection goes on")
	}
	if _, err := io.Copy(io.Discard, queued); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Error(err)
	}
}
