package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/cli/clone"
	"deckhand/internal/cli/folder"
	"deckhand/internal/cli/join"
	"deckhand/internal/cli/schema"
	"deckhand/internal/cli/setup"
	"deckhand/internal/cli/stdin"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
)

// localFlags are the flags of commands that run an agent without a running server.
type localFlags struct {
	config.SettingsFlags
	config.DataFlags `group:"data"`
	LogLevel         string `name:"log-level" group:"data" env:"DECKHAND_LOG_LEVEL" default:"error" enum:"debug,info,warn,error" help:"Log level: debug, info, warn or error."`
	profileFlags     `group:"model"`
	sandboxFlags     `group:"sandbox"`
	askRisky         bool   // ask before risky calls, unless flags or stored settings say something else
	origin           string // the model, and where the choice comes from
}

// talkFlags are the flags of commands that run a conversation for a script or a person.
type talkFlags struct {
	JSON    bool          `name:"json" help:"Print events as JSON, one per line, followed by the result."`
	Keep    bool          `name:"keep" help:"Keep the conversation and print how to open it."`
	Timeout time.Duration `name:"timeout" placeholder:"TIME" help:"Stop after this time, such as 30m."`
	localFlags
}

// runCmd is deckhand run.
type runCmd struct {
	Task         string   `arg:"" optional:"" help:"Task for the agent. It is read from standard input for -, or if it is omitted and standard input is not a terminal. Otherwise, piped input is appended to it."`
	Dir          string   `name:"dir" default:"." placeholder:"DIR" help:"Folder to work in (default: the current folder)."`
	Continue     bool     `name:"continue" short:"c" help:"Continue the last session of this folder; the task is the next message."`
	OutputSchema string   `name:"output-schema" type:"existingfile" placeholder:"FILE" help:"JSON schema that the final answer must match. The answer is printed to standard output; all other output goes to standard error."`
	Instructions string   `name:"instructions" placeholder:"TEXT" help:"Additional instructions for the agent."`
	Image        []string `name:"image" type:"existingfile" placeholder:"FILE" help:"Image to send with the task. May be repeated."`
	Repo         string   `name:"repo" placeholder:"REPO" help:"Repository to clone into a new folder in --dir and work in: a URL, OWNER/NAME on GitHub, or a local path."`
	Branch       string   `name:"branch" placeholder:"NAME" help:"Branch of --repo to check out."`
	Trust        bool     `name:"trust" help:"Trust --repo: its setup script may use the network, its hooks are installed, and the sandbox gets your custom secrets."`
	talkFlags
}

// Help implements kong.HelpProvider.
func (runCmd) Help() string {
	return "The agent works in this folder, in a sandbox without access to the rest of this machine. Press Ctrl-C once to pause the agent after the current step, twice to interrupt the step, three times to quit. While the agent is paused, type a message or press Enter to continue.\n\nApprovals: without flags, the stored settings of --user decide when the agent asks; without stored settings, it never asks. --confirm asks before all calls (with --analyzer=rules, before risky ones), --yes before none. Without a terminal to ask on, a call that needs approval is rejected, and the exit code is 4.\n\n--continue uses the model that was last chosen with --model in this folder, or in the session with /model.\n\n" + cli.ExitHelp + `

Examples:
  deckhand run "fix the failing test" --confirm
  deckhand run "what does this do?" --model scripted/demo
  git diff | deckhand run "review this change"
  git log -1 --format=%B | deckhand run - --json
  deckhand run "list the public functions" --output-schema functions.json
  deckhand run --continue "now add tests"`
}

// Run runs the agent on the task.
func (c *runCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	task, err := stdin.Task(c.Task, "deckhand run", o.Stderr)
	if err != nil {
		return err
	}
	create := conversation.Create{Local: &conversation.Local{}, Request: api.CreateConversation{InitialUserMsg: api.Some(task)}}
	if create.Request.ImageURLs, err = cli.Images(c.Image); err != nil {
		return err
	}
	repo := clone.Repository{Repo: c.Repo, Branch: c.Branch, Trust: c.Trust}
	if err := repo.Check(c.Continue); err != nil {
		return err
	}
	if _, err := c.ForFolder(); err != nil {
		return cli.Usagef("%w", err)
	}
	options := cli.TalkOptions{JSON: c.JSON, Silent: c.Silent, Timeout: c.Timeout, Continue: c.Continue}
	if options.Schema, err = schema.Read(c.OutputSchema); err != nil {
		return cli.Usagef("--output-schema: %w", err)
	}
	if text := strings.TrimSpace(c.Instructions + "\n\n" + options.Schema.Instructions()); text != "" {
		create.Request.ConversationInstructions = api.Some(text)
	}
	if err := c.Reachable(ctx); err != nil {
		return err
	}
	dir, err := folder.Workdir(c.Dir)
	if err == nil && c.Repo != "" {
		var made func()
		dir, made, err = repo.Prepare(ctx, dir, o, create.Local)
		defer made()
	}
	if err == nil {
		err = c.workIn(dir)
	}
	if err != nil {
		return err
	}
	return c.hold(ctx, all, o, create, options)
}

// workIn makes a folder the workspace.
func (f *localFlags) workIn(dir string) error {
	driver, err := f.ForFolder()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if data, err := filepath.Abs(f.DataDir); err == nil && driver.Confined && (data == dir || strings.HasPrefix(data, strings.TrimSuffix(dir, "/")+"/")) {
		return cli.Usagef("the folder %s contains the data directory %s with its keys; change to the folder of a project, or choose another --dir or --data-dir", dir, data)
	}
	f.Sandbox, f.Folder = driver.Name, dir
	return nil
}

// choice returns the last model chosen in a home.
func (f *localFlags) choice(dir string) setup.Choice {
	return setup.Choice{Model: &f.Model, BaseURL: &f.BaseURL, File: filepath.Join(dir, "model")}
}

// hold creates a server without an HTTP API, runs the conversation and removes the server.
func (f *talkFlags) hold(ctx context.Context, all *commands, o *cli.Output, create conversation.Create, options cli.TalkOptions) error {
	var err error
	if f.DataDir, err = filepath.Abs(f.DataDir); err != nil {
		return err
	}
	at := temporary(f.DataDir)
	if f.Keep || options.Continue {
		at = f.kept(at)
		if c, err := folder.Of(f.DataDir, f.Folder).Client(); err == nil && f.Folder != "" {
			_, base := f.choice(at.dir).Last()
			return join.Task{Client: c, Request: create.Request, Flags: f.SettingsFlags, BaseURL: base, Options: options}.Run(ctx, o)
		}
		if at.last = options.Continue; at.last {
			f.Last = f.choice(at.dir).Recall()
		}
	}
	local, err := f.start(ctx, all, o.Stderr, at)
	if err != nil {
		return err
	}
	if at.keep {
		f.choice(at.dir).Remember()
	}
	interrupted := ctx.Err() != nil
	// From here on, an interrupt goes to the agent and does not end the program.
	ctx = context.WithoutCancel(ctx)
	defer func() {
		if err := local.end(ctx); err != nil {
			fmt.Fprintln(o.Stderr, "deckhand:", err)
		}
	}()
	if interrupted {
		return cli.Exit(cli.ExitInterrupted)
	}
	if f.origin != "" && !options.JSON {
		fmt.Fprintln(o.Stderr, "·", f.origin)
	}
	return cli.Talk(ctx, local.forTerminal(), setup.Advised(options, &f.SettingsFlags), o, create)
}
