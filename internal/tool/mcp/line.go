package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"

	"deckhand/internal/outbound"
)

// maxAnswer bounds an answer that comes in one piece. The library bounds the
// pieces of those that stream, to as much.
const maxAnswer = 16 << 20

// line is the transport below the library: it adds our headers where they
// belong, bounds what comes back, and takes note of what became of a call.
type line struct {
	base   http.RoundTripper
	origin string
	header http.Header
}

// newLine wraps a client for one server.
func newLine(c *http.Client, s Server, session string) (*http.Client, error) {
	if c == nil {
		return nil, errors.New("this server does not connect to MCP servers")
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("the address is not a URL")
	}
	h := http.Header{}
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("Authorization", "Bearer "+key)
		h.Set("S", key)
		h.Set("X-Session-API-Key", key)
	}
	if session != "" {
		h.Set("X-OpenHands-ServerConversation-ID", session)
	}
	out := *c
	out.Timeout = 0 // a stream lasts; calls have their own bounds
	base := c.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	out.Transport = &line{base: base, origin: outbound.Origin(u), header: h}
	return &out, nil
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Response == nil && outbound.Origin(req.URL) != l.origin {
		// An SSE server says itself where messages go. Elsewhere is not where the user wanted to be.
		return nil, errors.New("the server wants its messages sent to another host, which is refused")
	}
	ctx := req.Context()
	r := recordOf(ctx)
	if r != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { r.sent.Store(true) }})
	}
	done := context.CancelFunc(func() {})
	if req.Method == http.MethodDelete { // a goodbye, which the library would wait for longer than we like
		ctx, done = context.WithTimeout(ctx, partingTime)
	}
	out := req.Clone(ctx)
	if l.home(req) {
		for name, values := range l.header {
			out.Header[name] = values
		}
	}
	res, err := l.base.RoundTrip(out)
	if err != nil {
		done()
		return nil, err
	}
	if r != nil {
		r.status.Store(int32(res.StatusCode))
	}
	body := &bounded{ReadCloser: res.Body, left: maxAnswer, record: r, done: done}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind == "text/event-stream" {
		body.left = math.MaxInt64 - 1
	}
	res.Body = body
	return res, nil
}

// home is true while a request and all redirects that led to it stay at the
// server's own address. What is once away gets no keys any more.
func (l *line) home(req *http.Request) bool {
	for {
		if outbound.Origin(req.URL) != l.origin {
			return false
		}
		if req.Response == nil || req.Response.Request == nil {
			return true
		}
		req = req.Response.Request
	}
}

// bounded fails when more comes than is allowed.
type bounded struct {
	io.ReadCloser
	left   int64
	record *record
	done   func()
}

func (b *bounded) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		if b.record != nil {
			b.record.huge.Store(true)
		}
		return 0, fmt.Errorf("the answer has more than %d MiB", maxAnswer>>20)
	}
	return n, err
}

// record is what became of the message of one call.
type record struct {
	// sent says that the server may have seen it.
	sent   atomic.Bool
	status atomic.Int32
	// huge says that the answer was too large to be read.
	huge atomic.Bool
}

type recordKey struct{}

// withRecord makes a record of what is sent under the context.
func withRecord(ctx context.Context) (context.Context, *record) {
	r := &record{}
	return context.WithValue(ctx, recordKey{}, r), r
}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}
