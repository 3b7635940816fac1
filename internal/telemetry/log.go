package telemetry

import (
	"io"
	"log/slog"

	"deckhand/internal/logline"
)

// Level returns a log level by its name (debug, info, warn or error). It can be changed while the program runs.
func Level(name string) *slog.LevelVar {
	level := &slog.LevelVar{}
	_ = level.UnmarshalText([]byte(name)) // the flag allows only known names
	return level
}

// NewLogger logs at a level and in a format (text or json). wrap puts a handler before
// the one that writes. Lines have the request and the conversation of their context.
func NewLogger(w io.Writer, level slog.Leveler, format string, wrap func(slog.Handler) slog.Handler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewTextHandler(w, options)
	if format == "json" {
		h = slog.NewJSONHandler(w, options)
	}
	return slog.New(logline.Handler(wrap(h)))
}
