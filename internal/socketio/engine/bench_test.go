package engine

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// flood sends messages as fast as they are taken.
func flood(size int) func(context.Context, *Conn) {
	m := Message{Data: bytes.Repeat([]byte{'x'}, size)}
	return func(ctx context.Context, c *Conn) {
		for c.Send(ctx, m) == nil {
		}
	}
}

// sink takes messages as fast as they come.
func sink(ctx context.Context, c *Conn) {
	for {
		if _, err := c.Receive(ctx); err != nil {
			return
		}
	}
}

func benchmarked(b *testing.B, serve func(context.Context, *Conn)) string {
	server := New(Options{}, serve)
	web := httptest.NewServer(server)
	b.Cleanup(func() {
		server.Close()
		web.Close()
	})
	return web.URL + "/?"
}

func perSecond(b *testing.B, messages int) {
	b.ReportMetric(float64(messages)/b.Elapsed().Seconds(), "messages/s")
}

func benchmarkSocket(b *testing.B, serve func(context.Context, *Conn)) *websocket.Conn {
	conn, _, err := websocket.Dial(b.Context(), benchmarked(b, serve)+onSocket, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.CloseNow() })
	if _, _, err := conn.Read(b.Context()); err != nil {
		b.Fatal(err)
	}
	return conn
}

func BenchmarkWebSocketDown(b *testing.B) {
	conn := benchmarkSocket(b, flood(200))
	for b.Loop() {
		if _, _, err := conn.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

func BenchmarkWebSocketUp(b *testing.B) {
	conn := benchmarkSocket(b, sink)
	m := []byte("4" + strings.Repeat("x", 200))
	for b.Loop() {
		if err := conn.Write(b.Context(), websocket.MessageText, m); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

func BenchmarkWebSocketEcho(b *testing.B) {
	conn := benchmarkSocket(b, echo)
	m := []byte("4" + strings.Repeat("x", 200))
	for b.Loop() {
		if err := conn.Write(b.Context(), websocket.MessageText, m); err != nil {
			b.Fatal(err)
		}
		if _, _, err := conn.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

// benchmarkPoller opens a connection on polling.
func benchmarkPoller(b *testing.B, serve func(context.Context, *Conn)) *poller {
	b.Cleanup(http.DefaultClient.CloseIdleConnections)
	p := &poller{b, benchmarked(b, serve) + polling}
	p.url += "&sid=" + readOpening(b, p.do(http.MethodGet, "")).SID
	return p
}

type poller struct {
	*testing.B
	url string
}

func (p *poller) do(method, body string) string {
	req, err := http.NewRequestWithContext(p.Context(), method, p.url, strings.NewReader(body))
	if err != nil {
		p.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		p.Fatal(err)
	}
	defer res.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK {
		p.Fatal(res.Status, err)
	}
	return b.String()
}

func BenchmarkPollingDown(b *testing.B) {
	p := benchmarkPoller(b, flood(200))
	messages := 0
	for b.Loop() {
		messages += 1 + strings.Count(p.do(http.MethodGet, ""), separated)
	}
	perSecond(b, messages)
}

func BenchmarkPollingUp(b *testing.B) {
	p := benchmarkPoller(b, sink)
	m := "4" + strings.Repeat("x", 200)
	for b.Loop() {
		p.do(http.MethodPost, m)
	}
	perSecond(b, b.N)
}

func BenchmarkPollingEcho(b *testing.B) {
	p := benchmarkPoller(b, echo)
	m := "4" + strings.Repeat("x", 200)
	for b.Loop() {
		p.do(http.MethodPost, m)
		p.do(http.MethodGet, "")
	}
	perSecond(b, b.N)
}
