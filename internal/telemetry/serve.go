package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Serve serves metrics on an address of their own until ctx ends.
func Serve(ctx context.Context, addr string, metrics http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	web := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}
