package connect

import (
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moby/moby/client"
)

// A request that follows a lost connection is repeated until the engine is back, and no longer than Away.
func TestPatience(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "engine.sock")
	engine, err := Open("unix://" + socket)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	away := func() error { _, err := engine.Ping(t.Context(), client.PingOptions{}); return err }
	down := away()
	if !client.IsErrConnectionFailed(down) {
		t.Fatalf("an engine that does not exist: %v", down)
	}

	var p Patience
	if err := p.Do(t.Context(), away); !errors.Is(err, down) && !client.IsErrConnectionFailed(err) {
		t.Errorf("without a lost connection: %v", err)
	}
	p.Lost()
	tries := 0
	err = p.Do(t.Context(), func() error {
		if tries++; tries == 3 { // it is back
			l, err := net.Listen("unix", socket)
			if err != nil {
				return err
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("OK")) })}
			go func() { _ = server.Serve(l) }()
			t.Cleanup(func() { server.Close() })
		}
		return away()
	})
	if err != nil || tries != 3 {
		t.Errorf("after %d tries: %v", tries, err)
	}
	synctest.Test(t, func(t *testing.T) {
		var p Patience
		p.Lost()
		began := time.Now()
		if err := p.Do(t.Context(), func() error { return down }); !errors.Is(err, down) {
			t.Errorf("an engine that stays away: %v", err)
		}
		if took := time.Since(began); took < Away || took > Away+time.Second {
			t.Errorf("it was waited for %v", took)
		}
	})
}
