package sim

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"deckhand/internal/sandbox"
	"deckhand/internal/sandbox/rpc"
)

var seedFlag = flag.Uint64("seed", 0, "simulate this seed only, and print its logs when it fails")

// lostSandbox is a connection that was lost. It is made outside of virtual time,
// and nothing in it waits any more.
var lostSandbox *sandbox.Sandbox

func TestMain(m *testing.M) {
	flag.Parse()
	ours, theirs := net.Pipe()
	hello := func(context.Context, *rpc.Call) (any, error) { return nil, nil }
	peer, err := rpc.Accept(theirs, rpc.Handlers{Calls: map[string]rpc.Handler{"hello": hello}})
	if err == nil {
		lostSandbox, err = sandbox.Connect(context.Background(), sandbox.Link{ID: "lost", Conn: ours})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	lostSandbox.Close()
	peer.Close()
	goleak.VerifyTestMain(m)
}

// wantedFaults is how many the usual run injects at least.
const wantedFaults = 10_000

// seeds is how many seeds the usual run has; SIM_SEEDS in the environment asks for another number.
const seeds = 220

// everyKind are faults that the usual run must have injected: a simulation
// in which nothing goes wrong proves nothing.
var everyKind = []string{
	"append refused", "append stored, answer lost", "append conflict", "read broken off", "index does not answer", "settings do not answer", "recall failed",
	"sandbox unavailable", "sandbox does not start", "sandbox not reached", "sandbox lost",
	"model: rate", "model: overload", "model: context", "model: auth", "model: policy", "model: internal", "model: not reached", "model: connection lost",
	"model: ends early", "model: hangs", "model: says nothing", "model: answer cut at its limit", "model: arguments do not fit", "model: arguments are no JSON", "model: no such tool",
	"tool: sandbox not reached", "tool: unexpected error", "tool: connection lost", "tool: fails", "tool: answer lost", "tool: refuses",
	"person: message twice", "person: stop", "person: pause", "person: delete",
	"server: crash", "server: restart", "server: replaced and not dead", "server: the replaced one dies",
}

// everyEnd is what must have come of it: the rules that are tested were needed.
var everyEnd = []string{
	"call: ok", "call: failed", "call: cancelled", "call: rejected", "call: unknown",
	"turn: STATUS$ERROR_BUDGET", "turn: STATUS$ERROR_MAX_ITERATIONS", "turn: STATUS$ERROR_LLM_AUTHENTICATION", "turn: finished",
	"history condensed", "call of the last owner settled", "approval given", "approval late", "session failed", "idle session closed",
}

// TestFaults runs many seeds. Whatever goes wrong, the history a model is shown
// is well formed, no message is lost, no tool is run twice, and the budget holds.
func TestFaults(t *testing.T) {
	if *seedFlag != 0 {
		simulate(t, *seedFlag)
		return
	}
	n, usual := seeds, !testing.Short()
	if !usual {
		n = seeds / 10
	}
	if text := os.Getenv("SIM_SEEDS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("SIM_SEEDS is not a number: %v", err)
		}
		usual = n >= seeds
	}
	var mu sync.Mutex
	injected, came, all := map[string]int{}, map[string]int{}, 0
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(n) {
			t.Run(strconv.FormatUint(seed+1, 10), func(t *testing.T) {
				t.Parallel()
				w := simulate(t, seed+1)
				mu.Lock()
				defer mu.Unlock()
				for kind, n := range w.injected {
					injected[kind] += n
					all += n
				}
				for what, n := range w.came() {
					came[what] += n
				}
			})
		}
	})
	for _, kind := range slices.Sorted(maps.Keys(injected)) {
		t.Logf("%6d %s", injected[kind], kind)
	}
	t.Logf("%6d faults in %d seeds", all, n)
	for _, what := range slices.Sorted(maps.Keys(came)) {
		t.Logf("%6d %s", came[what], what)
	}
	if !usual {
		return
	}
	if all < wantedFaults {
		t.Errorf("only %d faults were injected", all)
	}
	for _, kind := range everyKind {
		if injected[kind] == 0 {
			t.Errorf("never happened: %s", kind)
		}
	}
	for _, what := range everyEnd {
		if came[what] == 0 {
			t.Errorf("never came of it: %s", what)
		}
	}
}

// simulate runs one seed.
func simulate(t *testing.T, seed uint64) *world {
	var w *world
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed)
		w.run()
	})
	w.report(t, "TestFaults")
	return w
}

// report fails the test if a promise was broken.
func (w *world) report(t *testing.T, test string) {
	t.Helper()
	seed := w.seed
	if len(w.breaches) == 0 {
		return
	}
	for i, b := range w.breaches {
		if i == 5 {
			t.Errorf("… and %d more", len(w.breaches)-i)
			break
		}
		t.Errorf("seed %d: %s", seed, b)
	}
	t.Errorf("again: go test -race ./internal/agent/sim -run %s -seed=%d", test, seed)
	if *seedFlag != 0 {
		w.t = t // that of the simulation has ended
		w.print()
	}
}

// run is the life of a world: trouble, then rest, then the reckoning.
func (w *world) run() {
	r := w.dice("life")
	w.boot()
	w.live(r)
}

// live is what happens after the servers have started.
func (w *world) live(r *rand.Rand) {
	for range w.rules.sessions {
		w.create(r)
	}
	for range w.rules.acts {
		if r.IntN(4) == 0 {
			synctest.Wait()
		} else {
			_ = pass(context.Background(), upTo(r, 90*time.Second))
		}
		w.act(r)
	}
	w.reckon(r)
}

// reckon ends all trouble, compares, and ends the servers.
func (w *world) reckon(r *rand.Rand) {
	w.heal(r)
	w.audit()
	w.end()
}

// end stops the servers.
func (w *world) end() {
	current, _ := w.current()
	current.stop()
	for _, s := range w.replicas() {
		s.stop()
	}
	w.background.Wait()
}
