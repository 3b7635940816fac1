package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/bench/fleet"
	"deckhand/bench/floor"
	"deckhand/bench/report"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
)

// bench is one run.
type bench struct {
	ctx      context.Context
	quick    bool
	server   string // the program under test
	profiles string // where profiles go, if they are wanted
	dir      string // everything a run leaves lies below it and is removed
	report   *report.Report
	// How many conversations the scale scenario stores, 0 for its own number, and how many events in each.
	conversations, events int
	model                 *instant         // of all servers
	towns                 map[string]*town // by program and settings
}

// scenario is a part of the run that can be asked for by name.
type scenario struct {
	name, title string
	run         func(*bench) error
}

var scenarios = []scenario{
	{"append", "Append: durable writes against raw SQLite", appends},
	{"http", "HTTP: requests against a bare durable handler", requests},
	{"steps", "Steps: a long history against a short one", steps},
	{"scale", "Scale: many stored conversations against none", scale},
	{"followers", "Followers: many readers of one conversation", followers},
	{"fsync", "fsync: counted, not timed", fsyncs},
	{"cold", "Cold: programs that were just started", coldStarts},
	{"first", "First turns: conversations that begin", firstTurns},
	{"warm", "Warm turns: a message, a command and an answer, against their parts", warmTurns},
	{"postgres", "PostgreSQL: appends against raw inserts, many stored conversations against none", onPostgres},
	{"replicas", "Replicas: servers that work together on PostgreSQL", replicas},
	{"sandbox", "Sandbox: start, command and memory against bare ones", sandboxes},
}

func main() {
	quick := flag.Bool("quick", false, "a short run: the same lines, less certain figures")
	only := flag.String("only", "", "run one part: "+names())
	server := flag.String("server", filepath.Join("bin", "deckhand"), "the program to measure")
	results := flag.String("results", filepath.Join("bench", "results"), "where the tables go")
	dir := flag.String("dir", "", "where data lies during the run; it must be a real disk (default: the system's temporary folder)")
	profiles := flag.String("profiles", "", "save processor profiles of warm turns, and with -base of each contest, in this folder")
	conversations := flag.Int("conversations", 0, "how many conversations to store for the scenario scale (default: 100,000)")
	events := flag.Int("events", 0, "how many events each of them has (default: 10)")
	base := flag.String("base", "", "compare the program with this one instead, in turns; fails on a regression. With -only: one contest, such as \"warm turns, 50 at once\"")
	others := flag.String("peers", "", "run one scenario against the program and the peers in this folder, see README.md")
	floorAddr := flag.String("floor", "", "internal: be the bare handler, at this address")
	floorFile := flag.String("floor-file", "", "internal: where the bare handler keeps its rows")
	floorLoose := flag.Bool("floor-loose", false, "internal: the bare handler's rows cannot be found again")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *floorAddr != "" {
		table := floor.FoundAgain
		if *floorLoose {
			table = floor.WrittenDown
		}
		err = floor.Serve(ctx, *floorAddr, *floorFile, table)
	} else {
		b := &bench{ctx: ctx, quick: *quick, server: *server, profiles: *profiles, conversations: *conversations, events: *events, report: report.New(*quick, *only), towns: map[string]*town{}}
		err = b.run(*only, *base, *others, *dir, *results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func names() string {
	var out []string
	for _, s := range scenarios {
		out = append(out, s.name)
	}
	return strings.Join(out, ", ")
}

// run does what was asked for and says what was missed.
func (b *bench) run(only, base, others, dir, results string) error {
	if _, err := os.Stat(b.server); err != nil {
		return fmt.Errorf("there is no %s: make build makes it", b.server)
	}
	var err error
	if b.dir, err = os.MkdirTemp(dir, "deckhand-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	if err := process.Adopt(); err != nil {
		return err
	}
	b.model = newInstant(oneCommand)
	defer b.model.close()
	if others != "" {
		if err := b.comparePeers(others); err != nil {
			return err
		}
		b.report.Only = "peers"
		return b.report.Finish(results)
	}
	if base != "" {
		if err := b.compare(base, only); err != nil {
			return err
		}
		b.report.Only = "compare"
		return b.report.Finish(results)
	}
	known := false
	for _, s := range scenarios {
		if only != "" && only != s.name {
			continue
		}
		known = true
		begin := time.Now()
		fmt.Printf("\n== %s\n", s.title)
		if err := s.run(b); err != nil {
			if b.ctx.Err() != nil {
				return errors.New("interrupted")
			}
			b.report.Broken(s.name, err)
		}
		fmt.Printf("   took %.1f s\n", time.Since(begin).Seconds())
	}
	if !known {
		return fmt.Errorf("there is no part %q; there are %s", only, names())
	}
	return b.report.Finish(results)
}

// replicas measures several servers on one database.
func replicas(b *bench) error {
	return fleet.Config{Program: b.server, Dir: b.dir, Settings: load.Settings(modelName, b.model.web.URL+"/v1"), Quick: b.quick, Report: b.report}.Run(b.ctx)
}

// pick is a value for a whole run and one for a quick run.
func pick[T any](b *bench, whole, quick T) T {
	if b.quick {
		return quick
	}
	return whole
}

// folder makes a new folder for one measurement.
func (b *bench) folder() (string, error) { return os.MkdirTemp(b.dir, "data-") }

// say reports progress.
func say(format string, args ...any) { fmt.Printf("   "+format+"\n", args...) }
