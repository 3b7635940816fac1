package egress

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a ledger that does not answer, like a database behind a broken network.
type silent struct{ Ledger }

func (silent) Record(ctx context.Context, _ string, _ []Entry) error {
	<-ctx.Done()
	return ctx.Err()
}

// However many sandboxes have entries, a ledger that does not answer is not waited for longer than one write may take.
func TestCloseWithSilentLedger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder(silent{}, slog.New(slog.DiscardHandler))
		for i := range 100 {
			r.add(fmt.Sprint(i), Entry{})
		}
		begin := time.Now()
		if err := r.close(); err == nil {
			t.Error("nothing was lost")
		}
		if took := time.Since(begin); took > writeTime {
			t.Errorf("it took %v", took)
		}
	})
}
