package socketio

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deckhand/internal/socketio/engine"
)

// The test suites that the protocols' authors publish, run unchanged but for the
// address: DECKHAND_PROTOCOL_SUITES names a clone of the socket.io repository, after
// npm ci in the folder of each suite.
func TestPublishedSuites(t *testing.T) {
	folder := os.Getenv("DECKHAND_PROTOCOL_SUITES")
	if folder == "" {
		t.Skip("SKIPPED: DECKHAND_PROTOCOL_SUITES does not name the published protocol suites; docs/testing.md says how to get them")
	}
	// The pace that the suites are written for.
	pace := engine.Options{PingInterval: 300 * time.Millisecond, PingTimeout: 200 * time.Millisecond, MaxPayload: 1_000_000}
	echoes := engine.New(pace, func(ctx context.Context, c *engine.Conn) {
		for {
			m, err := c.Receive(ctx)
			if err != nil || c.Send(ctx, m) != nil {
				return
			}
		}
	})
	for name, handler := range map[string]interface {
		http.Handler
		Close()
	}{
		"engine.io-protocol/v4-test-suite": echoes,
		"socket.io-protocol/v5-test-suite": New(Options{Engine: pace}, map[string]Handler{"/": echo, "/custom": echo}),
	} {
		t.Run(name, func(t *testing.T) {
			url := start(t, handler)
			dir := filepath.Join(folder, "docs", filepath.FromSlash(name))
			suite, err := os.ReadFile(filepath.Join(dir, "test-suite.js"))
			if err != nil {
				t.Fatal(err)
			}
			// It imports its neighbours, so that the copy must be one too.
			ours := filepath.Join(dir, "test-suite-deckhand.js")
			defer os.Remove(ours)
			if err := os.WriteFile(ours, []byte(strings.Replace(string(suite), "http://localhost:3000", url, 1)), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "node_modules/.bin/mocha", filepath.Base(ours))
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
