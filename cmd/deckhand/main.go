// Command deckhand is the server and its commands. Each subcommand has its own file;
// wire.go connects the parts of the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"deckhand/internal/capacity"
	"deckhand/internal/cli"
	"deckhand/internal/cli/admin"
	"deckhand/internal/cli/backups"
	"deckhand/internal/cli/completion"
	"deckhand/internal/cli/dockerproxy"
	"deckhand/internal/cli/importer"
	"deckhand/internal/cli/migrate"
	"deckhand/internal/cli/reference"
	"deckhand/internal/config"
	"deckhand/internal/config/reload"
	"deckhand/internal/gitprovider"
	"deckhand/internal/machine"
	"deckhand/internal/sandbox/drivers"
	"deckhand/internal/store/open"
	"deckhand/internal/terminal"
)

// version is set by the build.
var version = "dev"

// commands is the command line. Every flag can also be set by a DECKHAND_* environment
// variable and by a key of the same name in the config file.
type commands struct {
	Config string `name:"config" env:"DECKHAND_CONFIG" placeholder:"FILE" help:"Config file (YAML) with flags by name, and the sections models and prices. Flags and environment variables take precedence."`

	Session    sessionCmd          `cmd:"" group:"work" help:"Open an interactive session in this folder. This is the default command."`
	Run        runCmd              `cmd:"" group:"work" help:"Run an agent on a task in this folder, for scripts and CI. Needs no server."`
	List       cli.List            `cmd:"" group:"work" help:"List sessions in folders of this machine and conversations on a running server, newest first."`
	New        cli.New             `cmd:"" group:"client" help:"Create a conversation on a running server and print its ID."`
	Attach     cli.Attach          `cmd:"" group:"client" help:"Follow a conversation on a running server and send messages to it."`
	Logs       cli.Logs            `cmd:"" group:"client" help:"Print the events of a conversation on a running server."`
	Open       cli.Open            `cmd:"" group:"client" help:"Open a conversation in the browser."`
	Export     importer.Export     `cmd:"" group:"client" help:"Export a conversation on a running server, with its workspace, to one file."`
	Serve      serveCmd            `cmd:"" group:"server" help:"Run the server."`
	Key        admin.Key           `cmd:"" group:"server" help:"Create, list and revoke API keys; rotate the master key. The server may be running."`
	User       admin.User          `cmd:"" group:"server" help:"Create, list, disable and enable users. The server may be running."`
	Cfg        configCmd           `cmd:"" name:"config" group:"server" help:"Check, show or reload the server's configuration."`
	LogLevel   reload.LevelCommand `cmd:"" name:"log-level" group:"server" help:"Show or set the log level of the running server, until it is restarted or reloads its configuration."`
	Import     importer.Command    `cmd:"" group:"server" help:"Import a conversation from a file, or settings, secrets and conversations from a legacy server's data folder."`
	Migrate    migrate.Command     `cmd:"" group:"server" help:"Move an installation to another database, SQLite or PostgreSQL, and verify the copy. The server must be stopped."`
	Backup     backups.Command     `cmd:"" group:"server" help:"Back up a server, which may be running; list and verify backups."`
	Restore    backups.Restore     `cmd:"" group:"server" help:"Restore a backup into an empty data directory."`
	Health     admin.Health        `cmd:"" group:"server" help:"Check that the server on this data directory is ready."`
	Proxy      dockerproxy.Command `cmd:"" name:"docker-proxy" group:"server" help:"Run a proxy that restricts access to a container engine to what sandboxes need."`
	Doctor     doctorCmd           `cmd:"" group:"other" help:"Check this machine's setup and verify all stored data, or one conversation's log."`
	Bench      capacity.Command    `cmd:"" group:"other" help:"Measure how many agents this machine can carry. Takes about a minute."`
	Replay     replayCmd           `cmd:"" group:"other" help:"Replay a recorded trajectory in a new sandbox. Needs no server."`
	OpenAPI    openapiCmd          `cmd:"" group:"other" name:"openapi" help:"Print the OpenAPI 3.1 document."`
	Completion completion.Command  `cmd:"" group:"other" help:"Print a shell completion script."`
	Version    versionCmd          `cmd:"" group:"other" help:"Print the version or the software bill of materials."`
	Reference  reference.Command   `cmd:"" hidden:"" help:"Write the documentation of commands and flags."`
}

func main() {
	ctx, stop := machine.UntilSignal()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// newParser reads the config file and returns the parser of the command line.
func newParser(c *commands, file *config.Resolver, stdout, stderr io.Writer, more ...kong.Option) (*kong.Kong, error) {
	if err := file.Load(); err != nil { // the parser would add the name of a flag to the error
		return nil, err
	}
	return kong.New(c, append(more,
		kong.Name("deckhand"), kong.Description(config.Description), kong.ExplicitGroups(config.Groups),
		kong.Writers(stdout, stderr), kong.Vars{"data_dir": config.DefaultDataDir()}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()),
		kong.ConfigureHelp(kong.HelpOptions{Compact: false, Summary: true}),
		kong.Resolvers(file), config.HomePaths,
		kong.Bind(&cli.Output{Stdout: stdout, Stderr: stderr}, file, opener, importTo, copies, &migrate.Opener{Open: open.Move}, cli.Sessions(folders.List)),
	)...)
}

// run is main without the process, so that tests can call it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == completion.Word {
		return complete(ctx, args[1:], stdout)
	}
	args = config.AsTyped(args)
	var c commands
	file := &config.Resolver{Args: args}
	exit := -1
	parser, err := newParser(&c, file, stdout, stderr, kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "deckhand:", err)
		return 2
	}
	k, err := parser.Parse(args)
	if exit >= 0 { // --help
		return exit
	}
	if err != nil {
		fmt.Fprintln(stderr, "deckhand:", file.Explain(err))
		return 2
	}
	if err := config.CheckFlags(k); err != nil {
		fmt.Fprintln(stderr, "deckhand:", file.Located(err))
		return 2
	}
	err = k.Run(&c)
	var ended cli.CodeError
	if errors.As(err, &ended) && ended.Said {
		return ended.Code
	}
	if err != nil {
		if none := (cli.NoServer{}); errors.As(err, &none) {
			err = fmt.Errorf("%w%s", err, config.Packaged.ClientHint(none.DataDir))
		}
		fmt.Fprintln(stderr, "deckhand:", terminal.Clean(file.Located(err).Error())) // it may name files of a sandbox
	}
	switch {
	case err == nil:
		return 0
	case ended.Code != 0:
		return ended.Code
	}
	return 1
}
