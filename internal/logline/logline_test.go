package logline

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Lines have the request and the conversation of their context once, whatever they say themselves.
func TestHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	ctx := With(With(t.Context(), About{Request: "r1"}), About{Session: "s1"})
	for want, write := range map[string]func(){
		"level=INFO msg=a request=r1 session=s1": func() { log.InfoContext(ctx, "a") },
		"level=WARN msg=b session=s2 request=r1": func() { log.WarnContext(ctx, "b", "session", "s2") },
		"level=INFO msg=c session=s3 request=r1": func() { log.With("session", "s3").InfoContext(ctx, "c") },
		"level=INFO msg=d":                       func() { log.InfoContext(t.Context(), "d") },
		"level=ERROR msg=e request=r2 error=\"bad\"": func() {
			log.ErrorContext(With(t.Context(), About{Request: "r2"}), "e", "request", "r2", "error", "bad")
		},
	} {
		out.Reset()
		write()
		if got := strings.TrimSpace(out.String()); got != strings.ReplaceAll(want, `"bad"`, "bad") {
			t.Errorf("got %q, wanted %q", got, want)
		}
	}
}
