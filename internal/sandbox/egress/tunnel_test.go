package egress_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/egress"
	"deckhand/internal/sandbox/rpc"
)

// listener serves single connections by hand, under a name.
func listener(t testing.TB, name string, serve func(*net.TCPConn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn.(*net.TCPConn))
			}()
		}
	}()
	t.Cleanup(func() { ln.Close(); <-ended })
	dns.set(name, "127.0.0.1")
	return fmt.Sprintf("%s:%d", name, ln.Addr().(*net.TCPAddr).Port)
}

func TestTunnelTLS(t *testing.T) {
	o := newTLSOrigin(t, hello)
	url := o.at("secure.test")
	w := newWorld(t, list(fmt.Sprint("*.test:", o.port)), near(url))
	for range 2 {
		if status, body := w.get(url); status != 200 || body != "hello" {
			t.Errorf("got %d, %q", status, body)
		}
		<-w.ended
		e := w.last() // the client may end it with a reset, so there may be a reason
		if e.Method != "CONNECT" || e.Host != "secure.test" || e.Verdict != egress.Allowed || e.Sent < 100 || e.Received < 100 || e.Port != o.port {
			t.Errorf("got %+v", e)
		}
	}
}

// Bytes are counted exactly, and each side may stop sending before the other.
func TestTunnelHalfClose(t *testing.T) {
	sent := make([]byte, 3<<20)
	rand.Read(sent)
	got := make(chan []byte, 1)
	addr := listener(t, "half.test", func(c *net.TCPConn) {
		body, _ := io.ReadAll(c) // ends although the other direction is open
		got <- body
		c.Write([]byte("thanks, "))
		c.Write(body[:1000])
	})
	w := newWorld(t, open, []string{addr})
	c := w.connect(addr)
	c.send(string(sent))
	c.CloseWrite()
	back, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(back, append([]byte("thanks, "), sent[:1000]...)) {
		t.Errorf("got %d bytes back, %v", len(back), err)
	}
	if !bytes.Equal(<-got, sent) {
		t.Error("the host got something else")
	}
	<-w.ended
	e := w.last()
	w.recorded(e, "CONNECT", "half.test", egress.Allowed, "")
	if e.Sent != int64(len(sent)) || e.Received != 1008 {
		t.Errorf("%d sent and %d received are recorded, it was %d and 1008", e.Sent, e.Received, len(sent))
	}
}

// The host stops sending first, and still hears.
func TestTunnelHostHalfClose(t *testing.T) {
	got := make(chan string, 1)
	addr := listener(t, "half.test", func(c *net.TCPConn) {
		io.WriteString(c, "banner")
		c.CloseWrite()
		body, _ := io.ReadAll(c)
		got <- string(body)
	})
	w := newWorld(t, open, []string{addr})
	c := w.connect(addr)
	if back, err := io.ReadAll(c); err != nil || string(back) != "banner" {
		t.Errorf("got %q, %v", back, err)
	}
	c.send("late words")
	c.CloseWrite()
	if g := <-got; g != "late words" {
		t.Errorf("the host got %q", g)
	}
	<-w.ended
	w.recorded(w.last(), "CONNECT", "half.test", egress.Allowed, "")
}

// What follows a CONNECT at once, before it is answered, is not lost.
func TestTunnelEagerClient(t *testing.T) {
	addr := listener(t, "eager.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, open, []string{addr})
	c := w.dial().send("CONNECT " + addr + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\nearly")
	c.answer("CONNECT")
	c.send(" late")
	c.CloseWrite()
	if back, err := io.ReadAll(c); err != nil || string(back) != "early late" {
		t.Errorf("got %q, %v", back, err)
	}
}

func TestTunnelRefusals(t *testing.T) {
	o := newTLSOrigin(t, hello)
	dead := newTLSOrigin(t, hello)
	url, deadURL := o.at("refused.test"), dead.at("dead.test")
	dead.Close()
	w := newWorld(t, open, near(url, deadURL))
	for _, test := range []struct {
		policy egress.Policy
		to     string
		status int
		text   string
	}{
		{egress.Policy{Mode: egress.Off}, near(url)[0], 403, `deckhand: egress policy "off" allows nothing`},
		{list("example.org"), "example.com:443", 403, `deckhand: egress policy "allowlist" does not allow example.com;`},
		{open, "mail.test:25", 403, "port 25"},
		{open, near(deadURL)[0], 502, "refuses connections"},
		{open, "unknown.test:443", 502, "host not found: unknown.test"},
		{open, "[::1]:443", 403, "[::1]:443 has a loopback address"},
		{open, "refused.test", 400, "host and a port"},
		{open, "refused.test:0", 400, "host and a port"},
		{open, "127.1:443", 400, "in full"},
		{open, "/path", 400, "host and a port"},
	} {
		w.policy.Store(&test.policy)
		c := w.dial().send("CONNECT " + test.to + " HTTP/1.1\r\nHost: x\r\n\r\n")
		resp, body := c.answer("CONNECT")
		if resp.StatusCode != test.status || !strings.Contains(body, test.text) || !strings.Contains(resp.Status, test.text) {
			t.Errorf("%v %s: got %q, %q", test.policy, test.to, resp.Status, body)
		}
		<-w.ended
		if e := w.last(); e.Verdict == egress.Allowed || e.Method != "CONNECT" || e.Sent+e.Received != 0 {
			t.Errorf("%v %s: recorded as %+v", test.policy, test.to, e)
		}
	}
	if o.conns.Load() != 0 {
		t.Error("a connection was made")
	}
}

// Under an allowlist, TLS must ask for the host of the tunnel.
func TestSNI(t *testing.T) {
	o := newTLSOrigin(t, hello)
	url := o.at("front.test")
	addr := near(url)[0]
	ip := fmt.Sprint("127.0.0.1:", o.port)
	only := list(addr, ip)
	w := newWorld(t, only, []string{addr, ip})
	for _, test := range []struct {
		policy   egress.Policy
		to, name string
		want     bool
	}{
		{only, addr, "front.test", true},
		{only, addr, "FRONT.test", true},
		{only, addr, "", false}, // says nothing, so the host could be any
		{only, addr, "behind.test", false},
		{only, addr, "x.front.test", false},
		{only, ip, "", true},
		{only, ip, "front.test", false},
		{open, addr, "behind.test", true},
	} {
		w.policy.Store(&test.policy)
		c := w.connect(test.to)
		client := tls.Client(c, &tls.Config{ServerName: test.name, InsecureSkipVerify: true})
		err := client.Handshake()
		if (err == nil) != test.want {
			t.Errorf("%v: %s asks for %q: got error %v", test.policy, test.to, test.name, err)
		}
		if !test.want {
			has(t, fmt.Sprint(err), "unrecognized name")
		}
		c.Close()
		<-w.ended
		e := w.last()
		if (e.Verdict == egress.Allowed) != test.want {
			t.Errorf("recorded as %+v", e)
		}
		if !test.want {
			want := fmt.Sprintf("asks for another host, %q", test.name)
			if test.name == "" {
				want = "does not say which host it is for"
			}
			has(t, e.Reason, want)
			if e.Sent != 0 {
				t.Errorf("%d bytes were sent", e.Sent)
			}
		}
	}
}

// Under an allowlist, requests inside a tunnel are seen one by one, whatever the
// port: only those for the tunnel's host arrive.
func TestPlainRequestsInATunnel(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Host+r.URL.Path)
		mu.Unlock()
		echo(w, r)
	})
	addr := near(o.at("front.test"))[0]
	o.at("behind.test")
	w := newWorld(t, list(addr), []string{addr})
	c := w.connect(addr)
	c.send("POST /one HTTP/1.1\r\nHost: " + addr + "\r\nContent-Length: 4\r\n\r\nbody")
	if resp, body := c.answer("POST"); resp.StatusCode != 200 || body != "body" {
		t.Errorf("got %d, %q", resp.StatusCode, body)
	}
	c.send("GET /two HTTP/1.1\r\nHost: FRONT.test\r\n\r\n")
	if resp, _ := c.answer("GET"); resp.StatusCode != 200 {
		t.Errorf("got %d", resp.StatusCode)
	}
	c.send("GET /three HTTP/1.1\r\nHost: behind.test\r\n\r\n")
	if resp, body := c.answer("GET"); resp.StatusCode != 403 || !strings.Contains(body, `asks for another host, "behind.test"`) {
		t.Errorf("got %d, %q", resp.StatusCode, body)
	}
	c.Close()
	<-w.ended
	for _, first := range []string{
		"GET http://behind.test/ HTTP/1.1\r\nHost: " + addr + "\r\n\r\n", "CONNECT behind.test:80 HTTP/1.1\r\nHost: " + addr + "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: front.test:1\r\n\r\n", "GET / HTTP/1.1\r\nHost: " + addr + "\r\nHost: behind.test\r\n\r\n", "GET / HTTP/1.0\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		c := w.connect(addr).send(first)
		resp, _ := c.answer("GET")
		if resp.StatusCode < 400 {
			t.Errorf("%q: got %d", first, resp.StatusCode)
		}
		c.Close()
		<-w.ended
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, " "); got != addr+"/one "+addr+"/two" {
		t.Errorf("the host saw %s", got)
	}
	var said []string
	for _, e := range w.entries() {
		said = append(said, fmt.Sprint(e.Method, " ", e.Host, " ", e.Verdict))
	}
	if all := strings.Join(said, ","); !strings.Contains(all, "POST front.test allowed") || !strings.Contains(all, "GET front.test refused") {
		t.Errorf("recorded: %s", all)
	}
}

// A greeting in pieces, one that cannot be read, and what is no greeting.
func TestTunnelBeginnings(t *testing.T) {
	addr := listener(t, "begin.test", func(c *net.TCPConn) { io.Copy(c, c) })
	w := newWorld(t, list(addr), []string{addr})
	c := w.connect(addr)
	go func() { c.send("SSH"); c.send("-2.0-x\r\n"); c.CloseWrite() }()
	if back, err := io.ReadAll(c); err != nil || string(back) != "SSH-2.0-x\r\n" {
		t.Errorf("got %.20q back, %v", back, err)
	}
	<-w.ended
	for _, first := range []string{"S", "SSH-1", "hello\r\n", "\x00\x00\x00\x08", strings.Repeat("x", 100_000), strings.Repeat("X", 100_000)} {
		c := w.connect(addr)
		go func() { io.WriteString(c.TCPConn, first); c.CloseWrite() }()
		if back, _ := io.ReadAll(c); len(back) != 0 {
			t.Errorf("%.20q: got %.20q back", first, back)
		}
		<-w.ended
		if e := w.last(); e.Verdict != egress.Refused || e.Sent != 0 {
			t.Errorf("%.20q: recorded as %+v", first, e)
		}
	}
	for _, first := range []string{"\x16\x03\x01\x00\x00", "\x16\x03\x01\x40\x00\x02", "\x16\x03\x01\x00\x05\x01\x00\x00\x01x"} {
		c := w.connect(addr).send(first)
		if back, _ := io.ReadAll(c); !bytes.HasPrefix(back, []byte{0x15}) {
			t.Errorf("%q: got %q back", first, back)
		}
		<-w.ended
		if e := w.last(); e.Verdict != egress.Refused || e.Sent != 0 || !strings.Contains(e.Reason, "cannot be read") {
			t.Errorf("%q: recorded as %+v", first, e)
		}
	}
	// A greeting that never ends is not collected without bound.
	endless := w.connect(addr)
	go func() {
		record := append([]byte{0x16, 3, 1, 0x10, 0}, make([]byte, 0x1000)...)
		record[5], record[6] = 1, 0
		record[7], record[8] = 0xff, 0xff
		for {
			if _, err := endless.Write(record); err != nil {
				return
			}
		}
	}()
	io.ReadAll(endless)
	<-w.ended
	if e := w.last(); e.Verdict != egress.Refused || e.Sent != 0 {
		t.Errorf("recorded as %+v", e)
	}
	// The end of a client that has begun a greeting, and of one that has not.
	for first, sends := range map[string]egress.Verdict{"\x16\x03": egress.Refused, "": egress.Allowed} {
		c := w.connect(addr).send(first)
		c.CloseWrite()
		io.ReadAll(c)
		<-w.ended
		if e := w.last(); e.Verdict != sends || e.Sent != 0 {
			t.Errorf("%q: recorded as %+v", first, e)
		}
	}
}

// The connections that really come are streams of a runner, whose other end may
// never answer.
func TestRunnerStreams(t *testing.T) {
	o := newOrigin(t, echo)
	base := o.at("stream.test")
	addr := listener(t, "half.test", func(c *net.TCPConn) {
		body, _ := io.ReadAll(c)
		c.Write(append(body, '!'))
	})
	w := newWorld(t, open, append(near(base), addr))
	ours, theirs := net.Pipe()
	server := make(chan *rpc.Peer, 1)
	go func() {
		p, _ := rpc.Dial(ours, rpc.Handlers{Raw: map[string]rpc.RawHandler{"outward": func(ctx context.Context, c *rpc.RawCall) {
			var p sandbox.OutwardParams
			if err := c.Into(&p); err != nil {
				t.Error(err)
			}
			w.Serve(ctx, "box", p.Call, c.Conn)
			w.ended <- struct{}{}
		}}})
		server <- p
	}()
	runner, err := rpc.Accept(theirs, rpc.Handlers{})
	if err != nil {
		t.Fatal(err)
	}
	peer := <-server
	defer peer.Close()
	defer runner.Close()
	dial := func() net.Conn {
		s, err := runner.Open(t.Context(), "outward", 0, sandbox.OutwardParams{Call: "call_1"})
		if err != nil {
			t.Fatal(err)
		}
		return s.Raw()
	}

	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:3128"}), DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil }}
	for range 3 {
		resp, err := (&http.Client{Transport: tr}).Post(base, "", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "body" {
			t.Errorf("got %q", body)
		}
		w.recorded(w.last(), "POST", "stream.test", egress.Allowed, "")
	}
	tr.CloseIdleConnections()
	<-w.ended

	// Closing the stream is the end of what is sent, and the rest still comes.
	c := dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", addr)
	head := make([]byte, len("HTTP/1.1 200 Connection established\r\n\r\n"))
	io.ReadFull(c, head)
	io.WriteString(c, "words")
	c.(interface{ CloseWrite() error }).CloseWrite()
	if back, err := io.ReadAll(c); err != nil || string(back) != "words!" {
		t.Errorf("got %q, %v", back, err)
	}
	<-w.ended
	if e := w.last(); e.Sent != 5 || e.Received != 6 {
		t.Errorf("got %+v", e)
	}

	// A tunnel that is cut ends although the other end says nothing.
	c = dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", addr)
	io.ReadFull(c, head)
	w.policy.Store(&egress.Policy{Mode: egress.Off})
	w.Changed("box")
	<-w.ended
	if back, err := io.ReadAll(c); err != nil || len(back) != 0 {
		t.Errorf("got %q, %v", back, err)
	}
	c.Close()
}
