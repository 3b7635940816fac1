package postgres

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"deckhand/internal/cluster"
	"deckhand/internal/cluster/clustertest"
	"deckhand/internal/store/postgres/members"
	"deckhand/internal/store/postgres/pgtest"
)

// The suite of cluster with leases in a database, directly and through PgBouncer. Wakes are in memory.
func TestLeases(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(string) string{"direct": func(a string) string { return a }, "pgbouncer": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pgtest.Shared(t)
			if through == nil {
				through = pgtest.Shared(t).Bounced(t)
			}
			clustertest.Run(t, func(t *testing.T) clustertest.Rig {
				address := through(pgtest.Shared(t).Copy(t, base))
				var now atomic.Int64
				now.Store(noon.UnixMicro())
				wakes := cluster.NewMemory(0, nil)
				return clustertest.Rig{
					Process: func() clustertest.Process {
						db := openAt(t, address)
						return clustertest.Process{Leases: members.WithClock(db.Leases(cluster.Info{}).(*members.Leases), now.Load), Wakes: wakes}
					},
					Advance: func(d time.Duration) { now.Add(d.Microseconds()) },
				}
			})
		})
	}
}

// What members say of themselves is known to the others, also after their end.
func TestDirectory(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	one := db.Leases(cluster.Info{Machine: "m1", Host: "one.example.org", Dir: "/data/one", Address: "10.0.0.1:7000", Worker: true})
	two := db.Leases(cluster.Info{Machine: "m2", Host: "two.example.org"})
	must(t, one.Hold(t.Context(), "m1.a"))
	must(t, two.Hold(t.Context(), "m2.b"))
	must(t, one.Release(t.Context(), "m1.a"))
	must(t, one.Hold(t.Context(), "m1.c"))
	must(t, two.Release(t.Context(), "m2.b"))
	all, err := two.Members(t.Context())
	must(t, err)
	if m, live := cluster.On(all, "m1"); !live || m.Name != "m1.c" || m.Address != "10.0.0.1:7000" || m.Host != "one.example.org" || m.Dir != "/data/one" {
		t.Errorf("got %+v, %v", m, live)
	}
	if m, live := cluster.On(all, "m2"); live || m.Host != "two.example.org" {
		t.Errorf("got %+v, %v", m, live)
	}
	must(t, one.Reach(t.Context(), "m1.c", []string{"engine a", "engine b"}, time.Hour))
	must(t, two.Reach(t.Context(), "m2.b", []string{"engine b"}, time.Hour)) // it has ended
	all, err = two.Members(t.Context())
	must(t, err)
	if m := cluster.Reaching(all, "engine b"); len(m) != 1 || m[0].Name != "m1.c" || len(cluster.Reaching(all, "engine")) > 0 {
		t.Errorf("the engine is reached by %+v", m)
	}
	must(t, one.Reach(t.Context(), "m1.c", nil, time.Hour))
	all, err = two.Members(t.Context())
	must(t, err)
	if m := cluster.Reaching(all, "engine b"); len(m) > 0 {
		t.Errorf("the engine is still reached by %+v", m)
	}
	if w := cluster.Workers(all); len(w) != 1 || w[0].Name != "m1.c" {
		t.Errorf("workers: %+v", w)
	}
}

// Values are taken once, and a lock ends with its holder.
func TestShared(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	var now atomic.Int64
	now.Store(noon.UnixMicro())
	l := members.WithClock(db.Leases(cluster.Info{}).(*members.Leases), now.Load)
	must(t, l.Put(t.Context(), "ticket a", "one", time.Minute))
	must(t, l.Put(t.Context(), "ticket b", "two", time.Hour))
	names, last, err := l.Newer(t.Context(), "ticket ", 0)
	must(t, err)
	if len(names) != 2 || !names["ticket a"].Equal(noon.Add(time.Minute)) {
		t.Errorf("names: %v", names)
	}
	if names, _, err := l.Newer(t.Context(), "ticket ", last); err != nil || len(names) != 0 {
		t.Errorf("newer names: %v %v", names, err)
	}
	now.Add(time.Minute.Microseconds())
	for name, want := range map[string]string{"ticket a": "", "ticket b": "two", "ticket c": ""} {
		if v, found, err := l.Take(t.Context(), name); err != nil || found != (want != "") || found && v != want {
			t.Errorf("%s: %q %v %v", name, v, found, err)
		}
		if _, found, err := l.Take(t.Context(), name); err != nil || found {
			t.Errorf("%s a second time: %v %v", name, found, err)
		}
	}

	must(t, l.Hold(t.Context(), "a"))
	must(t, l.Hold(t.Context(), "b"))
	release, err := l.Lock(t.Context(), "lock", "a")
	must(t, err)
	got := make(chan func(), 1)
	go func() {
		release, err := l.Lock(context.Background(), "lock", "b")
		if err != nil {
			t.Error(err)
		}
		got <- release
	}()
	select {
	case <-got:
		t.Fatal("two members have the lock")
	case <-time.After(50 * time.Millisecond):
	}
	release()
	(<-got)()
	_, err = l.Lock(t.Context(), "lock", "a")
	must(t, err)
	must(t, l.Release(t.Context(), "a")) // it was killed
	release, err = l.Lock(t.Context(), "lock", "b")
	must(t, err)
	release()
}

// A lock that is released while the database is away is free when it is back, although its holder is alive.
func TestUnlockedWhileAway(t *testing.T) {
	t.Parallel()
	pgtest.Available(t)
	server, err := pgtest.Start()
	must(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	l := members.WithClock(openAt(t, server.Database(t)).Leases(cluster.Info{}).(*members.Leases), noon.UnixMicro) // nothing expires
	must(t, l.Hold(t.Context(), "a"))
	must(t, l.Hold(t.Context(), "b"))
	release, err := l.Lock(t.Context(), "lock", "a")
	must(t, err)
	must(t, server.Kill())
	release()
	must(t, server.Restart())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		release, err := l.Lock(ctx, "lock", "b")
		if err == nil {
			release()
			return
		}
		if ctx.Err() != nil {
			t.Fatal("the lock was not released")
		}
	}
}
