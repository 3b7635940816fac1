package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	return w.Body.String()
}

func TestMetrics(t *testing.T) {
	m := NewMetrics("1.2.3")
	level := 7.0
	m.Gauge("deckhand_level", "A level.", func() float64 { return level })
	m.Counter("deckhand_things_total", "Things.", func() float64 { return 42 })
	m.Request("/api/settings", "GET", 200, 3*time.Millisecond, false)
	m.Request("/api/settings", "GET", 200, 3*time.Millisecond, false)
	m.Request("/api/stream", "GET", 200, time.Hour, true)
	level = 8
	text := scrape(t, m)
	for _, line := range []string{
		`deckhand_build_info{version="1.2.3"} 1`, `deckhand_level 8`, `deckhand_things_total 42`,
		`deckhand_http_requests_total{method="GET",route="/api/settings",status="200"} 2`, `deckhand_http_requests_total{method="GET",route="/api/stream",status="200"} 1`,
		`deckhand_http_request_seconds_count{method="GET",route="/api/settings"} 2`, `deckhand_http_request_seconds_bucket{method="GET",route="/api/settings",le="0.005"} 2`,
		`deckhand_http_request_seconds_bucket{method="GET",route="/api/settings",le="0.0025"} 0`, "go_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(text, `deckhand_http_request_seconds_count{method="GET",route="/api/stream"}`) {
		t.Error("the time of a reader counts as response time")
	}
	if again := scrape(t, NewMetrics("x")); strings.Contains(again, "deckhand_level") {
		t.Error("two registries share something")
	}
}

// Spans reach the collector with their last name and the status, at the latest when the server ends.
func TestTraces(t *testing.T) {
	got := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- append([]byte(r.URL.Path+" "), b...)
	}))
	defer collector.Close()
	tracer, err := NewTracer(t.Context(), collector.URL, "1.2.3", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := tracer.Span(t.Context(), "GET")
	Name(ctx, "GET /api/settings")
	end(418)
	_, bare := tracer.Span(context.Background(), "background")
	bare(0)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := <-got
	if !bytes.HasPrefix(b, []byte("/v1/traces ")) { // where a collector listens, when an endpoint has no path
		t.Errorf("sent to %.20s", b)
	}
	for _, part := range []string{"GET /api/settings", "background", "deckhand", "1.2.3", "http.response.status_code"} {
		if !bytes.Contains(b, []byte(part)) {
			t.Errorf("%s is missing", part)
		}
	}
	if n := bytes.Count(b, []byte("http.response.status_code")); n != 1 {
		t.Errorf("%d statuses", n)
	}
}

// A collector that is away costs spans, never requests.
func TestCollectorAway(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	collector.Close()
	tracer, err := NewTracer(t.Context(), collector.URL, "x", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for range 5000 { // more than any queue holds
		_, end := tracer.Span(t.Context(), "x")
		end(200)
	}
	_ = tracer.Close(t.Context()) // which does not wait for a collector that is away
}

// The address for metrics serves metrics and profiles, but not the command line.
func TestPrivate(t *testing.T) {
	t.Parallel()
	handler := NewMetrics("v1").Private()
	for path, want := range map[string]int{
		"/metrics": 200, "/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine?debug=1": 200, "/debug/pprof/cmdline": 404, "/": 404,
	} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || w.Body.Len() == 0 {
			t.Errorf("%s gave %d with %d bytes", path, w.Code, w.Body.Len())
		}
	}
}
