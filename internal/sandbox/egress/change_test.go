package egress_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"deckhand/internal/sandbox/egress"
)

func TestChangeCuts(t *testing.T) {
	kept := listener(t, "kept.test", func(c *net.TCPConn) { io.Copy(c, c) })
	cut := listener(t, "cut.test", func(c *net.TCPConn) { io.Copy(c, c) })
	begun := make(chan struct{})
	download := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "beginning")
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	waiting := make(chan struct{})
	slow := newOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
	})
	downloadURL, slowURL := download.at("download.test"), slow.at("slow.test")
	w := newWorld(t, open, append(near(downloadURL, slowURL), kept, cut))
	a, b := w.connect(kept), w.connect(cut)
	ping := func(c *wire) error {
		if _, err := io.WriteString(c.TCPConn, "ping"); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 4))
		return err
	}
	if err := errors.Join(ping(a), ping(b)); err != nil {
		t.Fatal(err)
	}
	c := w.dial().send("GET " + downloadURL + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
	<-begun
	downloading, err := http.ReadResponse(c.in, nil)
	if err == nil {
		_, err = io.ReadFull(downloading.Body, make([]byte, len("beginning")))
	}
	if err != nil {
		t.Fatal(err)
	}
	d := w.dial().send("GET " + slowURL + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
	<-waiting

	only := list(kept)
	w.policy.Store(&only)
	w.Changed("another box")
	if err := ping(b); err != nil {
		t.Errorf("it was cut when another sandbox's policy changed: %v", err)
	}
	w.Changed("box")
	<-w.ended
	<-w.ended
	if err := ping(b); err == nil {
		t.Error("the tunnel still works")
	}
	if err := ping(a); err != nil {
		t.Errorf("the allowed tunnel was cut too: %v", err)
	}
	if body, err := io.ReadAll(downloading.Body); err == nil {
		t.Errorf("the download ended as if it were whole: %q", body)
	}
	// A client without an answer yet is told why.
	resp, body := d.answer("GET")
	if resp.StatusCode != 403 {
		t.Errorf("got %s", resp.Status)
	}
	has(t, body, "deckhand: the egress policy has changed: ")
	refused := map[string]egress.Entry{}
	for _, e := range w.entries() {
		if e.Verdict == egress.Refused && strings.Contains(e.Reason, "policy has changed") {
			refused[e.Host] = e
		}
	}
	if len(refused) != 3 || refused["cut.test"].Sent != 8 || refused["cut.test"].Received != 8 || refused["download.test"].Received == 0 {
		t.Errorf("recorded: %+v", refused)
	}
	if resp, body := w.dial().send("CONNECT " + cut + " HTTP/1.1\r\nHost: x\r\n\r\n").answer("CONNECT"); resp.StatusCode != 403 {
		t.Errorf("got %s, %s", resp.Status, body)
	}
}

// A WebSocket is cut as well, and so is everything when the policy cannot be read.
func TestUnreadablePolicyCuts(t *testing.T) {
	addr := listener(t, "cut.test", func(c *net.TCPConn) {
		buf := make([]byte, 4096)
		c.Read(buf)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst words")
		io.Copy(io.Discard, c)
	})
	var broken bool
	w := newWorld(t, open, []string{addr}, func(c *egress.Config) {
		c.Policy = func(context.Context, string) (egress.Policy, error) {
			if broken {
				return open, errors.New("the database is away")
			}
			return open, nil
		}
	})
	c := w.dial().send("GET http://" + addr + "/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatal(resp, err)
	}
	first := make([]byte, len("first words"))
	if _, err := io.ReadFull(c, first); err != nil || string(first) != "first words" {
		t.Fatalf("got %q, %v", first, err)
	}
	broken = true
	w.Changed("box")
	io.ReadAll(c)
	<-w.ended
	w.recorded(w.last(), "GET", "cut.test", egress.Refused, "the policy cannot be read")
	status, body := w.get("http://" + addr)
	if status != 503 || strings.Contains(body, "database") {
		t.Errorf("got %d, %q", status, body)
	}
	w.recorded(w.last(), "GET", "cut.test", egress.Failed, "the database is away")
}

// Something that lasts is recorded in parts, whose sum is the whole.
func TestParts(t *testing.T) {
	addr := listener(t, "long.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, open, []string{addr})
	w.SetFirstPart(10 * time.Millisecond)
	c := w.connect(addr)
	c.send("12345")
	io.ReadFull(c, make([]byte, 5))
	var entries []egress.Entry
	for len(entries) == 0 { // it tells of itself while it is open
		entries = w.entries()
	}
	w.recorded(entries[0], "CONNECT", "long.test", egress.Allowed, egress.StillOpen)
	c.send("678")
	c.CloseWrite()
	io.ReadAll(c)
	<-w.ended
	entries = w.entries()
	last := entries[len(entries)-1]
	w.recorded(last, "CONNECT", "long.test", egress.Allowed, "")
	var sent, received int64
	for i, e := range entries {
		sent, received = sent+e.Sent, received+e.Received
		if i > 0 && e.At.Before(entries[i-1].At) {
			t.Errorf("%+v comes after %+v", e, entries[i-1])
		}
	}
	if sent != 8 || received != 8 {
		t.Errorf("%d sent and %d received, want 8 and 8: %+v", sent, received, entries)
	}
}

func TestForget(t *testing.T) {
	o := newOrigin(t, hello)
	url := o.at("forget.test")
	w := newWorld(t, open, near(url))
	w.get(url)
	if err := w.Forget(t.Context(), "box"); err != nil { // also what is not written yet
		t.Fatal(err)
	}
	if got := w.entries(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	w.get(url)
	if got := w.entries(); len(got) != 1 {
		t.Errorf("got %+v", got)
	}
}

// Without a ledger everything works but reading it.
func TestNoLedger(t *testing.T) {
	o := newOrigin(t, hello)
	url := o.at("none.test")
	w := newWorld(t, open, near(url), func(c *egress.Config) { c.Ledger = nil })
	if status, body := w.get(url); status != 200 || body != "hello" {
		t.Errorf("got %d, %q", status, body)
	}
	if got := w.entries(); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	if err := w.Forget(t.Context(), "box"); err != nil {
		t.Error(err)
	}
}

// What comes from the sandbox is cut to a size before it is kept.
func TestRecordedTextsAreBounded(t *testing.T) {
	w := newWorld(t, open, nil)
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() { w.Serve(t.Context(), "box", strings.Repeat("c", 1000)+"\xff", theirs); close(served) }()
	go fmt.Fprintf(ours, "%s http://%s.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", strings.Repeat("M", 1000), strings.Repeat("h", 1000))
	io.ReadAll(ours)
	<-served
	e := w.last()
	if len(e.Method) > 100 || len(e.Call) > 300 || len(e.Host) > 253 || len(e.Reason) > 300 {
		t.Errorf("got %+v", e)
	}
}
