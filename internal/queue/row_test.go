package queue_test

import (
	"testing"
	"time"

	"deckhand/internal/queue"
)

// Each change of a row has a later time than the last, also if the clock goes back.
func TestLater(t *testing.T) {
	t.Parallel()
	before := time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, at := range []time.Time{before.Add(-time.Hour), before, before.Add(999)} {
		if got := queue.Later(at, before); !got.Equal(before.Add(time.Microsecond)) {
			t.Errorf("a change at %v after %v has the time %v", at, before, got)
		}
	}
	if at := before.Add(time.Second).In(time.FixedZone("", 3600)); !queue.Later(at, before).Equal(at) || queue.Later(at, before).Location() != time.UTC {
		t.Errorf("a later change has the time %v, want %v in UTC", queue.Later(at, before), at)
	}
}
