package telemetry

import (
	"io"
	"log/slog"
)

// NewLogger logs at a level (debug, info, warn or error) and in a format (text or json). wrap puts a handler before
// the one that writes.
func NewLogger(w io.Writer, levelName, format string, wrap func(slog.Handler) slog.Handler) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(levelName))
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, options)
	if format == "json" {
		h = slog.NewJSONHandler(w, options)
	}
	return slog.New(wrap(h))
}
