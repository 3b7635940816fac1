package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
		`deckhand_http_request_duration_seconds_count{method="GET",route="/api/settings"} 2`, `deckhand_http_request_duration_seconds_bucket{method="GET",route="/api/settings",le="0.005"} 2`,
		`deckhand_http_request_duration_seconds_bucket{method="GET",route="/api/settings",le="0.0025"} 0`, "go_goroutines ",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is missing", line)
		}
	}
	if strings.Contains(text, `deckhand_http_request_duration_seconds_count{method="GET",route="/api/stream"}`) {
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

// The variables of OpenTelemetry set headers, compression and certificates, and a rejection is reported.
func TestCollectorOptions(t *testing.T) {
	type received struct {
		header http.Header
		body   []byte
	}
	got := make(chan received, 10)
	answer := func(w http.ResponseWriter) {}
	collector := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, _ := io.ReadAll(unpacked)
		got <- received{r.Header, b}
		answer(w)
	}))
	defer collector.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", authority)
	t.Setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "tenant=other")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "api-key=a%20b, tenant=c")
	send := func() string {
		t.Helper()
		var log bytes.Buffer
		tracer, err := NewTracer(t.Context(), collector.URL, "1.2.3", slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		_, end := tracer.Span(t.Context(), "GET /packed")
		end(200)
		if err := tracer.Close(t.Context()); err != nil {
			return err.Error()
		}
		return log.String()
	}
	if problem := send(); problem != "" {
		t.Error(problem)
	}
	first := <-got
	if h := first.header; h.Get("Api-Key") != "a b" || h.Get("Tenant") != "c" || h.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("headers: %v", h)
	}
	if !bytes.Contains(first.body, []byte("GET /packed")) {
		t.Error("the span is missing")
	}
	answer = func(w http.ResponseWriter) { // ExportTraceServiceResponse{partial_success: {rejected_spans: 1, error_message: "full"}}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write([]byte("\x0a\x08\x08\x01\x12\x04full"))
	}
	if problem := send(); !strings.Contains(problem, "rejected 1 spans: full") {
		t.Errorf("a rejection was reported as %q", problem)
	}
	answer = func(w http.ResponseWriter) { http.Error(w, "who are you", http.StatusUnauthorized) }
	if problem := send(); !strings.Contains(problem, "401") || !strings.Contains(problem, "who are you") {
		t.Errorf("a refusal was reported as %q", problem)
	}
}

// A variable that cannot be used is named when the server starts; header values may be secret and are not shown.
func TestCollectorOptionsRefused(t *testing.T) {
	for variable, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_HEADERS": "s3cret", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nonexistent/ca.pem", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=%zz",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			_, err := NewTracer(t.Context(), "https://127.0.0.1:1", "x", slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), variable) || strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
		})
	}
	certificate := filepath.Join(t.TempDir(), "none.pem")
	if err := os.WriteFile(certificate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate)
	if _, err := NewTracer(t.Context(), "https://127.0.0.1:1", "x", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Error(err)
	}
}
