package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
	"deckhand/internal/sandbox/runner/results"
)

func TestCalls(t *testing.T) {
	b := open(t)
	st := b.start(bad("plain"))
	if !st.Running || st.Version != versions[0] || st.Server != "bad 0.1" || st.Starts != 1 || len(st.Tools) != 1 || st.Tools[0].Name != "echo" {
		t.Errorf("%+v", st)
	}
	for tool, c := range map[string]struct{ arg, want string }{
		"echo":    {"<grüße & \u2028>", "<grüße & \u2028>"},
		"where":   {"", b.workspace},
		"noise":   {"", "quiet"},
		"batch":   {"", "batched"},
		"unasked": {"", "first"},
		"flags":   {"", "false"},
	} {
		if got := b.text(b.call(tool, c.arg)); got != c.want {
			t.Errorf("%s: %q", tool, got)
		}
	}
	for name, want := range map[string]string{"FROM_THE_SANDBOX": "yes", "WHICH": "server"} {
		if got := b.text(b.call("getenv", name)); got != want {
			t.Errorf("%s is %q in its environment", name, got)
		}
	}
	if got := b.text(b.call("big", "")); len(got) != 3<<20 {
		t.Errorf("%d bytes came", len(got))
	}
	if r := b.call("nonsense", ""); !strings.Contains(r.Error, "Unknown tool: nonsense") || r.Result != nil {
		t.Errorf("%+v", r)
	}
	if r := b.call("empty", ""); !strings.Contains(r.Error, "no result") {
		t.Errorf("%+v", r)
	}
	if r := b.callAs(sandbox.MCPCall{Server: "other", Tool: "echo"}, ""); !strings.Contains(r.Error, `no MCP server "other"`) {
		t.Errorf("%+v", r)
	}
	if st := b.only(); st.Starts != 1 {
		t.Errorf("it was started %d times", st.Starts)
	}
}

func TestManyCalls(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			text := strings.Repeat(string(rune('a'+i%26)), i)
			if got := b.text(b.call("echo", text)); got != text {
				t.Errorf("%q came back for %q", got, text)
			}
		})
	}
	all.Wait()
}

// What the server asks of us is answered: a ping, and nothing else.
func TestRequestsOfTheServer(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	var m message
	if err := json.Unmarshal([]byte(b.text(b.call("ask", "ping"))), &m); err != nil || string(m.Result) != "{}" || m.Error != nil {
		t.Errorf("ping: %+v, %v", m, err)
	}
	for _, method := range []string{"sampling/createMessage", "roots/list", "elicitation/create"} {
		var m message
		if err := json.Unmarshal([]byte(b.text(b.call("ask", method))), &m); err != nil || m.Error == nil || m.Error.Code != noSuchMethod {
			t.Errorf("%s: %+v, %v", method, m, err)
		}
	}
}

func TestTimeout(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	r := b.callAs(sandbox.MCPCall{Tool: "hang", Timeout: 50 * time.Millisecond}, nil)
	if !strings.Contains(r.Error, "did not answer within 50ms") {
		t.Errorf("%+v", r)
	}
	// It was told, in the words of the protocol, and serves on.
	got := b.text(b.call("received", ""))
	if !strings.Contains(got, "notifications/initialized") || !strings.Contains(got, `notifications/cancelled {"reason":"it took too long","requestId":`) {
		t.Errorf("it received %q", got)
	}
	if st := b.only(); st.Starts != 1 || !st.Running {
		t.Errorf("%+v", st)
	}
}

// A server that does not read cannot hold up a call longer than its timeout.
func TestTimeoutOfAServerThatDoesNotRead(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	release := b.gate("gate")
	var waits sync.WaitGroup
	waits.Go(func() { b.text(b.call("gate", "gate")) })
	b.until("it stands at the gate", func(sandbox.MCPState) bool { return b.busy() })
	var all sync.WaitGroup
	for range 2 * queueSize {
		all.Go(func() {
			r := b.callAs(sandbox.MCPCall{Tool: "echo", Timeout: 50 * time.Millisecond}, strings.Repeat("x", 10_000))
			if !strings.Contains(r.Error, "did not answer within") {
				t.Errorf("%.200s %.200s", r.Error, r.Result)
			}
		})
	}
	all.Wait()
	release()
	waits.Wait()
	if got := b.text(b.call("echo", "still here")); got != "still here" {
		t.Error(got)
	}
}

// busy is true while a call runs.
func (b *box) busy() bool {
	s, _ := b.host.named("bad", false)
	run := s.live()
	return run != nil && run.busy()
}

func TestOnceForEachID(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	c := sandbox.MCPCall{ID: "the one", Tool: "once"}
	for range 3 {
		if got := b.text(b.callAs(c, "")); got != "done" {
			t.Error(got)
		}
	}
	if got := b.file("once"); got != "x" {
		t.Errorf("it was done %d times", len(got))
	}
	// A result that is not acknowledged outlives the runner, also without its servers.
	b.boot()
	if got := b.text(b.callAs(c, "")); got != "done" {
		t.Error(got)
	}
	if err := b.Ack(t.Context(), c.ID); err != nil {
		t.Fatal(err)
	}
	b.start(bad("plain"))
	if b.text(b.callAs(c, "")); b.file("once") != "xx" {
		t.Errorf("what was acknowledged is still known: %q", b.file("once"))
	}
	b.callAs(sandbox.MCPCall{ID: "another", Tool: "once"}, "")
	if b.file("once") != "xxx" {
		t.Errorf("another id is taken for the same: %q", b.file("once"))
	}
}

// The caller may leave: the call goes on, and the next caller gets its result.
func TestCallerGoes(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	release := b.gate("gate")
	args, _ := json.Marshal("gate")
	c := sandbox.MCPCall{ID: "long", Server: "bad", Tool: "gate", Args: args}
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := b.MCPCall(ctx, c); left <- err }()
	b.until("it stands at the gate", func(sandbox.MCPState) bool { return b.busy() })
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	again := make(chan string, 2)
	for range 2 {
		other := b.attach()
		go func() {
			r, err := other.MCPCall(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			again <- b.text(r)
		}()
	}
	release()
	for range 2 {
		if got := <-again; got != "through" {
			t.Error(got)
		}
	}
	if got := b.file("at gate"); got != "x" {
		t.Errorf("it was called %d times", len(got))
	}
}

func TestLost(t *testing.T) {
	b := open(t)
	before, err := results.Open(b.state)
	if err != nil {
		t.Fatal(err)
	}
	if state, _, _, err := before.Begin("begun", false); err != nil || state != results.New {
		t.Fatal(state, err)
	}
	b.boot() // the runner that began it is dead
	b.start(bad("plain"))
	if r := b.callAs(sandbox.MCPCall{ID: "begun", Again: true, Tool: "echo"}, ""); !r.Lost || r.Error != "" || r.Result != nil {
		t.Errorf("%+v", r)
	}
}

func TestInvalidCalls(t *testing.T) {
	b := open(t)
	for _, c := range []sandbox.MCPCall{{Server: "bad", Tool: "echo"}, {ID: "1", Tool: "echo"}, {ID: "1", Server: "bad"}} {
		if _, err := b.MCPCall(t.Context(), c); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for _, s := range []sandbox.MCPServer{{Name: "x"}, {Command: "x"}} {
		if _, err := b.MCPStart(t.Context(), s); !errors.Is(err, rpc.ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// A message without an end must not fill the memory, nor be waited for forever.
func TestHugeMessages(t *testing.T) {
	b := open(t)
	b.start(bad("plain"))
	if r := b.call("huge", ""); !strings.Contains(r.Error, "more than 32 MiB") {
		t.Errorf("%.300s", r.Error)
	}
	if r := b.call("large", ""); !strings.Contains(r.Error, "more than 31 MiB") {
		t.Errorf("%.300s", r.Error)
	}
	if got := b.text(b.call("echo", "still here")); got != "still here" {
		t.Error(got)
	}
}
