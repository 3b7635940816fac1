//go:build linux

package fault

import (
	"context"
	"fmt"
	"time"

	"deckhand/torture/world"
)

var overloadedModel = Fault{
	Name: "overloaded-model", What: "the model refuses requests with status 503", Weight: 4,
	Inject: func(ctx context.Context, s *Scene) (string, error) {
		every, d := 1+s.Random.IntN(2), s.between(500*time.Millisecond, 3*time.Second)
		s.World.Model.Set(world.Mood{Status: world.Overloaded, Every: every})
		hold(ctx, d)
		s.World.Model.Set(world.Mood{})
		return fmt.Sprintf("every %d calls, for %v", every, d.Round(time.Millisecond)), nil
	},
}
