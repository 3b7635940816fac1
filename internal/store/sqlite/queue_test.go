package sqlite

import (
	"bufio"
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"deckhand/internal/access"
	"deckhand/internal/notify"
	"deckhand/internal/queue"
	"deckhand/internal/queue/queuetest"
	"deckhand/internal/trigger"
)

func TestQueueSuite(t *testing.T) {
	for name, of := range map[string]func(*DB) queue.Store{
		notify.Queue:  func(db *DB) queue.Store { return db.Webhooks() },
		trigger.Queue: func(db *DB) queue.Store { return db.Triggers() },
		"named":       func(db *DB) queue.Store { return db.Queue("named") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queuetest.Run(t, func(t *testing.T) queuetest.Rig {
				db := openNew(t)
				return queuetest.Rig{Store: of(db), Added: db.news.of(name),
					AddUser:     func(user string) { must(t, db.CreateUser(t.Context(), access.User{Name: user, CreatedAt: noon})) },
					DisableUser: func(user string) { must(t, db.SetUserDisabled(t.Context(), user, true)) },
					Reopen:      func() queue.Store { return of(reopened(t, db)) }}
			})
		})
	}
}

// Queues share their tables and nothing else.
func TestQueuesAreApart(t *testing.T) {
	t.Parallel()
	db := listening(t)
	tellOf(t, db, "one", 1)
	must(t, db.Triggers().View(t.Context(), func(tx queue.Tx) error {
		ready, next, err := tx.Ready(noon.Add(time.Hour), 10)
		_, found, findErr := tx.Find("a", "msg_one_1_state_changed")
		_, lane, laneErr := tx.Lane("a")
		old, oldErr := tx.Older(noon.Add(time.Hour), 10)
		if len(ready) > 0 || !next.IsZero() || found || lane || len(old) > 0 {
			t.Errorf("%v %v %t %t %v", ready, next, found, lane, old)
		}
		for _, err := range []error{err, findErr, laneErr, oldErr} {
			must(t, err)
		}
		return nil
	}))
}

// What is ready is found by an index, however much there is that is not.
func TestQueueIsReadInOrder(t *testing.T) {
	t.Parallel()
	db := openNew(t)
	for sql, want := range map[string]string{
		selectLane + ofServed + " AND l.ready_at <= ? ORDER BY l.ready_at, l.name":              "SEARCH l USING INDEX queue_ready (queue=? AND ready_at>? AND ready_at<?)",
		selectItem + " AND lane = ? AND next_at IS NOT NULL ORDER BY next_at, owner, seq":       "SEARCH queue_items USING INDEX queue_waiting (queue=? AND lane=? AND next_at>?)",
		selectItem + " AND open = 1 AND (?2 = '' OR session = ?2) ORDER BY session, owner, seq": "SEARCH queue_items USING INDEX queue_opened (queue=?)",
		selectItem + " AND owner = ? AND seq < ? ORDER BY seq DESC":                             "SEARCH queue_items USING PRIMARY KEY (queue=? AND owner=? AND seq<?)",
	} {
		if plan := planOf(t, db, sql); plan != want {
			t.Errorf("%s\n%s\nwant %s", sql, plan, want)
		}
	}
}

// planOf is the first step of how a statement is run.
func planOf(t *testing.T, db *DB, sql string) (plan string) {
	t.Helper()
	args := make([]driver.Value, strings.Count(sql, "?"))
	if strings.Contains(sql, "?2") {
		args = args[:2]
	}
	must(t, db.readers.read(t.Context(), func(c *conn) error {
		_, err := c.one("EXPLAIN QUERY PLAN "+sql, func(v []driver.Value) { plan = text(v[3]) }, args...)
		return err
	}))
	return plan
}

// childClaim claims what is due first, and says so.
func childClaim(db *DB) error {
	ctx := context.Background()
	err := db.Webhooks().Update(ctx, func(tx queue.Tx) error {
		ready, _, err := tx.Ready(time.Now(), 1)
		if err != nil || len(ready) == 0 {
			return fmt.Errorf("nothing is due: %w", err)
		}
		_, err = queue.Take(tx, "child", time.Now(), time.Now().Add(time.Hour), ready...)
		return err
	})
	if err == nil {
		fmt.Println("claimed")
	}
	return err
}

// What a process had claimed when it was killed is done by the next, and at once.
func TestKilledBetweenClaimAndDone(t *testing.T) {
	t.Parallel()
	db := listening(t)
	tellOf(t, db, "one", 2)
	must(t, db.Close())
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+db.path, childClaims+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if scan := bufio.NewScanner(out); !scan.Scan() || scan.Text() != "claimed" {
		t.Errorf("the child said %q", scan.Text())
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	db = openAt(t, db.path)
	store, done := db.Webhooks(), make(chan int64, 10)
	must(t, store.View(t.Context(), func(tx queue.Tx) error {
		held, err := tx.Held()
		if len(held) != 1 || held[0].Holder != "child" {
			t.Errorf("it did not die with a claim: %+v", held)
		}
		return err
	}))
	run(t, &queue.Runner{Store: store, Logger: silent, Added: store.Added(), AtOnce: 4, Work: func(ctx context.Context, l queue.Lane) bool {
		w, d, found, err := store.Next(ctx, l.Name, time.Now())
		if err != nil || !found {
			t.Error(found, err)
		}
		d.State, d.NextAt, d.Claim = notify.Delivered, time.Time{}, l.Claimed()
		if err := store.Settle(ctx, w, d); err != nil {
			t.Error(err)
		}
		done <- d.Seq
		return true
	}})
	for want := range int64(2) {
		if seq := <-done; seq != want+1 {
			t.Errorf("%d was done, want %d", seq, want+1)
		}
	}
}

// run works on a queue until the test ends, or the function is called, which waits.
func run(t *testing.T, r interface{ Run(context.Context) error }) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(stop)
	return stop
}

var silent = slog.New(slog.DiscardHandler)
