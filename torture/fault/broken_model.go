//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"

	"deckhand/internal/llm/llmtest"
	"deckhand/torture/world"
)

var breaks = []llmtest.Break{llmtest.Drop, llmtest.EndEarly, llmtest.Malformed, llmtest.Hang, llmtest.ErrorLate}

var brokenModel = Fault{
	Name: "broken-model", What: "answers of the model break off in the middle: the connection drops, the stream ends early, hangs, or has an error or garbage in it", Weight: 6,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		how, every, d := breaks[s.Random.IntN(len(breaks))], 1+s.Random.IntN(3), s.between(500*time.Millisecond, 3*time.Second)
		s.World.Model.Set(world.Mood{Break: how, Every: every})
		hold(ctx, d)
		s.World.Model.Set(world.Mood{})
		return fmt.Sprintf("%s, every %d calls, for %v", how, every, d.Round(time.Millisecond)), nil
	},
}
