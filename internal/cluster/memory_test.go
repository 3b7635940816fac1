package cluster_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/cluster"
	"deckhand/internal/cluster/clustertest"
	"deckhand/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	clustertest.Run(t, func(*testing.T) clustertest.Rig {
		var mu sync.Mutex
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		m := cluster.NewMemory(10*time.Second, func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		})
		return clustertest.Rig{
			Process: func() clustertest.Process { return clustertest.Process{Leases: m, Wakes: m} },
			Advance: func(d time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(d)
			},
		}
	})
}

// The only member of a process need not renew its lease.
func TestLeaseWithoutEnd(t *testing.T) {
	now := time.Now()
	m := cluster.NewMemory(0, func() time.Time { return now })
	if err := m.Hold(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	now = now.Add(1000 * time.Hour)
	if live, err := m.Live(t.Context()); err != nil || !slices.Equal(live, []string{"a"}) {
		t.Fatalf("live: %v %v", live, err)
	}
	if err := m.Renew(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if err := m.Release(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if live, err := m.Live(t.Context()); err != nil || len(live) > 0 {
		t.Fatalf("live: %v %v", live, err)
	}
}

func TestAnnouncer(t *testing.T) {
	m := cluster.NewMemory(0, nil)
	got := make(chan cluster.Wake, 2)
	stop, err := m.Subscribe("b", func(w cluster.Wake) { got <- w })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	a := cluster.Announcer{Wakes: m, Member: "a"}
	a.Appended("s", 3)
	a.Changed(session.Row{ID: "s", Last: 3, Holder: "b"})
	for _, want := range []cluster.Wake{
		{Kind: cluster.Grew, From: "a", Session: "s", Last: 3},
		{Kind: cluster.RowChanged, From: "a", Session: "s", Last: 3, Holder: "b"},
	} {
		if w := <-got; w != want {
			t.Errorf("got %+v, want %+v", w, want)
		}
	}
}
