package socketio

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// both runs a test once for each transport.
func both(t *testing.T, test func(t *testing.T, transport string)) {
	for _, transport := range []string{"polling", "websocket"} {
		t.Run(transport, func(t *testing.T) { test(t, transport) })
	}
}

// listen starts a server for the test.
func listen(t *testing.T, o Options, namespaces map[string]Handler) (*Server, string) {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s := New(o, namespaces)
	return s, start(t, s)
}

// start serves a handler on loopback until the test ends, and returns its address.
func start(t *testing.T, handler interface {
	http.Handler
	Close()
}) string {
	t.Helper()
	l := httptest.NewServer(handler)
	t.Cleanup(func() {
		handler.Close()
		l.Close()
	})
	return l.URL
}

// frame is what one message carried.
type frame struct {
	text   string
	binary []byte
}

// client speaks to a server in plain messages, and answers its pings.
type client struct {
	t      *testing.T
	frames chan frame // closed with the connection
	ctx    context.Context
	end    context.CancelFunc
	post   func(ctx context.Context, f frame) error
}

// dial opens a connection. The handshake's answer is not among the frames.
func dial(t *testing.T, url, transport string) *client {
	t.Helper()
	c := &client{t: t, frames: make(chan frame, 64)}
	c.ctx, c.end = context.WithCancel(context.Background())
	var wait sync.WaitGroup
	t.Cleanup(func() {
		c.end()
		wait.Wait()
	})
	address := url + "/?EIO=4&transport=" + transport
	if transport == "websocket" {
		ws, _, err := websocket.Dial(c.ctx, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		ws.SetReadLimit(-1)
		if _, _, err := ws.Read(c.ctx); err != nil {
			t.Fatal(err)
		}
		c.post = func(ctx context.Context, f frame) error {
			if f.binary != nil {
				return ws.Write(ctx, websocket.MessageBinary, f.binary)
			}
			return ws.Write(ctx, websocket.MessageText, []byte(f.text))
		}
		wait.Go(func() { c.watch(ws) })
		return c
	}
	status, body := c.fetch(c.ctx, http.MethodGet, address, "")
	if status != http.StatusOK || !strings.HasPrefix(body, "0{") {
		t.Fatalf("the handshake answered %d %s", status, body)
	}
	var open struct{ SID string }
	if err := json.Unmarshal([]byte(body[1:]), &open); err != nil {
		t.Fatal(err)
	}
	address += "&sid=" + open.SID
	c.post = func(ctx context.Context, f frame) error {
		if f.binary != nil {
			f.text = "b" + base64.StdEncoding.EncodeToString(f.binary)
		}
		c.fetch(ctx, http.MethodPost, address, f.text)
		return nil
	}
	wait.Go(func() { c.poll(address) })
	return c
}

// fetch makes a request. A status of 0 means that there was no answer.
func (c *client) fetch(ctx context.Context, method, url, body string) (status int, answer string) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(b)
}

// watch takes frames from a WebSocket.
func (c *client) watch(ws *websocket.Conn) {
	defer close(c.frames)
	defer ws.CloseNow()
	for {
		kind, data, err := ws.Read(c.ctx)
		if err != nil {
			return
		}
		f := frame{text: string(data)}
		if kind == websocket.MessageBinary {
			f = frame{binary: data}
		}
		if !c.took(f) {
			return
		}
	}
}

// poll takes frames by asking for them.
func (c *client) poll(address string) {
	defer close(c.frames)
	for {
		status, body := c.fetch(c.ctx, http.MethodGet, address, "")
		if status != http.StatusOK {
			return
		}
		for text := range strings.SplitSeq(body, "\x1e") {
			f := frame{text: text}
			if data, ok := strings.CutPrefix(text, "b"); ok {
				b, err := base64.StdEncoding.DecodeString(data)
				if err != nil {
					c.t.Errorf("an attachment came as %q", text)
					return
				}
				f = frame{binary: b}
			}
			if !c.took(f) {
				return
			}
		}
	}
}

// took deals with what keeps a connection alive and hands on the rest.
func (c *client) took(f frame) bool {
	switch {
	case f.binary == nil && f.text == "2":
		return c.post(c.ctx, frame{text: "3"}) == nil
	case f.binary == nil && f.text == "6":
		return true
	case f.binary == nil && f.text == "1":
		return false
	}
	select {
	case c.frames <- f:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// send sends a packet. What becomes of it is seen by what comes back.
func (c *client) send(text string, attachments ...[]byte) {
	c.t.Helper()
	_ = c.post(c.ctx, frame{text: "4" + text})
	for _, a := range attachments {
		_ = c.post(c.ctx, frame{binary: a})
	}
}

// read takes the next packet's text.
func (c *client) read() string {
	c.t.Helper()
	f, ok := <-c.frames
	if !ok {
		c.t.Fatal("the connection ended")
	}
	text, ok := strings.CutPrefix(f.text, "4")
	if !ok {
		c.t.Fatalf("came %+v, wanted a packet", f)
	}
	return text
}

// want takes the next packet and its attachments.
func (c *client) want(text string, attachments ...[]byte) {
	c.t.Helper()
	if got := c.read(); got != text {
		c.t.Fatalf("came %s\nwanted %s", got, text)
	}
	for i, a := range attachments {
		if f, ok := <-c.frames; !ok || !bytes.Equal(f.binary, a) || f.binary == nil {
			c.t.Fatalf("attachment %d is %+v, wanted %v", i, f, a)
		}
	}
}

// closed waits for the end of the connection. Nothing may come before it.
func (c *client) closed() {
	c.t.Helper()
	if f, ok := <-c.frames; ok {
		c.t.Fatalf("came %+v, wanted the end", f)
	}
}

// in is what a client is told that is let in.
type in struct{ SID, PID string }

// enter asks for a namespace and waits until it is in.
func (c *client) enter(namespace, auth string) in {
	c.t.Helper()
	prefix := "0"
	if namespace != "/" {
		prefix += namespace + ","
	}
	c.send(prefix + auth)
	text, ok := strings.CutPrefix(c.read(), prefix)
	var told in
	if !ok || json.Unmarshal([]byte(text), &told) != nil || told.SID == "" {
		c.t.Fatalf("the answer is %s", text)
	}
	return told
}
