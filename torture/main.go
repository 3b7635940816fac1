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

// options are what a run is asked for.
type options struct {
	seed          uint64
	kills         int
	store         string
	only          []string
	servers       int
	program       string
	nats          string
	results       string
	people, users int
	long          bool
	keep          bool
}

// The stage that becomes a server with a clock that can be set has to be on the main thread.
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
	flag.Uint64Var(&o.seed, "seed", 0, "seed of the schedule and of the load (0: a random one, which is printed)")
	flag.IntVar(&o.kills, "kills", 100, "how many processes to kill")
	flag.StringVar(&o.store, "store", world.SQLite, "sqlite or postgres")
	flag.IntVar(&o.servers, "servers", 1, "servers on one database; several need -store postgres and NATS")
	flag.StringVar(&o.nats, "nats", "", "the program nats-server (default: bin/nats-server, or one that is installed)")
	only := flag.String("only", "", "inject only these faults, separated by commas: "+strings.Join(names(), ", "))
	flag.StringVar(&o.program, "program", filepath.Join("bin", "deckhand"), "the program to test")
	flag.StringVar(&o.results, "results", filepath.Join("bench", "results"), "folder for the report; empty writes none")
	flag.IntVar(&o.people, "people", 12, "conversations at the same time")
	flag.IntVar(&o.users, "users", 4, "users")
	flag.BoolVar(&o.long, "long", true, "let some faults last longer than a lease (10 s)")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs of the run, also if it succeeds")
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
		return 1, fmt.Errorf("the program is missing, run make build: %w", err)
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
