package pg

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"deckhand/internal/store/postgres/pgtest"
)

// The number of callers that wait for a connection is limited. Further callers get an error at once.
func TestWaitingCallersAreLimited(t *testing.T) {
	t.Parallel()
	config, err := pgconn.ParseConfig(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	db := New(config, 1)
	defer db.Close()
	begun, end := make(chan struct{}), make(chan struct{})
	done := make(chan error, maxWaiting+1)
	go func() {
		done <- db.View(context.Background(), func(*Conn) error { close(begun); <-end; return nil })
	}()
	<-begun
	for range maxWaiting {
		go func() { done <- db.View(context.Background(), func(*Conn) error { return nil }) }()
	}
	for db.pool.waiting.Load() < maxWaiting {
		runtime.Gosched()
	}
	if err := db.View(t.Context(), func(*Conn) error { return nil }); !errors.Is(err, ErrOverloaded) {
		t.Errorf("one too many: %v", err)
	}
	close(end)
	for range maxWaiting + 1 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
