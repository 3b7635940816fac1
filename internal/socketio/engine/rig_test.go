package engine

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo sends back what it gets.
func echo(ctx context.Context, c *Conn) {
	for {
		m, err := c.Receive(ctx)
		if err != nil || c.Send(ctx, m) != nil {
			return
		}
	}
}

// wait does nothing until the end.
func wait(ctx context.Context, _ *Conn) { <-ctx.Done() }

// rig is a server on loopback and a client that speaks the protocol by hand.
type rig struct {
	*testing.T
	server *Server
	web    *httptest.Server
	client *http.Client
	url    string
	raw    func(ctx context.Context, network, addr string) (net.Conn, error) // in a bubble
	polls  chan struct{}                                                     // gets one for each poll that arrives, while there is room
}

func newRig(t *testing.T, o Options, serve func(context.Context, *Conn)) *rig {
	t.Helper()
	g := &rig{T: t, server: New(o, serve), polls: make(chan struct{}, 100)}
	g.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Query().Has("sid") {
			select {
			case g.polls <- struct{}{}:
			default:
			}
		}
		g.server.ServeHTTP(w, r)
	}))
	g.client, g.url = g.web.Client(), g.web.URL+"/engine.io/"
	t.Cleanup(func() {
		g.server.Close()
		g.web.Close()
	})
	return g
}

// do makes a request and returns its status and body.
func (g *rig) do(ctx context.Context, method, query, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.url+"?"+query, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	res, err := g.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

const (
	polling   = "EIO=4&transport=polling"
	onSocket  = "EIO=4&transport=websocket"
	hello     = "4hello"
	separated = "\x1e"
)

// open makes a connection on polling and returns the query that names it.
func (g *rig) open() string {
	g.Helper()
	return polling + "&sid=" + g.opening().SID
}

func (g *rig) opening() opening {
	g.Helper()
	status, body, err := g.do(g.Context(), http.MethodGet, polling, "")
	if err != nil || status != http.StatusOK {
		g.Fatalf("handshake: %d %s %v", status, body, err)
	}
	return readOpening(g, body)
}

func readOpening(t testing.TB, text string) opening {
	t.Helper()
	var o opening
	if !strings.HasPrefix(text, "0") {
		t.Fatalf("the first packet is %q", text)
	}
	if err := json.Unmarshal([]byte(text[1:]), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// want makes a request and checks the answer.
func (g *rig) want(method, query, body string, status int, answer string) {
	g.Helper()
	gotStatus, got, err := g.do(g.Context(), method, query, body)
	if err != nil || gotStatus != status || got != answer {
		g.Errorf("%s %q: %d %q %v, wanted %d %q", method, body, gotStatus, got, err, status, answer)
	}
}

const (
	saysTransport = `{"code":0,"message":"Transport unknown"}`
	saysSession   = `{"code":1,"message":"Session ID unknown"}`
	saysMethod    = `{"code":2,"message":"Bad handshake method"}`
	saysRequest   = `{"code":3,"message":"Bad request"}`
	saysVersion   = `{"code":5,"message":"Unsupported protocol version"}`
)

// socket is a client's WebSocket.
type socket struct {
	testing.TB
	conn *websocket.Conn
}

// dial opens a WebSocket with the query of a connection, or a new one.
func (g *rig) dial(query string) (*socket, error) {
	conn, res, err := websocket.Dial(g.Context(), g.url+"?"+query, &websocket.DialOptions{HTTPClient: g.client})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusBadRequest {
			g.Errorf("refused with %s", res.Status)
		}
		return nil, err
	}
	conn.SetReadLimit(-1)
	g.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{g, conn}, nil
}

// socket opens a WebSocket that must work.
func (g *rig) socket(query string) *socket {
	g.Helper()
	s, err := g.dial(query)
	if err != nil {
		g.Fatal(err)
	}
	return s
}

// opened is a new connection on a WebSocket, after its first packet.
func (g *rig) opened() *socket {
	g.Helper()
	s := g.socket(onSocket)
	if o := readOpening(g, s.read()); len(o.Upgrades) != 0 {
		g.Errorf("a WebSocket may become %v", o.Upgrades)
	}
	return s
}

func (s *socket) write(text string) {
	s.Helper()
	if err := s.conn.Write(s.Context(), websocket.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
}

func (s *socket) read() string {
	s.Helper()
	typ, b, err := s.conn.Read(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	if typ != websocket.MessageText {
		s.Fatalf("got bytes %x", b)
	}
	return string(b)
}

func (s *socket) want(text string) {
	s.Helper()
	if got := s.read(); got != text {
		s.Fatalf("got %q, wanted %q", got, text)
	}
}

// wantEnd waits for the server's goodbye.
func (s *socket) wantEnd(code websocket.StatusCode) {
	s.Helper()
	_, b, err := s.conn.Read(s.Context())
	if got := websocket.CloseStatus(err); got != code {
		s.Errorf("got %q and the end %v (%v), wanted %v", b, got, err, code)
	}
}

// socketQuery names the connection of a polling query for a WebSocket.
func socketQuery(query string) string { return strings.Replace(query, polling, onSocket, 1) }

// conn is the server's side of a connection.
func (g *rig) conn(query string) *Conn {
	g.Helper()
	c := g.server.find(strings.TrimPrefix(query, polling+"&sid="))
	if c == nil {
		g.Fatal("no such connection")
	}
	return c
}

// waitPoll waits until a poll of the connection does.
func (g *rig) waitPoll(query string) {
	g.Helper()
	c := g.conn(query)
	for {
		c.mu.Lock()
		sits := c.poll != nil
		c.mu.Unlock()
		if sits {
			return
		}
		runtime.Gosched()
	}
}
