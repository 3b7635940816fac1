package main

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli"
	"deckhand/internal/cli/completion"
	"deckhand/internal/config"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox/drivers"
)

// completionCmd is deckhand completion.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (completionCmd) Help() string {
	return `Completes commands, flags, flag values and conversation IDs. Load the script in your shell:

Examples:
  bash:  echo 'source <(deckhand completion bash)' >> ~/.bashrc
  zsh:   echo 'source <(deckhand completion zsh)' >> ~/.zshrc
  fish:  deckhand completion fish > ~/.config/fish/completions/deckhand.fish`
}

// Run prints a script.
func (c completionCmd) Run(o *cli.Output) error {
	_, err := io.WriteString(o.Stdout, completion.Script(c.Shell))
	return err
}

// complete prints completions. It never fails, because the shell shows no errors.
func complete(ctx context.Context, words []string, stdout io.Writer) int {
	parser, err := kong.New(&commands{}, kong.Name("deckhand"), kong.Vars{"data_dir": config.DefaultDataDir()}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()))
	if err == nil {
		completion.Complete(ctx, parser.Model.Node, config.DefaultDataDir(), words, stdout)
	}
	return cli.ExitDone
}
