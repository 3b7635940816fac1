package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"deckhand/internal/sandbox/runner/spawn"
	"deckhand/internal/secret"
	"deckhand/internal/tool"
)

// spawner is the only one, since it waits for all children of this process.
var spawner *spawn.Spawner

// programVariable makes this binary a tool server on stdin and stdout.
const programVariable = "DECKHAND_TEST_TOOL_SERVER"

type suite struct{ *testing.M }

func (s suite) Run() int {
	var err error
	if spawner, err = spawn.New(spawn.Options{}); err != nil {
		fmt.Println(err)
		return 1
	}
	defer spawner.Close()
	return s.M.Run()
}

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		_ = testServer().Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	goleak.VerifyTestMain(suite{m})
}

type echoArgs struct {
	Text string `json:"text" jsonschema:"what to say"`
}

// testServer is a server with one tool.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again."},
		func(_ context.Context, _ *sdk.CallToolRequest, a echoArgs) (*sdk.CallToolResult, any, error) {
			return text(a.Text), nil, nil
		})
	return s
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// handle adds a tool that takes anything.
func handle(s *sdk.Server, name string, f func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, f)
}

// site is a web server with a tool server on it.
type site struct {
	t    *testing.T
	kind Kind
	url  string
	http *httptest.Server

	mu      sync.Mutex
	headers []http.Header
	gate    func(http.ResponseWriter, *http.Request) bool // true: it has answered
	streams chan struct{}                                 // gets one when a stream to a client ends
}

// kinds are those of servers at an address.
var kinds = []Kind{SSE, SHTTP}

func serve(t *testing.T, kind Kind, s *sdk.Server) *site {
	t.Helper()
	w := &site{t: t, kind: kind, streams: make(chan struct{}, 100)}
	get := func(*http.Request) *sdk.Server { return s }
	var h http.Handler
	if kind == SSE {
		h = sdk.NewSSEHandler(get, nil)
	} else {
		h = sdk.NewStreamableHTTPHandler(get, nil)
	}
	w.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.headers = append(w.headers, r.Header.Clone())
		gate := w.gate
		w.mu.Unlock()
		if gate == nil || !gate(rw, r) {
			h.ServeHTTP(rw, r)
			if r.Method == http.MethodGet {
				w.streams <- struct{}{}
			}
		}
	}))
	w.url = w.http.URL + "/tools"
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
		w.http.CloseClientConnections()
		w.http.Close()
	})
	return w
}

// on lets f see every request first.
func (w *site) on(f func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gate = f
}

func (w *site) seen() []http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.headers)
}

func (w *site) server(name string) Server { return Server{Kind: w.kind, Name: name, URL: w.url} }

// rig is a pool with a clock that stands still.
type rig struct {
	t       *testing.T
	pool    *Pool
	client  *http.Client
	reports chan Status
	box     tool.Box

	mu    sync.Mutex
	clock time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, pool: NewPool(0), client: &http.Client{Transport: &http.Transport{}}, reports: make(chan Status, 100), clock: time.Unix(1e9, 0)}
	r.pool.now = func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.clock
	}
	t.Cleanup(func() {
		r.pool.Close()
		r.client.CloseIdleConnections()
	})
	return r
}

// pass lets time go by.
func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock = r.clock.Add(d)
}

func (r *rig) set(servers ...Server) *Set {
	return r.pool.Set("s1", Config{Servers: servers, Client: r.client, Box: r.box, Report: func(s Status) { r.reports <- s }})
}

// named finds a tool that must be there.
func (r *rig) named(s *Set, name string) tool.Tool {
	r.t.Helper()
	list := s.Tools(r.t.Context())
	for _, t := range list {
		if t.Spec().Name == name {
			return t
		}
	}
	r.t.Fatalf("there is no tool %s in %v; %+v", name, toolNames(list), s.States())
	return nil
}

// run calls a tool, which must give a result.
func (r *rig) run(t tool.Tool, args any, change ...func(*tool.Call)) tool.Result {
	r.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	c := tool.Call{ID: "call-1", Args: raw, Session: "s1"}
	for _, f := range change {
		f(&c)
	}
	res, err := t.Run(r.t.Context(), r.box, c)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

func (r *rig) reported() Status {
	r.t.Helper()
	select {
	case s := <-r.reports:
		return s
	case <-r.t.Context().Done():
		r.t.Fatal("nothing was reported")
		return Status{}
	}
}

func toolNames(list []tool.Tool) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.Spec().Name)
	}
	return out
}

// good is a result with this text.
func good(t *testing.T, r tool.Result, want string) {
	t.Helper()
	if r.Failed || r.Unknown || r.Text != want {
		t.Errorf("%+v, want %q", r, want)
	}
}

// bad is a failed result with these words in it.
func bad(t *testing.T, r tool.Result, words ...string) {
	t.Helper()
	for _, w := range words {
		if !r.Failed || r.Unknown || !strings.Contains(r.Text, w) {
			t.Errorf("%+v, want a failure with %q", r, w)
		}
	}
}

// unknown is an unknown result.
func unknown(t *testing.T, r tool.Result) {
	t.Helper()
	if !r.Unknown || r.Failed || !strings.Contains(r.Text, "unknown") {
		t.Errorf("%+v, want an unknown outcome", r)
	}
}

func key(s string) secret.Secret { return secret.New(s) }

// drain reads a request's body, so that its sender is done with it.
func drain(r *http.Request) []byte {
	b, _ := io.ReadAll(r.Body)
	return b
}
