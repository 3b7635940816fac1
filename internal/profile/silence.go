package profile

import (
	"context"
	"iter"

	"deckhand/internal/llm"
)

// silence is the model of a replay that must do nothing afterwards: its answer never comes.
type silence struct{}

// Stream implements llm.Model.
func (silence) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		<-ctx.Done()
		yield(llm.Part{}, ctx.Err())
	}
}
