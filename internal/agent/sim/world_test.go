package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"deckhand/internal/admission"
	"deckhand/internal/agent"
	"deckhand/internal/cluster"
	"deckhand/internal/session"
)

// world is everything of one seed: the store and the sandboxes, which outlive
// servers, the servers, and what was promised to people.
type world struct {
	t     *testing.T
	seed  uint64
	rules rules
	store *store
	books *books

	// background is what goes on in sandboxes and dying servers, speaking are
	// people who deliver something.
	background, speaking sync.WaitGroup

	calmed chan struct{} // closed when all trouble ends

	mu       sync.Mutex
	calm     bool
	rolled   map[string]int
	injected map[string]int
	breaches []string
	limit    session.Money
	boxes    map[session.ID]*box
	promises map[session.ID][]*promise
	front    *server
	older    []*server // replaced by it, and not dead
	started  int
	ids      []session.ID

	// members is the cluster of servers that work side by side; nil if each server
	// replaces the one before. See replicas_test.go.
	members *cluster.Memory
	peers   []*server
	joined  map[string]time.Time // when each member last began to hold a lease
	taken   int                  // sessions taken over from a dead member
}

// rules are what differs between seeds beside the dice.
type rules struct {
	sessions  int
	acts      int // of people and of fate
	trouble   float64
	maxAsks   int
	window    int64
	condense  bool
	confirm   bool
	analyzer  string
	approval  agent.Approval
	idleAfter time.Duration
	recall    bool
	cache     int
	limits    admission.Limits
	shared    bool // servers that work side by side share their queues
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, calmed: make(chan struct{}), rolled: map[string]int{}, injected: map[string]int{},
		boxes: map[session.ID]*box{}, promises: map[session.ID][]*promise{}}
	w.store = newStore(w)
	w.books = newBooks(w)
	r := w.dice("rules")
	w.rules = rules{
		sessions: 1 + r.IntN(2), acts: 30 + r.IntN(50), trouble: []float64{0.5, 1, 1.5, 2.5}[r.IntN(4)], maxAsks: 3 + r.IntN(8),
		condense: r.IntN(2) == 0, recall: r.IntN(2) == 0, cache: 1 + r.IntN(3),
	}
	if r.IntN(3) == 0 {
		w.rules.window = 2500
	}
	if r.IntN(3) == 0 {
		w.rules.confirm, w.rules.analyzer = true, []string{"", "rules", "llm"}[r.IntN(3)]
	}
	if r.IntN(2) == 0 {
		w.rules.approval = agent.Approval{Within: time.Minute, Accept: r.IntN(2) == 0}
	}
	if r.IntN(4) == 0 {
		w.rules.idleAfter = 20 * time.Minute
	}
	if w.dice("places").IntN(2) == 0 { // sessions wait for each other
		w.rules.limits = admission.Limits{Running: 1, RunningPerUser: 1, Queued: 10, QueuedPerUser: 10}
	}
	w.limit = session.Money(20e6 + r.Int64N(100e6)) // cents: a call reserves one or less
	return w
}

// dice gives dice for one question. The same question gets the same answer with
// the same seed, in any order of requests; asked again, it is the next one.
func (w *world) dice(question ...any) *rand.Rand {
	name := fmt.Sprintln(question...)
	w.mu.Lock()
	w.rolled[name]++
	n := w.rolled[name]
	w.mu.Unlock()
	h := fnv.New64a()
	_, _ = io.WriteString(h, name)
	return rand.New(rand.NewPCG(w.seed<<20+uint64(n), h.Sum64()))
}

// strikes says whether something goes wrong now, with this chance in a thousand
// in an ordinary seed.
func (w *world) strikes(r *rand.Rand, chance float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && r.Float64()*1000 < chance*w.rules.trouble
}

// fault counts one fault that was injected.
func (w *world) fault(kind string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.injected[kind]++
}

// breach records a broken promise.
func (w *world) breach(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

func (w *world) budget() session.Money {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// pass lets time go by.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// upTo is a time below d, more often short than long.
func upTo(r *rand.Rand, d time.Duration) time.Duration {
	return time.Duration(float64(d) * r.Float64() * r.Float64() * r.Float64())
}
