package egress_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"deckhand/internal/sandbox/egress"
)

func TestPlain(t *testing.T) {
	var seen *http.Request
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
		w.Header().Set("X-Answer", "yes")
		w.Header().Set("Connection", "X-Secret")
		w.Header().Set("X-Secret", "for one hop")
		fmt.Fprint(w, "hello")
	})
	url := o.at("plain.test")
	w := newWorld(t, open, near(url))
	c := w.dial().send("GET " + strings.Replace(url, "plain.test", "user:pw@PLAIN.test.", 1) + "/a%2Fb?q=1;2&%zz HTTP/1.1\r\nHost: elsewhere.test\r\n" +
		"Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 1\r\n" +
		"X-Forwarded-For: 192.0.2.1\r\nAuthorization: Bearer x\r\nAccept-Encoding: br\r\n\r\n")
	resp, body := c.answer("GET")
	if resp.StatusCode != 200 || body != "hello" || resp.Header.Get("X-Answer") != "yes" {
		t.Errorf("got %v, %q", resp, body)
	}
	for _, name := range []string{"Date", "Content-Type", "X-Secret", "Via", "Connection"} {
		if v, ok := resp.Header[name]; ok {
			t.Errorf("the answer has %s: %q", name, v)
		}
	}
	if seen.RequestURI != "/a%2Fb?q=1;2&%zz" || seen.Host != fmt.Sprint("plain.test:", o.port) || seen.Proto != "HTTP/1.1" {
		t.Errorf("the host was asked %s %q of %s", seen.Proto, seen.RequestURI, seen.Host)
	}
	want := http.Header{"X-Forwarded-For": {"192.0.2.1"}, "Authorization": {"Bearer x"}, "Accept-Encoding": {"br"}}
	if fmt.Sprint(seen.Header) != fmt.Sprint(want) {
		t.Errorf("got the headers %v, want %v", seen.Header, want)
	}
	e := w.last()
	w.recorded(e, "GET", "plain.test", egress.Allowed, "")
	if e.Port != o.port || e.Took < 0 {
		t.Errorf("got %+v", e)
	}
	if strings.Contains(fmt.Sprintf("%+v", e), "a%2Fb") || strings.Contains(fmt.Sprintf("%+v", e), "q=1") {
		t.Errorf("the path is recorded: %+v", e)
	}
}

// Both sides keep their connections.
func TestKeepAlive(t *testing.T) {
	o := newOrigin(t, echo)
	url := o.at("keep.test")
	w := newWorld(t, open, near(url))
	c := w.client()
	for i := range 20 {
		reused := false
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(g httptrace.GotConnInfo) { reused = g.Reused }})
		text := strings.Repeat("x", i*1000)
		req, _ := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(text))
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != text {
			t.Fatalf("got %d bytes, %v", len(body), err)
		}
		if reused != (i > 0) {
			t.Errorf("request %d: the connection was used again: %v", i, reused)
		}
	}
	if n := o.conns.Load(); n != 1 {
		t.Errorf("the host saw %d connections", n)
	}
	if n := len(w.entries()); n != 20 {
		t.Errorf("%d requests are recorded, want 20", n)
	}
}

// What is counted is what was on the wire.
func TestCounts(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	answers := []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nuntil the end",
	}
	read := make(chan string, len(answers))
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, 10_000)
		for _, a := range answers {
			var all []byte
			for !bytes.HasSuffix(all, []byte("END")) {
				n, err := conn.Read(buf)
				if err != nil {
					return
				}
				all = append(all, buf[:n]...)
			}
			read <- string(all)
			io.WriteString(conn, a)
		}
	}()
	w := newWorld(t, open, []string{ln.Addr().String()})
	c := w.dial()
	for i, a := range answers {
		c.send(fmt.Sprintf("POST http://%s/ HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nxxxEND", ln.Addr()))
		c.answer("POST")
		e := w.last()
		if want := len(<-read); e.Sent != int64(want) || e.Received != int64(len(a)) {
			t.Errorf("answer %d: %d sent and %d received are recorded, it was %d and %d", i, e.Sent, e.Received, want, len(a))
		}
	}
}

func TestTrailers(t *testing.T) {
	var got http.Header
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		got = r.Trailer
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "back")
	})
	url := o.at("trailer.test")
	w := newWorld(t, open, near(url))
	req, _ := http.NewRequest("POST", url, io.MultiReader(strings.NewReader("body")))
	req.Trailer = http.Header{"X-Sum": {"there"}}
	resp, err := w.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if got.Get("X-Sum") != "there" || resp.Trailer.Get("X-Sum") != "back" {
		t.Errorf("got the trailers %v and %v", got, resp.Trailer)
	}
}

// Each piece arrives before the next is sent, in both directions at once.
func TestStreaming(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		rc.EnableFullDuplex()
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			w.Write(buf[:n])
			rc.Flush()
			if err != nil {
				return
			}
		}
	})
	url := o.at("stream.test")
	w := newWorld(t, open, near(url))
	c := w.dial().send("POST " + url + "/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n0\r\n")
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		one := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, one); err != nil || one[0] != byte('0'+i) {
			t.Fatalf("piece %d: %q, %v", i, one, err)
		}
		c.send(fmt.Sprintf("1\r\n%d\r\n", i+1))
	}
	c.send("0\r\n\r\n")
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "5" {
		t.Errorf("got the rest %q, %v", rest, err)
	}
}

func TestLargeBothWays(t *testing.T) {
	data := make([]byte, 5<<20)
	rand.Read(data)
	o := newOrigin(t, echo)
	url := o.at("large.test")
	w := newWorld(t, open, near(url))
	resp, err := w.client().Post(url, "", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d other bytes, %v", len(got), err)
	}
}

// A host that wants to see the head first is asked first.
func TestContinue(t *testing.T) {
	for _, want := range []bool{true, false} {
		o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
			if !want {
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				return
			}
			echo(w, r)
		})
		url := o.at("continue.test")
		w := newWorld(t, open, near(url))
		c := w.dial().send("PUT " + url + "/ HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
		resp, err := http.ReadResponse(c.in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !want {
			if resp.StatusCode != 413 {
				t.Errorf("got %s", resp.Status)
			}
			continue
		}
		if resp.StatusCode != 100 {
			t.Fatalf("got %s", resp.Status)
		}
		c.send("body")
		resp, body := c.answer("PUT")
		for resp.StatusCode == 100 { // the host's own and ours may both come
			resp, body = c.answer("PUT")
		}
		if resp.StatusCode != 200 || body != "body" {
			t.Errorf("got %s, %q", resp.Status, body)
		}
	}
}

func TestWebSocket(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			c.Write(r.Context(), kind, append([]byte("echo "), data...))
		}
	})
	url := o.at("ws.test")
	w := newWorld(t, open, near(url))
	proxied := w.client()
	// As a client that has no CONNECT for plain connections does: an upgrade in absolute form.
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: proxied})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.Write(t.Context(), websocket.MessageText, []byte("hi")); err != nil {
			t.Fatal(err)
		}
		if _, data, err := c.Read(t.Context()); err != nil || string(data) != "echo hi" {
			t.Fatalf("got %q, %v", data, err)
		}
	}
	c.Close(websocket.StatusNormalClosure, "")
	<-w.ended
	e := w.last()
	if e.Method != "GET" || e.Host != "ws.test" || e.Verdict != egress.Allowed || e.Received < 3*int64(len("echo hi")) {
		t.Errorf("got %+v", e)
	}
}

// Another protocol than WebSocket could carry unchecked requests.
func TestOtherUpgrades(t *testing.T) {
	var seen http.Header
	o := newOrigin(t, func(_ http.ResponseWriter, r *http.Request) { seen = r.Header })
	url := o.at("h2c.test")
	w := newWorld(t, open, near(url))
	c := w.dial().send("GET " + url + "/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
	if resp, _ := c.answer("GET"); resp.StatusCode != 200 {
		t.Errorf("got %s", resp.Status)
	}
	if len(seen) != 0 {
		t.Errorf("the host got %v", seen)
	}
}

func TestRefusals(t *testing.T) {
	o := newOrigin(t, hello)
	url := o.at("refused.test")
	dead := newOrigin(t, hello)
	deadURL := dead.at("dead.test")
	dead.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	w := newWorld(t, open, append(near(url, deadURL), silent.Addr().String()))
	for _, test := range []struct {
		policy egress.Policy
		url    string
		status int
		text   string
		v      egress.Verdict
	}{
		{open, url, 200, "hello", egress.Allowed},
		{egress.Policy{Mode: egress.Off}, url, 403, `deckhand: egress policy "off" allows nothing`, egress.Refused},
		{list("other.test"), url, 403, `deckhand: egress policy "allowlist" does not allow refused.test:`, egress.Refused},
		{list("refused.test"), url, 403, fmt.Sprintf(`does not allow refused.test:%d`, o.port), egress.Refused},
		{list(fmt.Sprint("refused.test:", o.port)), url, 200, "hello", egress.Allowed},
		{egress.Policy{}, url, 503, "deckhand: the egress policy cannot be read", egress.Failed},
		{list("not a host"), url, 503, "deckhand: the egress policy cannot be read", egress.Failed},
		{open, "http://refused.test:25/", 403, "port 25", egress.Refused},
		{open, deadURL, 502, "refuses connections", egress.Failed},
		{open, "http://unknown.test/", 502, "deckhand: host not found: unknown.test", egress.Failed},
		{open, "http://" + silent.Addr().String(), 502, "closed the connection without an answer", egress.Failed},
		{open, "http://127.0.0.1:1/", 403, "127.0.0.1:1 has a loopback address, and only public addresses", egress.Refused},
	} {
		w.policy.Store(&test.policy)
		status, body := w.get(test.url)
		if status != test.status || !strings.Contains(body, test.text) {
			t.Errorf("%v %s: got %d, %q: %s", test.policy, test.url, status, body, w.last().Reason)
		}
		e := w.last()
		reason := e.Reason
		if e.Verdict != test.v || (test.v == egress.Allowed) != (reason == "") {
			t.Errorf("%v %s: recorded as %+v", test.policy, test.url, e)
		}
	}
	if n := dns.times("unknown.test"); n == 0 {
		t.Error("the unknown host was not looked up")
	}
	w.policy.Store(&egress.Policy{Mode: egress.Off})
	before := dns.times("refused.test")
	w.get(url)
	if n := dns.times("refused.test"); n != before {
		t.Error("a host that is not allowed was looked up")
	}
}

// A client that leaves takes its request with it.
func TestClientGone(t *testing.T) {
	begun, gone := make(chan struct{}), make(chan struct{})
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		io.WriteString(w, "beginning")
		w.(http.Flusher).Flush()
		close(begun)
		for {
			select {
			case <-r.Context().Done():
				return
			default:
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
	})
	url := o.at("gone.test")
	w := newWorld(t, open, near(url))
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
	resp, err := w.client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	cancel()
	resp.Body.Close()
	<-gone
	<-w.ended
	e := w.last()
	if e.Verdict != egress.Allowed || e.Received == 0 {
		t.Errorf("got %+v", e)
	}
}

// A host that breaks off is not taken for one that is done.
func TestHostBreaksOff(t *testing.T) {
	o := newOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "beginning")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	url := o.at("break.test")
	w := newWorld(t, open, near(url))
	resp, err := w.client().Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("got %q and no error", body)
	}
	<-w.ended
	w.recorded(w.last(), "GET", "break.test", egress.Failed, "closed the connection")
}
