//go:build linux

package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"deckhand/torture/fault"
	"deckhand/torture/world"
	"deckhand/torture/world/clock"
)

// options are the options of a run.
type options struct {
	seed          uint64
	kills         int
	store         string
	only          []string
	servers       int
	program       string
	nats          string
	results       string
	failed        string
	people, users int
	long          bool
	keep          bool
}

// A server with a simulated clock must be started from the main thread.
func init() { runtime.LockOSThread() }

func main() {
	clock.Run()
	inside, code, err := world.Enter()
	if err == nil && inside {
		code, err = inner()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(max(code, 1))
	}
	os.Exit(code)
}

// inner does the work in the namespaces of the run.
func inner() (int, error) {
	var o options
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the faults and the load (0: random)")
	flag.IntVar(&o.kills, "kills", 100, "number of processes to kill")
	flag.StringVar(&o.store, "store", world.SQLite, "sqlite or postgres")
	flag.IntVar(&o.servers, "servers", 1, "number of servers; more than one needs -store postgres and NATS")
	flag.StringVar(&o.nats, "nats", "", "nats-server program (default: bin/nats-server, or an installed one)")
	only := flag.String("only", "", "inject only these faults, separated by commas: "+strings.Join(names(), ", "))
	flag.StringVar(&o.program, "program", filepath.Join("bin", "deckhand"), "program to test")
	flag.StringVar(&o.results, "results", filepath.Join("bench", "results"), "folder for the report; empty for no report")
	flag.StringVar(&o.failed, "failed", "", "folder for the logs of a failed run (default: the folder for temporary files)")
	flag.IntVar(&o.people, "people", 12, "number of conversations at the same time")
	flag.IntVar(&o.users, "users", 4, "number of users")
	flag.BoolVar(&o.long, "long", true, "let some faults last longer than a lease (10 s)")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs even if the run succeeds")
	flag.Parse()
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000_000)
	}
	program, err := filepath.Abs(o.program)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		return 1, fmt.Errorf("program not found; run make build: %w", err)
	}
	o.program = program
	if o.servers > 1 {
		if o.nats, err = natsServer(o.nats); err != nil {
			return 1, err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return torture(ctx, o)
}

// natsServer finds the program.
func natsServer(name string) (string, error) {
	built := filepath.Join("bin", "nats-server")
	if _, err := os.Stat(built); err == nil && name == "" {
		name = built
	}
	path, err := exec.LookPath(cmp.Or(name, "nats-server"))
	if err != nil {
		return "", fmt.Errorf("several servers need NATS: %w", err)
	}
	return filepath.Abs(path)
}

func names() []string {
	var out []string
	for _, f := range append(append([]fault.Fault{}, fault.Processes...), fault.Surroundings...) {
		out = append(out, f.Name)
	}
	return out
}
