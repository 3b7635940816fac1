package socketio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/socketio/engine"
)

// journal is a log that a test can read.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func TestEventsComeInOrderOneAtATime(t *testing.T) {
	const n = 300
	both(t, func(t *testing.T, transport string) {
		var busy atomic.Int32
		got := make(chan string, n)
		_, url := listen(t, Options{}, map[string]Handler{"/": func(context.Context, *Socket) (Serve, error) {
			return Serve{Event: func(_ context.Context, e Event) {
				if busy.Add(1) > 1 {
					t.Error("two handlers at once")
				}
				got <- string(e.Args[0])
				busy.Add(-1)
			}}, nil
		}})
		c := dial(t, url, transport)
		c.enter("/", "")
		for i := range n {
			c.send(fmt.Sprintf(`2["x",%d]`, i))
		}
		for i := range n {
			if s := <-got; s != fmt.Sprint(i) {
				t.Fatalf("number %d is %s", i, s)
			}
		}
	})
}

func TestNamespacesDoNotBlockEachOther(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		release := make(chan struct{})
		var once sync.Once
		t.Cleanup(func() { once.Do(func() { close(release) }) })
		_, url := listen(t, Options{}, map[string]Handler{
			"/custom": echo,
			"/": func(_ context.Context, s *Socket) (Serve, error) {
				return Serve{Event: func(ctx context.Context, e Event) {
					<-release
					_ = s.Emit(ctx, "late", e.Args[0])
				}}, nil
			},
			"/slow": func(context.Context, *Socket) (Serve, error) {
				<-release
				return Serve{}, nil
			},
		})
		c := dial(t, url, transport)
		c.send("0/slow,")
		c.enter("/", "")
		for i := range 3 {
			c.send(fmt.Sprintf(`2["x",%d]`, i))
		}
		c.enter("/custom", "")
		c.want(`2/custom,["auth",{}]`)
		c.send(`2/custom,["message",1]`)
		c.want(`2/custom,["message-back",1]`)
		c.send("1/custom,")
		once.Do(func() { close(release) })
		var late []string
		for range 4 {
			if text := c.read(); !strings.HasPrefix(text, "0/slow,") {
				late = append(late, text)
			}
		}
		if got := strings.Join(late, ""); got != `2["late",0]2["late",1]2["late",2]` {
			t.Errorf("came %s", got)
		}
	})
}

func TestCall(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		type result struct {
			args []json.RawMessage
			err  error
		}
		results, give := make(chan result, 1), make(chan struct{})
		cause := errors.New("no more patience")
		_, url := listen(t, Options{}, map[string]Handler{"/": func(_ context.Context, s *Socket) (Serve, error) {
			return Serve{Run: func(ctx context.Context) {
				args, err := s.Call(ctx, "add", 1, []byte{2})
				results <- result{args, err}
				ctx, cancel := context.WithCancelCause(ctx)
				go func() {
					<-give
					cancel(cause)
				}()
				args, err = s.Call(ctx, "wait")
				results <- result{args, err}
				args, err = s.Call(context.Background(), "last")
				results <- result{args, err}
			}}, nil
		}})
		c := dial(t, url, transport)
		c.enter("/", "")
		c.want(`51-0["add",1,{"_placeholder":true,"num":0}]`, []byte{2})
		c.send(`35[7]`) // unsolicited
		c.send(`30[3,"three"]`)
		if r := <-results; r.err != nil || len(r.args) != 2 || string(r.args[0]) != "3" {
			t.Errorf("the answer is %s, %v", r.args, r.err)
		}
		c.want(`21["wait"]`)
		close(give)
		if r := <-results; r.err != cause {
			t.Errorf("the call ended with %v", r.err)
		}
		c.want(`22["last"]`)
		c.send(`31[1]`) // too late
		c.send(`1`)
		if r := <-results; !errors.Is(r.err, ErrClosed) || !errors.Is(r.err, ErrLeft) {
			t.Errorf("the call ended with %v", r.err)
		}
	})
}

func TestAcknowledgedOnce(t *testing.T) {
	errs := make(chan error, 3)
	_, url := listen(t, Options{}, map[string]Handler{"/": func(context.Context, *Socket) (Serve, error) {
		return Serve{Event: func(ctx context.Context, e Event) {
			if e.Name == "plain" {
				if e.Ack != nil {
					t.Error("an event without id can be acknowledged")
				}
				return
			}
			errs <- e.Ack(ctx)
			errs <- e.Ack(ctx, 2)
		}}, nil
	}})
	c := dial(t, url, "websocket")
	c.enter("/", "")
	c.send(`2["plain"]`)
	c.send(`20["x"]`)
	c.want(`30[]`)
	if err := <-errs; err != nil {
		t.Error(err)
	}
	if err := <-errs; err != errTwice {
		t.Errorf("the second time: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		var log journal
		_, url := listen(t, Options{Logger: log.logger()}, map[string]Handler{"/": func(ctx context.Context, s *Socket) (Serve, error) {
			var auth struct{ Ask string }
			_ = json.Unmarshal(s.Auth(), &auth)
			switch auth.Ask {
			case "refusal":
				return Serve{}, &Refusal{Message: "No conversation_id"}
			case "wrapped":
				return Serve{}, fmt.Errorf("so: %w", &Refusal{"Settings not found", map[string]string{"msg_id": "X"}})
			case "error":
				return Serve{}, errors.New("the database is on fire")
			case "panic":
				panic("oh no")
			case "disconnect":
				s.Disconnect("not you")
			case "unsendable":
				return Serve{}, &Refusal{"x", func() {}}
			}
			return echo(ctx, s)
		}})
		c := dial(t, url, transport)
		for _, r := range [][2]string{
			{"refusal", `4{"message":"No conversation_id"}`},
			{"wrapped", `4{"message":"Settings not found","data":{"msg_id":"X"}}`},
			{"error", `4{"message":"internal error"}`},
			{"panic", `4{"message":"internal error"}`},
			{"disconnect", `4{"message":"not you"}`},
		} {
			c.send(`0{"ask":"` + r[0] + `"}`)
			c.want(r[1])
		}
		for _, words := range []string{"the database is on fire", "oh no", "server_test.go"} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("the log does not say %q", words)
			}
		}
		if strings.Contains(log.String(), "conversation_id") {
			t.Error("a refusal is not a server error")
		}
		c.enter("/", `{"ask":"in"}`)
		c.want(`2["auth",{"ask":"in"}]`)

		c = dial(t, url, transport)
		c.send(`0{"ask":"unsendable"}`)
		c.closed()
	})
}

func TestRefusedMayNotSend(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		_, url := listen(t, Options{}, map[string]Handler{"/": func(context.Context, *Socket) (Serve, error) {
			return Serve{Event: func(context.Context, Event) { t.Error("the event was handled") }}, &Refusal{Message: "no"}
		}})
		c := dial(t, url, transport)
		c.send("0")
		c.want(`4{"message":"no"}`)
		c.send(`2["x"]`)
		c.closed()
	})
}

func TestPanicsEndTheSocketAlone(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		var log journal
		_, url := listen(t, Options{Logger: log.logger()}, map[string]Handler{
			"/": echo,
			"/event": func(context.Context, *Socket) (Serve, error) {
				return Serve{Event: func(context.Context, Event) { panic("in event") }}, nil
			},
			"/run": func(context.Context, *Socket) (Serve, error) {
				return Serve{Run: func(context.Context) { panic("in run") }}, nil
			},
		})
		c := dial(t, url, transport)
		c.enter("/", "")
		c.want(`2["auth",{}]`)
		c.enter("/event", "")
		c.send(`2/event,["x"]`)
		c.want(`1/event,`)
		c.enter("/run", "")
		c.want(`1/run,`)
		c.send(`2["message"]`)
		c.want(`2["message-back"]`)
		for _, words := range []string{"in event", "in run"} {
			if !strings.Contains(log.String(), words) {
				t.Errorf("the log does not say %q", words)
			}
		}
	})
}

func TestDisconnect(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		sockets, ends := make(chan *Socket, 2), make(chan error, 2)
		block, handled := make(chan struct{}), 0
		_, url := listen(t, Options{}, map[string]Handler{"/": echo, "/custom": func(_ context.Context, s *Socket) (Serve, error) {
			return Serve{
				Run: func(ctx context.Context) {
					sockets <- s
					<-ctx.Done()
					ends <- context.Cause(ctx)
				},
				Event: func(context.Context, Event) {
					handled++
					<-block
				},
			}, nil
		}})
		c := dial(t, url, transport)
		c.enter("/", "")
		c.want(`2["auth",{}]`)
		told := c.enter("/custom", "")
		s := <-sockets
		if s.ID() != told.SID || s.Namespace() != "/custom" {
			t.Errorf("the socket is %s in %s", s.ID(), s.Namespace())
		}
		s.Disconnect("the key was revoked")
		s.Disconnect("again")
		if err := <-ends; err.Error() != "the key was revoked" {
			t.Errorf("it ended because of %v", err)
		}
		if err := s.Emit(t.Context(), "x"); !errors.Is(err, ErrClosed) {
			t.Errorf("emitting afterwards: %v", err)
		}
		c.want("1/custom,")
		c.send(`2/custom,["sent before it knew"]`)
		c.send(`3/custom,1[]`)
		c.send(`2["message"]`)
		c.want(`2["message-back"]`)

		c.enter("/custom", "")
		s = <-sockets
		for range 3 {
			c.send(`2/custom,["x"]`)
		}
		c.send(`2["message"]`)
		c.want(`2["message-back"]`) // so the others have been read
		s.Disconnect("once more")
		c.want("1/custom,")
		close(block)
		<-s.done
		if handled > 1 {
			t.Errorf("%d events were handled, though the client was thrown out during the first", handled)
		}
	})
}

func TestEmitWaitsForTheDeaf(t *testing.T) {
	sockets := make(chan *Socket, 1)
	_, url := listen(t, Options{}, map[string]Handler{"/": keep(sockets)})
	deaf(t, url)("40")
	if err := fill(t, <-sockets); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("emitting ended with %v", err)
	}
}

func TestEmitEndsWithTheSocket(t *testing.T) {
	sockets := make(chan *Socket, 1)
	_, url := listen(t, Options{Engine: engine.Options{Buffer: 1}}, map[string]Handler{"/": keep(sockets)})
	post := deaf(t, url)
	post("40")
	s, ended := <-sockets, make(chan error)
	go func() { ended <- s.Emit(context.Background(), "x") }()
	post("41")
	if err := <-ended; !errors.Is(err, ErrClosed) || !errors.Is(err, ErrLeft) {
		t.Errorf("the event that waited: %v", err)
	}
	if s.conn.ctx.Err() != nil {
		t.Error("the connection ended too")
	}
}

func TestDisconnectOfTheDeaf(t *testing.T) {
	t.Parallel()
	sockets := make(chan *Socket, 1)
	_, url := listen(t, Options{Engine: engine.Options{Buffer: 1}}, map[string]Handler{"/": keep(sockets)})
	deaf(t, url)("40") // the answer waits for it, and there is no room for more
	s, ended := <-sockets, make(chan error)
	go func() { ended <- s.Emit(context.Background(), "x") }()
	s.Disconnect("enough")
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("the event that waited: %v", err)
	}
	if s.conn.ctx.Err() == nil {
		t.Error("the connection goes on, though the client could not be told")
	}
}

// keep hands the test its sockets.
func keep(sockets chan<- *Socket) Handler {
	return func(_ context.Context, s *Socket) (Serve, error) {
		return Serve{Run: func(context.Context) { sockets <- s }}, nil
	}
}

// deaf connects by polling, and polls no more. It can speak.
func deaf(t *testing.T, url string) (post func(body string)) {
	t.Helper()
	c := &client{t: t}
	address := url + "/?EIO=4&transport=polling"
	_, body := c.fetch(t.Context(), http.MethodGet, address, "")
	var open struct{ SID string }
	if err := json.Unmarshal([]byte(body[1:]), &open); err != nil {
		t.Fatal(err)
	}
	return func(body string) { c.fetch(t.Context(), http.MethodPost, address+"&sid="+open.SID, body) }
}

// fill emits until that takes too long.
func fill(t *testing.T, s *Socket) error {
	t.Helper()
	text := strings.Repeat("x", 100<<10)
	for range 1000 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := s.Emit(ctx, "x", text)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func TestCloseEndsEverything(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		ends := make(chan error, 1)
		s, url := listen(t, Options{}, map[string]Handler{"/": func(_ context.Context, s *Socket) (Serve, error) {
			return Serve{Run: func(ctx context.Context) {
				<-ctx.Done()
				ends <- context.Cause(ctx)
				if err := s.Emit(context.Background(), "x"); !errors.Is(err, ErrClosed) {
					t.Errorf("emitting at the end: %v", err)
				}
			}}, nil
		}})
		c := dial(t, url, transport)
		c.enter("/", "")
		if n := s.Len(); n != 1 {
			t.Errorf("%d connections", n)
		}
		s.Close()
		select {
		case err := <-ends:
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("it ended because of %v", err)
			}
		default:
			t.Error("Close did not wait for the handler")
		}
		c.closed() // without being told to stay away
		if n := s.Len(); n != 0 {
			t.Errorf("%d connections", n)
		}
	})
}

func TestNothingTravelsBeforeTheAnswer(t *testing.T) {
	both(t, func(t *testing.T, transport string) {
		_, url := listen(t, Options{}, map[string]Handler{"/": func(ctx context.Context, s *Socket) (Serve, error) {
			if err := s.Emit(ctx, "x"); err != errEarly {
				t.Errorf("emitting in the handler: %v", err)
			}
			return echo(ctx, s)
		}})
		c := dial(t, url, transport)
		c.enter("/", "")
		c.want(`2["auth",{}]`)
	})
}

func TestWhatCannotBeEmitted(t *testing.T) {
	done := make(chan struct{})
	_, url := listen(t, Options{}, map[string]Handler{"/": func(_ context.Context, s *Socket) (Serve, error) {
		return Serve{Run: func(ctx context.Context) {
			defer close(done)
			for name, err := range map[string]error{
				"a reserved name":           s.Emit(ctx, "disconnect"),
				"a channel":                 s.Emit(ctx, "x", make(chan int)),
				"a raw piece":               s.Emit(ctx, "x", json.RawMessage(`{"a":`)),
				"with an offset":            s.EmitAt(ctx, "1", "connect"),
				"a call of what is no JSON": func() error { _, err := s.Call(ctx, "x", func() {}); return err }(),
			} {
				if err == nil {
					t.Errorf("%s was emitted", name)
				}
			}
			_ = s.Emit(ctx, "end")
		}}, nil
	}})
	c := dial(t, url, "websocket")
	c.enter("/", "")
	c.want(`2["end"]`)
	<-done
}
