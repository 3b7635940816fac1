package health

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	api "deckhand/api/health"
)

type store struct{ ping, write error }

func (s *store) Ping(context.Context) error { return s.ping }
func (s *store) Healthy() error             { return s.write }

// Everyone can read the result of the readiness check, so it does not contain the address of the database. The log does, once.
func TestReadyHidesTheDatabase(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	db := &store{ping: errors.New("dial db.internal:5432")}
	ready := Ready(db, t.TempDir(), slog.New(slog.NewTextHandler(&out, nil)))
	for range 3 {
		if err := ready(t.Context()); err == nil || strings.Contains(err.Error(), "db.internal") {
			t.Errorf("ready: %v", err)
		}
	}
	if got := out.String(); strings.Count(got, "db.internal") != 1 {
		t.Errorf("logged %s", got)
	}
	db.ping, db.write = nil, errors.New("read-only")
	if err := ready(t.Context()); err == nil || err.Error() != "read-only" {
		t.Errorf("ready: %v", err)
	}
}

// A disk on which agents cannot write is a failure, not a warning.
func TestNearlyFullDisk(t *testing.T) {
	t.Parallel()
	for free, want := range map[int64]string{100: OK, 30: OK, 16: Failed, 1: Failed} {
		if got := disk(api.DiskSpace{Total: 200 << 20, Free: free << 20}); got.Status != want {
			t.Errorf("%d MB of 200 MB free: %s, wanted %s", free, got.Status, want)
		}
	}
}
