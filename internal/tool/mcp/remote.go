package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deckhand/internal/tool"
)

const (
	// attemptTime bounds one attempt to reach a server, which may continue without a waiting
	// caller.
	attemptTime = 30 * time.Second
	// partingTime is how long a server may take to hear that we leave.
	partingTime = time.Second
	// oldVersion is spoken over SSE, which newer versions of the protocol do not have.
	oldVersion = "2025-11-25"
)

// remote is the link to a server at an address.
type remote struct {
	def    Server
	client *http.Client
	why    error // there can be no client
	sdk    *sdk.Client
	// changed says that the list of tools is not the newest.
	changed atomic.Bool
	// over ends calls when the link is closed.
	over   context.Context
	finish context.CancelFunc

	mu       sync.Mutex
	conn     *conn
	progress map[string]*watcher // by token
}

// conn is one connection.
type conn struct {
	session *sdk.ClientSession
	cancel  context.CancelFunc
	ended   chan struct{}
}

func (c *conn) alive() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

func newRemote(def Server, c *http.Client, session string) *remote {
	r := &remote{def: def, progress: map[string]*watcher{}}
	r.client, r.why = newLine(c, def, session)
	r.over, r.finish = context.WithCancel(context.Background())
	// Without capabilities the library refuses sampling and elicitation, and has no roots.
	r.sdk = sdk.NewClient(&sdk.Implementation{Name: "deckhand", Version: "1"}, &sdk.ClientOptions{
		Capabilities:                &sdk.ClientCapabilities{},
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true},
		Logger:                      slog.New(slog.DiscardHandler), // it quotes addresses and what servers say
		ToolListChangedHandler:      func(context.Context, *sdk.ToolListChangedRequest) { r.changed.Store(true) },
		ProgressNotificationHandler: r.heard,
	})
	return r
}

// alive is true while the connection stands.
func (r *remote) alive() bool {
	c := r.current()
	return c != nil && c.alive()
}

// fresh is true while the connection stands and no other list was announced.
func (r *remote) fresh() bool {
	return r.alive() && !r.changed.Load()
}

func (r *remote) current() *conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// tools connects if need be, and asks for the tools.
func (r *remote) tools(ctx context.Context) ([]offer, string, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	c := r.current()
	if c != nil && !c.alive() {
		r.drop(c)
		c = nil
	}
	if c == nil {
		var err error
		if c, err = r.connect(ctx); err != nil {
			return nil, "", r.plain(ctx, err)
		}
	}
	r.changed.Store(false)
	list, err := r.list(ctx, c)
	if err != nil {
		r.drop(c)
		return nil, "", r.plain(ctx, err)
	}
	offers, note := judge(list)
	return offers, note, nil
}

// connect makes a connection, which outlives ctx.
func (r *remote) connect(ctx context.Context) (*conn, error) {
	if r.why != nil {
		return nil, r.why
	}
	life, cancel := context.WithCancel(context.Background())
	untie := context.AfterFunc(ctx, cancel)
	session, err := r.sdk.Connect(life, r.transport(), r.options())
	if err != nil {
		cancel()
		return nil, err
	}
	c := &conn{session: session, cancel: cancel, ended: make(chan struct{})}
	go func() { // part waits for it
		defer close(c.ended)
		_ = session.Wait()
	}()
	late := !untie()
	r.mu.Lock()
	if late = late || r.over.Err() != nil; !late {
		r.conn = c
	}
	r.mu.Unlock()
	if late {
		r.part(c)
		return nil, context.Canceled
	}
	return c, nil
}

func (r *remote) transport() sdk.Transport {
	if r.def.Kind == SSE {
		return &sdk.SSEClientTransport{Endpoint: r.def.URL, HTTPClient: r.client, MaxEventSize: maxAnswer}
	}
	return &sdk.StreamableClientTransport{Endpoint: r.def.URL, HTTPClient: r.client, MaxEventSize: maxAnswer}
}

func (r *remote) options() *sdk.ClientSessionOptions {
	if r.def.Kind == SSE {
		return &sdk.ClientSessionOptions{ProtocolVersion: oldVersion}
	}
	return nil
}

// list asks for all tools, page by page.
func (r *remote) list(ctx context.Context, c *conn) ([]described, error) {
	var out []described
	if caps := c.session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		return nil, nil // it has other things to offer
	}
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := c.session.ListTools(ctx, params)
		if err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			d := described{name: t.Name, title: t.Title, description: t.Description}
			d.schema, _ = json.Marshal(t.InputSchema)
			if a := t.Annotations; a != nil {
				d.readOnly, d.idempotent = a.ReadOnlyHint, a.IdempotentHint
			}
			out = append(out, d)
		}
		if page.NextCursor == "" || len(out) > maxTools {
			return out, nil
		}
		params = &sdk.ListToolsParams{Cursor: page.NextCursor}
	}
	return nil, errors.New("its list of tools does not end")
}

// drop gives a connection up.
func (r *remote) drop(c *conn) {
	r.mu.Lock()
	if r.conn == c {
		r.conn = nil
	}
	r.mu.Unlock()
	r.part(c)
}

// part ends a connection, politely if the server lets us.
func (r *remote) part(c *conn) {
	timer := time.AfterFunc(partingTime, c.cancel)
	_ = c.session.Close()
	timer.Stop()
	c.cancel()
	<-c.ended
}

// rest closes the connection until it is needed again.
func (r *remote) rest() {
	if c := r.current(); c != nil {
		r.drop(c)
	}
}

// close ends everything, calls too.
func (r *remote) close() {
	r.finish()
	r.rest()
}

// call calls a tool over the connection there is.
func (r *remote) call(ctx context.Context, _ tool.Box, name string, call tool.Call) (answer, error) {
	c := r.current()
	if c == nil || !c.alive() {
		return answer{unsent: true}, nil
	}
	limited, cancel := context.WithTimeout(ctx, r.def.timeout())
	defer cancel()
	defer context.AfterFunc(r.over, cancel)()
	limited, sent := withRecord(limited)
	params := &sdk.CallToolParams{Name: name, Arguments: arguments(call.Args)}
	if call.Live != nil && call.ID != "" {
		params.SetProgressToken(call.ID)
		defer r.watch(call.ID, call.Live)()
	}
	res, err := c.session.CallTool(limited, params)
	if err == nil {
		return r.answered(res), nil
	}
	if ctx.Err() != nil {
		return answer{}, ctx.Err()
	}
	a, broken := r.outcome(limited, sent, err)
	if broken {
		r.drop(c)
	}
	return a, nil
}

func (r *remote) answered(res *sdk.CallToolResult) answer {
	if len(res.InputRequests) > 0 {
		return answer{failed: "The tool asks for further input, which agents cannot give."}
	}
	raw, err := json.Marshal(res)
	if err != nil {
		return answer{failed: "The tool's result could not be understood."}
	}
	return answer{raw: raw}
}

// rejected is the code under which the library hides that a message was not accepted.
const rejected = -32005

// outcome says what an error means for the call: that it was not made, that it was refused, or
// that it is unknown; and whether the connection is broken.
func (r *remote) outcome(limited context.Context, sent *record, err error) (a answer, broken bool) {
	status := int(sent.status.Load())
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code == rejected {
		said = nil
	}
	refusal := fmt.Sprintf("The MCP server refused the call: %d %s.", status, http.StatusText(status))
	switch {
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return answer{failed: fmt.Sprintf("The tool timed out after %v; it was told to stop.", r.def.timeout())}, false
	case !sent.sent.Load():
		return answer{unsent: true}, true
	case sent.huge.Load():
		return answer{failed: fmt.Sprintf("The tool was called, but its result has more than %d MiB and was dropped.", maxAnswer>>20)}, true
	case status == http.StatusBadRequest, status == http.StatusNotFound: // so they say that they forgot our session
		return answer{unsent: true, failed: refusal}, true
	case said != nil:
		return answer{failed: r.def.scrub("The MCP server responded: " + said.Message)}, false
	case status >= 400 && status < 500, status == http.StatusServiceUnavailable:
		return answer{failed: refusal}, true
	}
	return answer{unknown: true}, true
}

// plain says for people why a server cannot be reached.
func (r *remote) plain(ctx context.Context, err error) error {
	var dns *net.DNSError
	var at *url.Error
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("it did not answer within %v", attemptTime)
	case errors.As(err, &dns):
		return fmt.Errorf("there is no host %q", dns.Name)
	case errors.As(err, &at): // whose text begins with the whole address
		err = at.Err
	case quotesAnswer(err):
		return errors.New("the server at this URL is not an MCP server")
	}
	return errors.New(strings.ReplaceAll(err.Error(), "rejected by transport: ", ""))
}

// quotesAnswer says whether the library's error repeats what a server sent in no
// shape of the protocol. It is not told: the address may be no tool server's.
func quotesAnswer(err error) bool {
	var said *jsonrpc.Error
	if errors.As(err, &said) && said.Code != rejected {
		return false // in the words of a tool server
	}
	for _, words := range []string{"malformed", "missing endpoint", "first event is", "invalid endpoint", "failed to decode", "failed to read body"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// arguments are an object, whatever the model left out.
func arguments(raw json.RawMessage) json.RawMessage {
	if !isObject(raw) {
		return json.RawMessage("{}")
	}
	return raw
}

func (s Server) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return time.Minute
}
