package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/config"
	"deckhand/internal/conversation"
	"deckhand/internal/sandbox/drivers"
)

// talkFlags are the flags of commands that run a conversation in the terminal.
type talkFlags struct {
	config.DataFlags
	sandboxFlags
	profileFlags
	config.SettingsFlags
	JSON     bool          `name:"json" help:"Print events as JSON, one per line, followed by the result."`
	Keep     bool          `name:"keep" help:"Keep the conversation and print how to open it."`
	Timeout  time.Duration `name:"timeout" placeholder:"TIME" help:"Stop after this time, such as 30m."`
	LogLevel string        `name:"log-level" env:"DECKHAND_LOG_LEVEL" default:"error" enum:"debug,info,warn,error" help:"Log level for standard error: debug, info, warn or error."`
}

// runCmd is deckhand run.
type runCmd struct {
	Task string `arg:"" help:"Task for the agent; - reads it from standard input."`
	talkFlags
	Instructions string   `name:"instructions" placeholder:"TEXT" help:"Additional instructions for the agent."`
	Dir          string   `name:"dir" default:"." placeholder:"DIR" help:"Folder to work in (default: the current folder)."`
	Repo         string   `name:"repo" placeholder:"REPO" help:"Repository to clone into a new folder in --dir and work in: a URL, OWNER/NAME on GitHub, or a local path."`
	Branch       string   `name:"branch" placeholder:"NAME" help:"Branch of --repo to check out."`
	Trust        bool     `name:"trust" help:"Trust --repo: its setup script may use the network, its hooks are installed, and the sandbox gets your custom secrets."`
	Image        []string `name:"image" type:"existingfile" placeholder:"FILE" help:"Image to send with the task. May be repeated."`
}

// Help implements kong.HelpProvider.
func (runCmd) Help() string {
	return "The agent works in this folder, in a sandbox without access to the rest of this machine. Press Ctrl-C once to pause the agent after the current step, twice to interrupt the step, three times to quit. While the agent is paused, type a message or press Enter to continue.\n\n" + cli.ExitHelp + `

Examples:
  deckhand run "fix the failing test" --confirm
  deckhand run "what does this do?" --model scripted/demo
  git log -1 --format=%B | deckhand run - --json`
}

// Run runs the agent on the task.
func (c *runCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	task, err := cli.ReadTask(c.Task, "deckhand run")
	if err != nil {
		return err
	}
	create := conversation.Create{Local: &conversation.Local{}, Request: api.CreateConversation{InitialUserMsg: api.Some(task)}}
	var images []string
	for _, name := range c.Image {
		url, err := cli.ImageURL(name)
		if err != nil {
			return err
		}
		images = append(images, url)
	}
	if len(images) > 0 {
		create.Request.ImageURLs = api.Some(images)
	}
	if c.Branch != "" && c.Repo == "" {
		return cli.Usagef("--branch needs --repo")
	}
	driver, err := drivers.ForFolder(c.Sandbox)
	if err != nil {
		return cli.Usagef("%s", err)
	}
	c.Sandbox = driver.Name
	if c.Instructions != "" {
		create.Request.ConversationInstructions = api.Some(c.Instructions)
	}
	dir, err := cli.Workdir(c.Dir)
	if err == nil && c.Repo != "" {
		var made func()
		dir, made, err = cli.Clone{Repo: c.Repo, Branch: c.Branch, Trust: c.Trust}.Prepare(ctx, dir, o, create.Local)
		defer made()
	}
	if err != nil {
		return err
	}
	if data, err := filepath.Abs(c.DataDir); err == nil && driver.Confined && (data == dir || strings.HasPrefix(data, strings.TrimSuffix(dir, "/")+"/")) {
		return cli.Usagef("the data directory %s, which contains keys, is inside the folder %s; choose another --dir or --data-dir", data, dir)
	}
	c.Folder = dir
	return c.hold(ctx, all, o, create)
}

// hold creates a server without an HTTP API, runs the conversation and removes the server.
func (f *talkFlags) hold(ctx context.Context, all *commands, o *cli.Output, create conversation.Create) error {
	local, err := f.start(ctx, all, o)
	if err != nil {
		return err
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
	code, err := cli.Talk(ctx, local.forTerminal(), cli.TalkOptions{JSON: f.JSON, Silent: f.Silent, Timeout: f.Timeout}, o, create)
	switch {
	case errors.Is(err, syscall.EPIPE): // the reader of the output is gone
		return cli.Exit(cli.ExitInterrupted)
	case err != nil:
		return err
	}
	return cli.Exit(code)
}
