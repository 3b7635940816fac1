// Command deckhand is the server and its commands. Each subcommand has its own file;
// wire.go connects the parts of the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"deckhand/internal/capacity"
	"deckhand/internal/cli"
	"deckhand/internal/cli/admin"
	"deckhand/internal/cli/completion"
	"deckhand/internal/config"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox/drivers"
)

// version is set by the build.
var version = "dev"

// commands is the command line. Every flag can also be set by a DECKHAND_* environment
// variable and by a key of the same name in the config file.
type commands struct {
	Config string `name:"config" env:"DECKHAND_CONFIG" placeholder:"FILE" help:"Config file (YAML) with flags by name, and the sections models and prices. Flags and environment variables take precedence."`

	Serve      serveCmd         `cmd:"" help:"Run the server."`
	Run        runCmd           `cmd:"" help:"Run an agent on a task in this folder and terminal. Needs no server."`
	New        cli.New          `cmd:"" help:"Create a conversation on a running server and print its ID."`
	Attach     cli.Attach       `cmd:"" help:"Follow a conversation on a running server and send messages to it."`
	List       cli.List         `cmd:"" help:"List conversations on a running server, newest first."`
	Logs       cli.Logs         `cmd:"" help:"Print the events of a conversation on a running server."`
	Open       cli.Open         `cmd:"" help:"Open a conversation in the browser."`
	Completion completionCmd    `cmd:"" help:"Print a shell completion script."`
	Replay     replayCmd        `cmd:"" help:"Replay a recorded trajectory in a new sandbox. Needs no server."`
	Import     importCmd        `cmd:"" help:"Import settings, secrets and conversations from a legacy server's data folder. The server may be running."`
	Key        admin.Key        `cmd:"" help:"Create, list and revoke API keys; rotate the master key. The server may be running."`
	User       admin.User       `cmd:"" help:"Create, list, disable and enable users. The server may be running."`
	OpenAPI    openapiCmd       `cmd:"" name:"openapi" help:"Print the OpenAPI 3.1 document."`
	Bench      capacity.Command `cmd:"" help:"Measure how many agents this machine can carry. Takes about a minute."`
	Doctor     doctorCmd        `cmd:"" help:"Check this machine's setup, or verify a conversation's log."`
	Version    versionCmd       `cmd:"" help:"Print the version or the software bill of materials."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == completion.Word {
		return complete(ctx, args[1:], stdout)
	}
	args = config.AsTyped(args)
	var c commands
	file := &config.Resolver{Args: args}
	if err := file.Load(); err != nil { // before the parser, which would add the name of a flag to the error
		fmt.Fprintln(stderr, "deckhand:", err)
		return 2
	}
	exit := -1
	parser, err := kong.New(&c,
		kong.Name("deckhand"),
		kong.Description("Run coding agents in sandboxes. Start a server with: deckhand serve. Run one task without a server with: deckhand run \"task\""),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { exit = code }),
		kong.Vars{"data_dir": config.DefaultDataDir()}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: false, Summary: true}),
		kong.Resolvers(file),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(&cli.Output{Stdout: stdout, Stderr: stderr}, opener),
	)
	if err != nil {
		fmt.Fprintln(stderr, "deckhand:", err)
		return 2
	}
	k, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		var usage *kong.ParseError
		if errors.As(err, &usage) {
			_ = usage.Context.PrintUsage(true)
			err = config.QuoteTask(usage)
		}
		fmt.Fprintln(stderr, "deckhand:", err)
		return 2
	}
	if err := config.CheckNegative(k); err != nil {
		fmt.Fprintln(stderr, "deckhand:", err)
		return 2
	}
	err = k.Run(&c)
	var ended cli.CodeError
	if errors.As(err, &ended) && ended.Said {
		return ended.Code
	}
	if err != nil {
		fmt.Fprintln(stderr, "deckhand:", err)
	}
	switch {
	case err == nil:
		return 0
	case ended.Code != 0:
		return ended.Code
	}
	return 1
}
