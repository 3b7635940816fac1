package main

import (
	"context"
	"io"

	"deckhand/internal/cli/completion"
	"deckhand/internal/config"
)

// complete prints completions. It never fails, because the shell shows no errors.
func complete(ctx context.Context, words []string, stdout io.Writer) int {
	parser, err := newParser(&commands{}, &config.Resolver{}, io.Discard, io.Discard)
	if err == nil {
		completion.Complete(ctx, parser.Model.Node, config.DefaultDataDir(), words, stdout)
	}
	return 0
}
