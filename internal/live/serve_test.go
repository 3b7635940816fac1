package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// server serves a world on loopback, as SSE at /sse and as WebSocket at /ws, and
// detached from the handler at /detached-sse and /detached-ws.
type server struct {
	*world
	*httptest.Server
	opts  Options
	ended chan error // why each stream ended
	busy  sync.WaitGroup
	life  context.Context
	stop  context.CancelCauseFunc
}

func serve(t testing.TB, opts Options) *server {
	s := &server{world: newWorld(t), opts: opts, ended: make(chan error, 5000)}
	ctx, cancel := context.WithCancelCause(context.Background())
	s.life, s.stop = ctx, cancel
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.handle))
	s.Config.BaseContext = func(net.Listener) context.Context { return ctx }
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if opts.WriteTimeout > 0 { // a test of those who do not read: the kernel must not do it for them
			_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
		}
		return ctx
	}
	s.Start()
	t.Cleanup(func() {
		cancel(nil)
		s.Close()
		s.busy.Wait() // the server does not wait for WebSockets itself
		if n := s.feeds(); n != 0 {
			t.Errorf("%d feeds stay", n)
		}
	})
	return s
}

func (s *server) handle(w http.ResponseWriter, r *http.Request) {
	s.busy.Add(1)
	defer s.busy.Done()
	after, err := Position(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	run := ServeSSE
	if strings.HasSuffix(r.URL.Path, "ws") {
		run = ServeWS
	}
	opts := s.opts
	if opts.WriteTimeout > 0 && !r.URL.Query().Has("stalled") {
		opts.WriteTimeout = 5 * time.Minute // those who read are never dropped, however slow the machine is
	}
	detached := false
	if strings.HasPrefix(r.URL.Path, "/detached-") {
		r = r.WithContext(s.life)
		opts.Detach = func(run func() error) {
			detached = true
			s.busy.Go(func() { s.ended <- run() })
		}
	}
	err = run(w, r, s.hub, theID, after, opts)
	if errors.Is(err, ErrNotStarted) {
		http.Error(w, err.Error(), http.StatusConflict)
	}
	if !detached {
		s.ended <- err
	}
}

// client is a reader on the wire, of either kind.
type client interface {
	next() (message, error)
	close()
}

// message is what a client was told.
type message struct {
	Type string
	ID   int64
	Data json.RawMessage
}

var streamKinds = []string{"sse", "ws", "detached-sse", "detached-ws"}

// kinds runs a test with each kind of stream.
func kinds(t *testing.T, test func(t *testing.T, kind string)) {
	for _, kind := range streamKinds {
		t.Run(kind, func(t *testing.T) { test(t, kind) })
	}
}

func (s *server) dial(kind string, after int64) client {
	s.t.Helper()
	c, err := s.connect(kind, after)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *server) connect(kind string, after int64) (client, error) {
	if strings.HasSuffix(kind, "ws") {
		conn, _, err := websocket.Dial(context.Background(), fmt.Sprintf("%s/%s?after=%d", s.URL, kind, after), nil)
		if err != nil {
			return nil, err
		}
		conn.SetReadLimit(-1)
		return &wsClient{conn}, nil
	}
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\nLast-Event-ID: %d\r\n\r\n", kind, after)
	c := &sseClient{conn: conn, in: bufio.NewReaderSize(conn, 1024)}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" ||
		res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("X-Accel-Buffering") != "no" {
		return nil, fmt.Errorf("answer %+v", res)
	}
	c.body = bufio.NewReaderSize(res.Body, 1024)
	return c, nil
}

type wsClient struct{ conn *websocket.Conn }

func (c *wsClient) next() (m message, err error) {
	_, b, err := c.conn.Read(context.Background())
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(b, &m)
}
func (c *wsClient) close() { _ = c.conn.CloseNow() }

// sseClient reads an event stream as browsers do, and keeps what they ignore.
type sseClient struct {
	conn  net.Conn
	in    *bufio.Reader
	body  *bufio.Reader
	pings int
	retry string
}

func (c *sseClient) next() (message, error) {
	m := message{Type: "event"}
	for {
		line, err := c.body.ReadString('\n')
		if err != nil {
			return m, err
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "": // a blank line, or a comment
			if value == "ping" {
				c.pings++
			} else if m.Data != nil {
				return m, nil
			}
		case "id":
			if m.ID, err = strconv.ParseInt(value, 10, 64); err != nil {
				return m, err
			}
		case "event":
			m.Type = value
		case "data":
			m.Data = append(m.Data, value...)
		case "retry":
			c.retry = value
		default:
			return m, fmt.Errorf("strange line %q", line)
		}
	}
}
func (c *sseClient) close() { _ = c.conn.Close() }

// collect reads the numbers of all events up to last.
func collect(c client, last int64) ([]int64, error) {
	var got []int64
	for {
		m, err := c.next()
		if err != nil {
			return got, err
		}
		if m.Type == "event" {
			if got = append(got, m.ID); m.ID >= last {
				return got, nil
			}
		}
	}
}

// isEOF is how a stream of server-sent events ends.
func isEOF(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }
