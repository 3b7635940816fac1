package main

import (
	"context"
	"io"
	"os"

	"deckhand/api"
	"deckhand/internal/cli"
	"deckhand/internal/conversation"
	"deckhand/internal/v0"
)

// replayCmd is deckhand replay.
type replayCmd struct {
	File string `arg:"" help:"Trajectory exported by Deckhand or the legacy server; - reads standard input."`
	talkFlags
	Continue bool   `name:"continue" help:"Let the model continue if the recording ends in the middle of a turn."`
	Message  string `name:"message" placeholder:"TEXT" help:"Message to the agent after the replay. The model replies to it."`
}

// Help implements kong.HelpProvider.
func (replayCmd) Help() string {
	return "Repeats the recorded messages and tool calls in a new sandbox, which is removed afterwards (see --keep). Needs a model only with --message or --continue.\n\n" + cli.ExitHelp
}

// maxReplay is the maximum size of a recording.
const maxReplay = 64 << 20

// Run replays the file.
func (c *replayCmd) Run(ctx context.Context, all *commands, o *cli.Output) error {
	in := os.Stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return cli.Usagef("cannot read the recording: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxReplay+1))
	switch {
	case err != nil:
		return cli.Usagef("cannot read the recording: %w", err)
	case len(text) > maxReplay:
		return cli.Usagef("the recording is larger than %d MiB", maxReplay>>20)
	}
	if _, err := v0.ParseReplay(string(text)); err != nil {
		return cli.Usagef("cannot read the recording: %w", err)
	}
	c.Silent = !c.Continue && c.Message == ""
	create := conversation.Create{Local: &conversation.Local{}, Request: api.CreateConversation{ReplayJSON: api.Some(string(text))}}
	if c.Message != "" {
		create.Request.InitialUserMsg = api.Some(c.Message)
	}
	return c.hold(ctx, all, o, create, cli.TalkOptions{JSON: c.JSON, Silent: c.Silent, Timeout: c.Timeout})
}
