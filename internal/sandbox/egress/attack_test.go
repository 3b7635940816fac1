package egress_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox/egress"
	"deckhand/internal/soak"
)

// Requests that different readers might read differently. Whatever the proxy
// lets through must be one request for the one host that was judged.
func TestSmuggling(t *testing.T) {
	var mu sync.Mutex
	seen := map[string][]string{} // by path
	o := newOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.URL.Path] = append(seen[r.URL.Path], r.Method+" "+r.Host)
		mu.Unlock()
		io.Copy(io.Discard, r.Body)
	})
	addr := near(o.at("good.test"))[0]
	o.at("evil.test")
	evil := strings.Replace(addr, "good", "evil", 1)
	w := newWorld(t, list(addr), []string{addr, evil})
	inner := "GET http://" + evil + "/inner HTTP/1.1\r\nHost: " + addr + "\r\n\r\n"
	const end = "GET http://end.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	post := func(headers ...string) string {
		return "POST http://GOOD/PATH HTTP/1.1\r\nHost: GOOD\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	get := func(target string, headers ...string) string {
		return "GET " + target + " HTTP/1.1\r\n" + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
	const once, never, perhaps = "once", "never", "perhaps" // perhaps: the head, and then the end of the connection
	for i, test := range []struct{ name, want, request string }{
		{"plain", once, get("http://GOOD/PATH", "Host: GOOD")},
		{"other Host", once, get("http://GOOD/PATH", "Host: EVIL")},
		{"Connection: Host", once, get("http://GOOD/PATH", "Host: GOOD", "Connection: Host")},
		{"newline in the path", once, get("http://GOOD/PATH?%0d%0aHost:%20EVIL", "Host: GOOD")},
		{"two Hosts", never, get("http://GOOD/PATH", "Host: GOOD", "Host: EVIL")},
		{"no Host", never, get("http://GOOD/PATH", "X: y")},
		{"Host with a path", never, get("http://GOOD/PATH", "Host: GOOD/x")},
		{"user as host", never, get("http://GOOD@EVIL/PATH", "Host: GOOD")},
		{"backslash", never, get("http://EVIL\\@GOOD/PATH", "Host: GOOD")},
		{"two targets", never, get("http://GOOD/PATH http://EVIL/PATH", "Host: GOOD")},
		{"origin form", never, get("/PATH", "Host: GOOD")},
		{"no authority", never, get("http:///PATH", "Host: GOOD")},
		{"asterisk", never, "OPTIONS * HTTP/1.1\r\nHost: GOOD\r\n\r\n"},
		{"https", never, get("https://GOOD/PATH", "Host: GOOD")},
		{"ftp", never, get("ftp://GOOD/PATH", "Host: GOOD")},
		{"HTTP/2", never, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
		{"NUL in a header", never, get("http://GOOD/PATH", "Host: GOOD", "X: a\x00b")},
		{"CR in a header", never, get("http://GOOD/PATH", "Host: GOOD", "X: a\rHost: EVIL")},
		{"GET with a body", once, get("http://GOOD/PATH", "Host: GOOD", fmt.Sprint("Content-Length: ", len(inner))) + inner},
		{"CL and TE", once, post("Content-Length: 4", "Transfer-Encoding: chunked") + "0\r\n\r\n" + inner},
		{"TE with a tab", once, post("Transfer-Encoding:\tchunked", "Content-Length: 5") + "0\r\n\r\n" + inner},
		{"folded header", once, post("X: y\r\n Transfer-Encoding: chunked", "Content-Length: 0") + inner},
		{"two CLs", never, post("Content-Length: 0", fmt.Sprint("Content-Length: ", len(inner))) + inner},
		{"CL list", never, post("Content-Length: 0, 0") + inner},
		{"CL with a sign", never, post("Content-Length: +0") + inner},
		{"TE twice", never, post("Transfer-Encoding: chunked", "Transfer-Encoding: identity") + "0\r\n\r\n" + inner},
		{"TE unknown", never, post("Transfer-Encoding: xchunked") + "0\r\n\r\n" + inner},
		{"space before the colon", never, post("Transfer-Encoding : chunked", "Content-Length: 5") + "0\r\n\r\n" + inner},
		{"bad chunk size", perhaps, post("Transfer-Encoding: chunked") + "0x0\r\n\r\n" + inner},
		{"chunk too long", perhaps, post("Transfer-Encoding: chunked") + "1\r\nxGET\r\n0\r\n\r\n" + inner},
	} {
		path := fmt.Sprint("/", i)
		c := w.dial()
		request := strings.NewReplacer("GOOD", addr, "EVIL", evil, "/PATH", path).Replace(test.request) + end
		go io.WriteString(c.TCPConn, request)
		answer, _ := io.ReadAll(c)
		c.Close()
		<-w.ended
		mu.Lock()
		got := seen[path]
		mu.Unlock()
		if (test.want == once && len(got) != 1) || (test.want == never && len(got) != 0) {
			t.Errorf("%s: the host saw %q, want it %s; the answer was %.200q", test.name, got, test.want, answer)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for path, list := range seen {
		for _, line := range list {
			if !strings.HasSuffix(line, " "+addr) || path == "/inner" {
				t.Errorf("the host saw %s %s", line, path)
			}
		}
	}
	for _, e := range w.entries() {
		if e.Host != "good.test" && e.Verdict != egress.Refused {
			t.Errorf("recorded: %+v", e)
		}
	}
}

// A head that does not come to its end in time, and one that is too large.
func TestSlowAndLargeHeads(t *testing.T) {
	w := newWorld(t, open, nil, func(c *egress.Config) { c.HeaderTimeout = 50 * time.Millisecond })
	c := w.dial().send("GET http://slow.test/ HTTP/1.1\r\nHost: x\r\nX-")
	io.ReadAll(c)
	<-w.ended
	w.dial() // says nothing at all
	<-w.ended

	w = newWorld(t, open, nil)
	c = w.dial()
	go func() {
		io.WriteString(c.TCPConn, "GET http://large.test/ HTTP/1.1\r\nHost: x\r\n")
		for {
			if _, err := io.WriteString(c.TCPConn, "X: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %v, %v", resp, err)
	}
	c.Close()
	<-w.ended
}

func TestKeepAliveEnds(t *testing.T) {
	o := newOrigin(t, hello)
	url := o.at("alive.test")
	w := newWorld(t, open, near(url), func(c *egress.Config) { c.KeepAlive = 50 * time.Millisecond })
	c := w.dial().send("GET " + url + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
	c.answer("GET")
	if rest, err := io.ReadAll(c); err != nil || len(rest) != 0 {
		t.Errorf("got %q, %v", rest, err)
	}
	<-w.ended
}

// On a tunnel and in a request, nothing moves.
func TestIdle(t *testing.T) {
	silence := make(chan struct{})
	addr := listener(t, "idle.test", func(c *net.TCPConn) { <-silence })
	defer close(silence)
	w := newWorld(t, open, []string{addr}, func(c *egress.Config) { c.IdleTimeout = 50 * time.Millisecond })
	c := w.connect(addr)
	io.ReadAll(c)
	<-w.ended
	w.recorded(w.last(), "CONNECT", "idle.test", egress.Failed, "idle")
	status, body := w.get("http://" + addr)
	if status != http.StatusGatewayTimeout {
		t.Errorf("got %d", status)
	}
	has(t, body, "deckhand: nothing came from idle.test")
	w.recorded(w.last(), "GET", "idle.test", egress.Failed, "idle")
}

// A stalled upload, and a download that is not read.
func TestStalledClients(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == "POST" {
			io.ReadAll(r.Body)
			return
		}
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	url := o.at("stall.test")
	w := newWorld(t, open, near(url), func(c *egress.Config) { c.IdleTimeout = 100 * time.Millisecond })
	w.dial().send("POST " + url + "/ HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nbegin")
	w.dial().send("GET " + url + "/ HTTP/1.1\r\nHost: x\r\n\r\n")
	<-w.ended
	<-w.ended
	for _, e := range w.entries() {
		if e.Verdict != egress.Failed || e.Reason != "idle" {
			t.Errorf("got %+v", e)
		}
	}
}

// A sandbox has so many connections and no more, whatever others have.
func TestTooManyConnections(t *testing.T) {
	const limit = 8
	addr := listener(t, "many.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, open, []string{addr}, func(c *egress.Config) { c.MaxConns, c.HeaderTimeout = limit, time.Hour })
	var held []*wire
	for range limit {
		held = append(held, w.connect(addr))
	}
	for _, request := range []string{"CONNECT " + addr, "GET http://" + addr + "/"} {
		c := w.dial().send(request + " HTTP/1.1\r\nHost: x\r\n\r\n")
		method, _, _ := strings.Cut(request, " ")
		resp, body := c.answer(method)
		if resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("got %s", resp.Status)
		}
		has(t, body, "deckhand: this sandbox has reached its limit of 8 open connections")
		<-w.ended
		w.recorded(w.last(), method, "many.test", egress.Refused, "8 open connections")
	}
	// Those that are only told so are not endless either.
	for range limit + 1 {
		w.dial()
	}
	<-w.ended
	// Another sandbox has its own.
	ours, theirs := net.Pipe()
	served := make(chan struct{})
	go func() { w.Serve(t.Context(), "other", "", theirs); close(served) }()
	fmt.Fprintf(ours, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", addr)
	if resp, err := http.ReadResponse(bufio.NewReader(ours), &http.Request{Method: "CONNECT"}); err != nil || resp.StatusCode != 200 {
		t.Errorf("got %v, %v", resp, err)
	}
	ours.Close()
	<-served
	// What is let go of can be had again.
	held[0].Close()
	<-w.ended
}

func TestManyConnections(t *testing.T) {
	n := soak.Times(100, 1000)
	addr := listener(t, "thousand.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, open, []string{addr}, func(c *egress.Config) { c.MaxConns = n })
	var all []*wire
	for range n {
		all = append(all, w.connect(addr))
	}
	for i, c := range all {
		c.send(fmt.Sprint("number ", i))
	}
	for i, c := range all {
		c.CloseWrite()
		if back, err := io.ReadAll(c); err != nil || string(back) != fmt.Sprint("number ", i) {
			t.Fatalf("connection %d: got %q, %v", i, back, err)
		}
		c.Close()
	}
	for range n {
		<-w.ended
	}
	if got := len(w.entries()); got != n {
		t.Errorf("%d tunnels are recorded, want %d", got, n)
	}
}

// Serve ends with its context, and with the proxy.
func TestServeEnds(t *testing.T) {
	addr := listener(t, "end.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, open, []string{addr})
	for _, request := range []string{"", "GET http://" + addr, "CONNECT " + addr + " HTTP/1.1\r\nHost: x\r\n\r\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		ours, theirs := net.Pipe()
		served := make(chan struct{})
		go func() { w.Serve(ctx, "box", "", theirs); close(served) }()
		if request != "" {
			io.WriteString(ours, request)
		}
		cancel()
		<-served
		if _, err := ours.Read(make([]byte, 1)); err == nil {
			if rest, _ := io.ReadAll(ours); len(rest) > 100 {
				t.Errorf("got %q", rest)
			}
		}
	}
	c := w.connect(addr)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	io.ReadAll(c)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	ours, theirs := net.Pipe()
	w.Serve(t.Context(), "box", "", theirs)
	if _, err := ours.Read(make([]byte, 1)); err == nil {
		t.Error("a closed proxy answers")
	}
	if got, _ := w.ledger.Entries(t.Context(), "box", 0, 100); len(got) == 0 || got[0].Reason != "the server was shut down" {
		t.Errorf("recorded: %+v", got)
	}
}
