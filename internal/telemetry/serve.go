package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"
)

// Serve serves on an address of its own until ctx ends.
func Serve(ctx context.Context, addr string, handler http.Handler) error {
	web := &http.Server{Addr: addr, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// Private is what the address for metrics serves: metrics, and profiles of the
// running program for go tool pprof. Profiles hold no data of users; the command
// line, which pprof offers too, is left out, since flags may carry secrets.
func (m *Metrics) Private() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.Handle("GET /debug/pprof/cmdline", http.NotFoundHandler())
	return mux
}
