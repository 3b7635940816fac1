package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"deckhand/internal/cli"
	"deckhand/internal/load"
	"deckhand/internal/load/process"
)

// Command is deckhand bench.
type Command struct {
	Every    time.Duration `name:"every" default:"10s" placeholder:"TIME" help:"How often an agent acts: one model call with a command and its answer (default: ${default})."`
	Duration time.Duration `name:"duration" default:"40s" placeholder:"TIME" help:"Time to raise the load for; starting and cleaning up come on top (default: ${default})."`
	Latency  time.Duration `name:"latency" default:"2s" placeholder:"TIME" help:"Stop when more than 1% of turns take longer than this (default: ${default})."`
	Dir      string        `name:"dir" type:"existingdir" placeholder:"DIR" help:"Folder for the temporary server; use the disk that the real one will use. Default: the system's temporary folder."`
	Sandbox  string        `name:"sandbox" default:"auto" enum:"${sandbox_drivers}" help:"Where commands run: ${sandbox_help}."`
	JSON     bool          `name:"json" help:"Print the result as JSON."`
}

// Help implements kong.HelpProvider.
func (Command) Help() string {
	return `Starts a server with default settings in a temporary folder, with a built-in model that answers at once, and doubles
the number of conversations that work at the same time until turns per second stop growing, or latency or memory (80% of
this machine) passes a bound. A turn is a message, a model call, the command "echo hi" in a sandbox and a second
model call. Everything is removed afterwards, and other servers are not touched.

The result is for Deckhand itself. Add what the agents' own commands need: compilers, tests, browsers.
The load comes from this machine too, so a server whose clients and models are elsewhere carries more.

Examples:
  deckhand bench --every 30s
  deckhand bench --dir /var/lib --json | jq .agents

Exit codes:
0 measured, 1 the server or a turn failed, 2 usage error.`
}

// Run measures and prints.
func (c *Command) Run(ctx context.Context, o *cli.Output) error {
	if c.Every <= 0 || c.Duration <= 0 || c.Latency <= 0 {
		return cli.CodeError{Code: cli.ExitUsage, Err: errors.New("--every, --duration and --latency must be above 0")}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	// Sandboxes outlive their server; as children of this process they are still measured.
	if err := process.Adopt(); err != nil {
		return err
	}
	progress := o.Stdout
	if c.JSON {
		progress = io.Discard
	}
	r, err := c.measure(ctx, program, progress)
	if ctx.Err() != nil {
		return cli.CodeError{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
	}
	if err != nil {
		return err
	}
	if !c.JSON {
		r.print(o.Stdout)
		return nil
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(o.Stdout, "%s\n", text)
	}
	return err
}

func (c *Command) measure(ctx context.Context, program string, progress io.Writer) (*Report, error) {
	fmt.Fprintln(progress, "Starting a server in a temporary folder. This takes about a minute.")
	r, err := start(ctx, program, c.Dir, c.Sandbox)
	if err != nil {
		return nil, err
	}
	defer r.close()
	flush, err := flushTime(r.dir)
	if err != nil {
		return nil, err
	}
	idle, empty := process.TreePSS(), r.stored()
	fmt.Fprintf(progress, "\n%13s %10s %10s %10s %8s %10s\n", "conversations", "turns/s", "p50", "p99", "cores", "memory")
	b := Bounds{Latency: c.Latency, Memory: 0.8 * memory(), Until: time.Now().Add(c.Duration)}
	steps, reason, err := climb(b, func(n int) (Step, error) {
		s, err := r.round(ctx, n, b.Until)
		if err == nil {
			fmt.Fprintf(progress, "%13d %10.0f %7.1f ms %7.1f ms %8.1f %7.0f MB\n", n, s.Rate, s.P50, s.P99, s.Cores, s.Memory)
		}
		return s, err
	})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "Stopped: %s.\n", reason)
	m := measured{
		steps: steps, reason: reason, every: c.Every, latency: c.Latency,
		idle: idle, memory: memory(), cores: runtime.NumCPU(), flush: flush, first: load.Rounds{r.first},
	}
	if all := r.turns + len(r.first.Delays); all > 0 {
		m.bytesPerTurn = float64(r.stored()-empty) / float64(all)
	}
	return m.report(), nil
}
