package main

import (
	"context"
	"io"

	"github.com/alecthomas/kong"

	"deckhand/internal/cli/completion"
	"deckhand/internal/config"
	"deckhand/internal/gitprovider"
	"deckhand/internal/sandbox/drivers"
)

// complete prints completions. It never fails, because the shell shows no errors.
func complete(ctx context.Context, words []string, stdout io.Writer) int {
	parser, err := kong.New(&commands{}, kong.Name("deckhand"), kong.Vars{"data_dir": config.DefaultDataDir()}, kong.Vars(drivers.FlagVars()), kong.Vars(gitprovider.FlagVars()))
	if err == nil {
		completion.Complete(ctx, parser.Model.Node, config.DefaultDataDir(), words, stdout)
	}
	return 0
}
