package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Web serves the API over HTTP.
type Web struct {
	http.Server
	logger *slog.Logger
	abort  context.CancelFunc
}

// NewWeb returns the server of a handler.
func NewWeb(h http.Handler, logger *slog.Logger) *Web {
	requests, abort := context.WithCancel(context.Background())
	return &Web{logger: logger, abort: abort, Server: http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return requests }}}
}

// End accepts no more requests, and aborts those that take longer than a time.
func (w *Web) End(within time.Duration) error {
	defer w.abort()
	grace, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := w.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		w.logger.WarnContext(grace, "requests in progress did not finish in time and are aborted", "time", within)
		err = w.Close()
	}
	return err
}
