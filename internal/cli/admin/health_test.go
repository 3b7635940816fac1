package admin

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"deckhand/internal/cli"
	"deckhand/internal/control"
)

func TestHealth(t *testing.T) {
	status := http.StatusOK
	probe := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			t.Errorf("requested %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "Not ready: the disk is full")
	}
	plain, encrypted := httptest.NewServer(http.HandlerFunc(probe)), httptest.NewTLSServer(http.HandlerFunc(probe))
	defer plain.Close()
	defer encrypted.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, c := range map[string]struct {
		base   string
		status int
		want   string
	}{
		"ready":         {plain.URL, http.StatusOK, ""},
		"not ready":     {plain.URL, http.StatusServiceUnavailable, "the disk is full"},
		"not listening": {gone.URL, http.StatusOK, "connection refused"},
		"with TLS":      {encrypted.URL, http.StatusServiceUnavailable, ""},
		"no server":     {"", http.StatusOK, "start one with deckhand serve"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "health")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			if c.base != "" {
				l, err := control.Listen(dir)
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				go control.Serve(ctx, l, func(context.Context, string, string) string { return c.base + " https://public.example.org" })
			}
			status = c.status
			var out strings.Builder
			err = (&Health{DataDir: dir}).Run(t.Context(), &cli.Output{Stdout: &out, Stderr: io.Discard})
			if c.want == "" && (err != nil || out.String() != "ready\n") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %q, %v; want %q", out.String(), err, c.want)
			}
		})
	}
}
