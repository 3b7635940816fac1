package profile

import (
	"context"
	"iter"

	"deckhand/internal/llm"
)

// silence is the model of a replay after which nothing shall be done: whoever
// asks it waits for an answer that does not come.
type silence struct{}

// Stream implements llm.Model.
func (silence) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Part, error] {
	return func(yield func(llm.Part, error) bool) {
		<-ctx.Done()
		yield(llm.Part{}, ctx.Err())
	}
}
