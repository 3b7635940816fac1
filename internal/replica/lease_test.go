package replica

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"deckhand/internal/cluster"
)

// A server knows that others have ended only when it has renewed its own lease for as long as a lease lasts, without a failure.
func TestUnsure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lasts = 10 * time.Second
		l := &lease{Leases: cluster.NewMemory(lasts, nil)}
		expect := func(when string, want time.Duration) {
			t.Helper()
			if got := l.unsure(); got != want {
				t.Errorf("%s: unsure for %v, want %v", when, got, want)
			}
		}
		renews := func(times int) {
			t.Helper()
			for range times {
				time.Sleep(time.Second)
				if err := l.Renew(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
		}
		outage, end := context.WithCancel(t.Context())
		end()
		expect("before its first lease", lasts)
		if err := l.Hold(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		expect("with a new lease", lasts)
		renews(4)
		expect("after a while", lasts-4*time.Second)
		renews(20)
		expect("later", 0)
		if l.Renew(outage, "a") == nil {
			t.Fatal("it was renewed")
		}
		expect("in an outage", lasts)
		renews(3)
		expect("after a short outage", lasts-2*time.Second)
		renews(20)
		expect("long after it", 0)
		time.Sleep(2 * lasts)
		if err := l.Renew(t.Context(), "a"); err != cluster.ErrExpired {
			t.Fatal(err)
		}
		expect("when its lease has expired", lasts)
		l.interrupt()
		if err := l.Hold(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		expect("with another lease", lasts)
		renews(10)
		expect("and later", 0)
	})
}
